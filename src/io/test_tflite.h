// Builds TFLite files for tests, with every number open to lies.
#pragma once

#include <flatbuffers/flatbuffers.h>
#include <io/tflite_schema.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "io/tflite.h"
#include "tensor/tensor.h"

namespace sinew {

namespace schema = tflite::schema;

struct TestTfliteTensor {
  std::string name;
  std::vector<std::int32_t> shape;
  std::string data{};        // bytes; empty: computed
  std::int8_t type = 0;      // FLOAT32
  std::int64_t buffer = -1;  // instead of one of its own
  bool variable = false, sparse = false;
  std::vector<float> scales{};  // quantisation
};

struct TestTfliteOperator {
  using Options = std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder&)>;
  TfliteCode code = TfliteCode::kAdd;
  std::vector<std::int32_t> inputs, outputs;
  schema::Options type = schema::Options::NONE;
  Options options{};
  std::int32_t version = 1;
  std::string custom{};
};

class TestTflite {
 public:
  std::vector<TestTfliteTensor> tensors;
  std::vector<TestTfliteOperator> operators;
  std::vector<std::int32_t> inputs, outputs;
  std::uint32_t version = 3;
  int subgraphs = 1;
  std::uint64_t external = 0;  // `size` of every buffer
  const char* identifier = "TFL3";

  int computed(const std::string& name, const std::vector<std::int32_t>& shape) { return add({name, shape}); }
  /// f32, with a pattern of numbers between -1 and 1 that differs from tensor to tensor.
  int constant(const std::string& name, const std::vector<std::int32_t>& shape) {
    return add({name, shape, bytes_of<float>(pattern(shape))});
  }
  int integers(const std::string& name, const std::vector<std::int32_t>& shape,
               const std::vector<std::int32_t>& values) {
    return add({name, shape, bytes_of<std::int32_t>(values), 2});
  }
  /// f16 and the DEQUANTIZE that widens it; the number of the widened tensor.
  int half(const std::string& name, const std::vector<std::int32_t>& shape) {
    const std::vector<float> values = pattern(shape);
    const Tensor narrow = convert(
        TensorView(DType::kF32, Shape{static_cast<std::int64_t>(values.size())}, values.data()), DType::kF16);
    const std::string bytes(reinterpret_cast<const char*>(narrow.data()), 2 * values.size());
    const int stored = add({name, shape, bytes, 1});
    const int wide = computed(name + "1", shape);
    operators.push_back({TfliteCode::kDequantize, {stored}, {wide}});
    return wide;
  }
  /// Appends an operator without options; its result's number.
  int op(TfliteCode code, const std::vector<std::int32_t>& in, const std::string& name,
         const std::vector<std::int32_t>& shape) {
    const int out = computed(name, shape);
    operators.push_back({code, in, {out}});
    return out;
  }
  /// Gives the last operator options: `options<schema::AddBuilder>(schema::Options::Add, [](auto& b) { ...
  /// })`.
  template <typename Builder>
  void options(schema::Options type, const std::function<void(Builder&)>& fill) {
    operators.back().type = type;
    operators.back().options = [fill](flatbuffers::FlatBufferBuilder& builder) {
      Builder table(builder);
      fill(table);
      return table.Finish().Union();
    };
  }
  int conv(const std::vector<std::int32_t>& in, const std::string& name,
           const std::vector<std::int32_t>& shape, int stride = 1, int padding = 0, int activation = 0,
           int dilation = 1) {
    const int out = op(TfliteCode::kConv2d, in, name, shape);
    options<schema::Conv2DBuilder>(schema::Options::Conv2D, [=](auto& b) {
      b.add_padding(static_cast<std::int8_t>(padding));
      b.add_stride_rows(stride);
      b.add_stride_columns(stride);
      b.add_dilation_rows(dilation);
      b.add_activation(static_cast<std::int8_t>(activation));
    });
    return out;
  }
  int depthwise(const std::vector<std::int32_t>& in, const std::string& name,
                const std::vector<std::int32_t>& shape, int stride = 1, int activation = 0,
                int multiplier = 1) {
    const int out = op(TfliteCode::kDepthwiseConv2d, in, name, shape);
    options<schema::DepthwiseConv2DBuilder>(schema::Options::DepthwiseConv2D, [=](auto& b) {
      b.add_stride_rows(stride);
      b.add_stride_columns(stride);
      b.add_depth_multiplier(multiplier);
      b.add_activation(static_cast<std::int8_t>(activation));
    });
    return out;
  }
  int max_pool(const std::vector<std::int32_t>& in, const std::string& name,
               const std::vector<std::int32_t>& shape, int filter, int stride, int padding = 0) {
    const int out = op(TfliteCode::kMaxPool2d, in, name, shape);
    options<schema::Pool2DBuilder>(schema::Options::Pool2D, [=](auto& b) {
      b.add_padding(static_cast<std::int8_t>(padding));
      b.add_stride_rows(stride);
      b.add_stride_columns(stride);
      b.add_filter_rows(filter);
      b.add_filter_columns(filter);
    });
    return out;
  }
  int resize(const std::vector<std::int32_t>& in, const std::string& name,
             const std::vector<std::int32_t>& shape, bool align_corners = false,
             bool half_pixel_centers = true) {
    const int out = op(TfliteCode::kResizeBilinear, in, name, shape);
    options<schema::ResizeBilinearBuilder>(schema::Options::ResizeBilinear, [=](auto& b) {
      b.add_align_corners(align_corners);
      b.add_half_pixel_centers(half_pixel_centers);
    });
    return out;
  }
  int concatenation(const std::vector<std::int32_t>& in, const std::string& name,
                    const std::vector<std::int32_t>& shape, int axis) {
    const int out = op(TfliteCode::kConcatenation, in, name, shape);
    options<schema::ConcatenationBuilder>(schema::Options::Concatenation, [=](auto& b) { b.add_axis(axis); });
    return out;
  }

  /// The file's bytes.
  std::string build() const {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<schema::Buffer>> buffers = {
        schema::CreateBuffer(builder, 0, 0, external)};  // buffer 0 is nobody's
    std::vector<flatbuffers::Offset<schema::Tensor>> made;
    made.reserve(tensors.size());
    for (const TestTfliteTensor& tensor : tensors) made.push_back(build_tensor(builder, tensor, buffers));
    std::map<std::tuple<TfliteCode, std::int32_t, std::string>, std::uint32_t> codes;
    std::vector<flatbuffers::Offset<schema::OperatorCode>> code_tables;
    std::vector<flatbuffers::Offset<schema::Operator>> ops;
    for (const TestTfliteOperator& op : operators) {
      const auto [at, is_new] =
          codes.try_emplace({op.code, op.version, op.custom}, static_cast<std::uint32_t>(codes.size()));
      if (is_new) {
        const auto number = static_cast<std::int32_t>(op.code);
        code_tables.push_back(schema::CreateOperatorCodeDirect(
            builder, static_cast<std::int8_t>(std::min(number, 127)),
            op.custom.empty() ? nullptr : op.custom.c_str(), op.version, number));
      }
      const flatbuffers::Offset<void> options = op.options ? op.options(builder) : 0;
      ops.push_back(
          schema::CreateOperatorDirect(builder, at->second, &op.inputs, &op.outputs, op.type, options));
    }
    std::vector<flatbuffers::Offset<schema::SubGraph>> graphs;
    graphs.reserve(static_cast<std::size_t>(subgraphs));
    for (int i = 0; i < subgraphs; ++i) {
      graphs.push_back(schema::CreateSubGraphDirect(builder, &made, &inputs, &outputs, &ops, "main"));
    }
    builder.Finish(schema::CreateModelDirect(builder, version, &code_tables, &graphs, "test", &buffers),
                   identifier);
    return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
  }

 private:
  int add(const TestTfliteTensor& tensor) {
    tensors.push_back(tensor);
    return static_cast<int>(tensors.size()) - 1;
  }
  template <typename T>
  static std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
  }
  std::vector<float> pattern(const std::vector<std::int32_t>& shape) const {
    std::size_t count = 1;
    for (const std::int32_t dim : shape) count *= static_cast<std::size_t>(dim);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] =
          static_cast<float>(std::sin(1.7 * static_cast<double>(i) + static_cast<double>(tensors.size())));
    }
    return values;
  }
  static flatbuffers::Offset<schema::Tensor> build_tensor(
      flatbuffers::FlatBufferBuilder& builder, const TestTfliteTensor& tensor,
      std::vector<flatbuffers::Offset<schema::Buffer>>& buffers) {
    auto buffer = static_cast<std::uint32_t>(tensor.buffer);
    if (tensor.buffer < 0) {
      buffer = tensor.data.empty() ? 0 : static_cast<std::uint32_t>(buffers.size());
      if (!tensor.data.empty()) {
        builder.ForceVectorAlignment(tensor.data.size(), 1, 16);
        const auto data = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(tensor.data.data()),
                                               tensor.data.size());
        buffers.push_back(schema::CreateBuffer(builder, data));
      }
    }
    flatbuffers::Offset<schema::Quantization> quantization = 0;
    if (!tensor.scales.empty()) {
      quantization = schema::CreateQuantizationDirect(builder, nullptr, nullptr, &tensor.scales);
    }
    flatbuffers::Offset<schema::Sparsity> sparsity = 0;
    if (tensor.sparse) sparsity = schema::CreateSparsity(builder);
    return schema::CreateTensorDirect(builder, &tensor.shape, tensor.type, buffer, tensor.name.c_str(),
                                      quantization, tensor.variable, sparsity);
  }
};

/// [1,8,8,3] in, output0 [1,20,6] and output1 [1,2] out, through each of the thirteen operators. 2 kB.
inline TestTflite test_tflite_network() {
  TestTflite net;
  const int input = net.computed("picture", {1, 8, 8, 3});
  const int first =
      net.conv({input, net.half("conv", {4, 3, 3, 3}), net.half("bias", {4})}, "first", {1, 4, 4, 4}, 2);
  const int slope = net.half("slope", {1, 1, 4});
  const int stem = net.op(TfliteCode::kPrelu, {first, slope}, "stem", {1, 4, 4, 4});
  const int wide = net.depthwise({stem, net.half("depthwise", {1, 5, 5, 4}), net.half("bias2", {4})}, "wide",
                                 {1, 4, 4, 4}, 1, 3);
  const int point =
      net.conv({wide, net.half("point", {4, 1, 1, 4}), net.half("bias3", {4})}, "point", {1, 4, 4, 4});
  const int sum = net.op(TfliteCode::kAdd, {stem, point}, "sum", {1, 4, 4, 4});
  const int block = net.op(TfliteCode::kPrelu, {sum, slope}, "block", {1, 4, 4, 4});
  const int pooled = net.max_pool({block}, "pooled", {1, 2, 2, 4}, 2, 2);
  const int padded =
      net.op(TfliteCode::kPad, {pooled, net.integers("paddings", {4, 2}, {0, 0, 0, 0, 0, 0, 0, 2})}, "padded",
             {1, 2, 2, 6});
  const int scaled = net.resize({padded, net.integers("size", {2}, {4, 4})}, "scaled", {1, 4, 4, 6});
  const int a =
      net.op(TfliteCode::kReshape, {scaled, net.integers("rows", {3}, {1, -1, 6})}, "a", {1, 16, 6});
  const int b = net.op(TfliteCode::kReshape, {padded}, "b", {1, 4, 6});
  const int rows = net.concatenation({a, b}, "rows", {1, 20, 6}, 1);
  const int mean = net.op(TfliteCode::kMean, {block, net.integers("axes", {2}, {1, 2})}, "mean", {1, 4});
  const int dense = net.op(TfliteCode::kFullyConnected,
                           {mean, net.half("matrix", {2, 4}), net.half("bias4", {2})}, "dense", {1, 2});
  const int score = net.op(TfliteCode::kLogistic, {dense}, "score", {1, 2});
  net.inputs = {input};
  net.outputs = {rows, score};
  return net;
}

}  // namespace sinew

// Convolutions and pooling, and the ADD and PRELU that go into the convolution before them.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/mediapipe/lowering.h"

namespace sinew::mediapipe {
namespace {

struct Padding {
  std::int64_t before = 0, after = 0;
};

/// SAME gives ceil(extent / stride) windows, the odd one of an uneven total behind.
Padding padding_of(TflitePadding padding, std::int64_t extent, std::int64_t filter, std::int64_t stride) {
  if (padding == TflitePadding::kValid) return {};
  const std::int64_t windows = (extent + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>((windows - 1) * stride + filter - extent, 0);
  return {total / 2, total - total / 2};
}

/// `options` is a TfliteConvolution or a TflitePool.
template <typename Options>
Window window_of(const Options& options, const Shape& picture, std::int64_t rows, std::int64_t columns) {
  const Padding vertical = padding_of(options.padding, picture[0], rows, options.stride_rows);
  const Padding horizontal = padding_of(options.padding, picture[1], columns, options.stride_columns);
  return {rows,
          columns,
          options.stride_rows,
          options.stride_columns,
          vertical.before,
          horizontal.before,
          vertical.after,
          horizontal.after};
}

void check_supported(const TfliteConvolution& options) {
  if (options.dilation_rows != 1) {
    throw fail(ErrorCode::kUnsupported, "dilation_rows is {}, expected 1", options.dilation_rows);
  }
  if (options.dilation_columns != 1) {
    throw fail(ErrorCode::kUnsupported, "dilation_columns is {}, expected 1", options.dilation_columns);
  }
  if (options.depth_multiplier != 1) {
    throw fail(ErrorCode::kUnsupported, "depth_multiplier is {}, expected 1", options.depth_multiplier);
  }
}

}  // namespace

void Lowering::convolution(const TfliteOperator& op) {
  const auto& options = std::get<TfliteConvolution>(op.options);
  check_supported(options);
  const int x = operand(op, 0);
  const Shape picture = picture_shape(x);
  const Shape& filter = tensor(operand(op, 1)).shape;
  if (filter.rank() != 4 || filter[3] != picture[2]) {
    throw fail(ErrorCode::kUnsupported, "the filter, {}, has the shape {}, expected [N,rows,columns,{}]",
               describe(operand(op, 1)), to_string(filter), picture[2]);
  }
  Convolution out;
  out.x = read(x);
  out.weight = weight(op, 1, filter);
  out.bias = bias(op, filter[0]);
  out.window = window_of(options, picture, filter[1], filter[2]);
  out.rectifier = rectifier_of(options.activation);
  wait_or_emit(op.outputs[0], std::move(out));
}

void Lowering::depthwise(const TfliteOperator& op) {
  const auto& options = std::get<TfliteConvolution>(op.options);
  check_supported(options);
  const int x = operand(op, 0);
  const Shape picture = picture_shape(x);
  const Shape& filter = tensor(operand(op, 1)).shape;
  if (filter.rank() != 4 || filter[0] != 1 || filter[3] != picture[2]) {
    throw fail(ErrorCode::kUnsupported, "the filter, {}, has the shape {}, expected [1,rows,columns,{}]",
               describe(operand(op, 1)), to_string(filter), picture[2]);
  }
  DepthwiseConvolution out;
  out.x = read(x);
  out.weight = weight(op, 1, {filter[1], filter[2], filter[3]});
  out.bias = bias(op, filter[3]);
  out.window = window_of(options, picture, filter[1], filter[2]);
  out.rectifier = rectifier_of(options.activation);
  wait_or_emit(op.outputs[0], std::move(out));
}

/// Input 2, or zeros where the file has none.
ValueId Lowering::bias(const TfliteOperator& op, std::int64_t channels) {
  if (op.inputs.size() > 2 && op.inputs[2] >= 0) return weight(op, 2, {channels});
  const int out = op.outputs[0];
  const std::string name = unique(out, "/no_bias");
  const Shape shape = {channels};
  plan_.add({name, "convolution", dtype_, shape, {}, {"zeros", [shape](const Sources&) {
                                                        return Tensor(DType::kF64, shape);
                                                      }}});
  return builder_.weight(name, dtype_, shape);
}

void Lowering::max_pool(const TfliteOperator& op) {
  const auto& options = std::get<TflitePool>(op.options);
  const int x = operand(op, 0);
  MaxPool out;
  out.window = window_of(options, picture_shape(x), options.filter_rows, options.filter_columns);
  out.x = read(x);
  emit(out, op.outputs[0], computed_shape(op.outputs[0]), rectifier_of(options.activation));
}

void Lowering::add(const TfliteOperator& op) {
  int a = operand(op, 0);
  int b = operand(op, 1);
  const int out = op.outputs[0];
  const Rectifier rectifier = rectifier_of(std::get<TfliteAdd>(op.options).activation);
  if (!(tensor(a).shape == tensor(b).shape)) {
    throw fail(ErrorCode::kUnsupported, "adds the shapes {} and {}, expected two of one shape",
               to_string(tensor(a).shape), to_string(tensor(b).shape));
  }
  // Of two convolutions that wait, the later one takes the other as its residual.
  const auto rank = [&](int number) {
    return fusible(number, out, true) ? static_cast<std::int64_t>(waiting_.at(number).since) : -1;
  };
  if (rank(b) > rank(a)) std::swap(a, b);
  if (rank(a) >= 0) {
    AnyConvolution fused = take(a);
    auto& convolution = std::get<Convolution>(fused);
    convolution.residual = read(b);
    convolution.rectifier = rectifier;
    return wait_or_emit(out, std::move(fused));
  }
  Add plain;
  plain.a = read(a);
  plain.b = read(b);
  emit(plain, out, computed_shape(out), rectifier);
}

void Lowering::prelu(const TfliteOperator& op) {
  const int x = operand(op, 0);
  const int out = op.outputs[0];
  const Shape& slopes = tensor(constant(op, 1)).shape;
  const Shape shape = computed_shape(x);
  if (shape.rank() == 0 || slopes.rank() == 0 || slopes.count() != shape.back() ||
      slopes.back() != shape.back()) {
    throw fail(ErrorCode::kUnsupported, "has slopes of shape {} for {}, expected one for each channel",
               to_string(slopes), to_string(tensor(x).shape));
  }
  const ValueId slope = weight(op, 1, {shape.back()});
  if (fusible(x, out, false)) {
    AnyConvolution fused = take(x);
    std::visit(
        [&](auto& convolution) {
          convolution.slope = slope;
          convolution.rectifier = Rectifier::kPRelu;
        },
        fused);
    return emit_convolution(out, std::move(fused));
  }
  Rectify plain;
  plain.x = read(x);
  plain.slope = slope;
  plain.rectifier = Rectifier::kPRelu;
  emit(plain, out, computed_shape(out));
}

/// True when the one reader of the result can go into the convolution.
bool Lowering::may_wait(int number, const AnyConvolution& op) const {
  const auto index = static_cast<std::size_t>(number);
  if (!end_names_[index].empty() || readers_[index] != 1) return false;
  if (reader_[index] <= static_cast<int>(at_)) return false;  // an error that the reader will get
  if (std::visit([](const auto& convolution) { return convolution.rectifier; }, op) != Rectifier::kNone) {
    return false;
  }
  const TfliteOperator& next = file_->operators()[static_cast<std::size_t>(reader_[index])];
  if (next.code == TfliteCode::kPrelu) return true;
  const auto* convolution = std::get_if<Convolution>(&op);
  return next.code == TfliteCode::kAdd && convolution != nullptr && !convolution->residual;
}

void Lowering::wait_or_emit(int number, AnyConvolution op) {
  if (may_wait(number, op)) {
    waiting_.emplace(number, Waiting{std::move(op), at_});
  } else {
    emit_convolution(number, std::move(op));
  }
}

void Lowering::emit_convolution(int number, AnyConvolution op) {
  std::visit([&](auto& convolution) { emit(std::move(convolution), number, computed_shape(number)); }, op);
}

/// Whether what waits for `number` can end as tensor `out`.
bool Lowering::fusible(int number, int out, bool with_residual) const {
  const auto found = waiting_.find(number);
  if (found == waiting_.end() || !(tensor(number).shape == tensor(out).shape)) return false;
  return !with_residual || std::holds_alternative<Convolution>(found->second.op);
}

Lowering::AnyConvolution Lowering::take(int number) {
  const auto found = waiting_.find(number);
  AnyConvolution op = std::move(found->second.op);
  waiting_.erase(found);
  return op;
}

}  // namespace sinew::mediapipe

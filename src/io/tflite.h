// TFLite model files: one graph of operators over numbered tensors, some of which hold constants.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/checkpoint.h"

namespace sinew {

/// TFLite's operator numbers, as far as they are needed; to_string() knows all.
enum class TfliteCode : std::int32_t {
  kAdd = 0,
  kConcatenation = 2,
  kConv2d = 3,
  kDepthwiseConv2d = 4,
  kDequantize = 6,
  kFullyConnected = 9,
  kLogistic = 14,
  kMaxPool2d = 17,
  kReshape = 22,
  kResizeBilinear = 23,
  kCustom = 32,
  kPad = 34,
  kMean = 40,
  kPrelu = 54,
};

/// "CONV_2D"; "operator 300" for a number that has no name here.
std::string to_string(TfliteCode code);

/// kSame: as much padding as gives ceil(extent / stride) windows; kValid: none.
enum class TflitePadding : std::int8_t { kSame = 0, kValid = 1 };

/// What an operator does to its result at last.
enum class TfliteActivation : std::int8_t {
  kNone = 0,
  kRelu = 1,
  kReluN1To1 = 2,
  kRelu6 = 3,
  kTanh = 4,
  kSignBit = 5
};

/// "RELU6"
std::string_view to_string(TfliteActivation activation);

/// CONV_2D and DEPTHWISE_CONV_2D. Strides and dilations are at least one.
struct TfliteConvolution {
  TflitePadding padding = TflitePadding::kSame;
  std::int32_t stride_rows = 1, stride_columns = 1;
  std::int32_t dilation_rows = 1, dilation_columns = 1;
  std::int32_t depth_multiplier = 1;  // of DEPTHWISE_CONV_2D
  TfliteActivation activation = TfliteActivation::kNone;
};

/// MAX_POOL_2D. Strides and filter extents are at least one.
struct TflitePool {
  TflitePadding padding = TflitePadding::kSame;
  std::int32_t stride_rows = 1, stride_columns = 1;
  std::int32_t filter_rows = 1, filter_columns = 1;
  TfliteActivation activation = TfliteActivation::kNone;
};

struct TfliteFullyConnected {
  TfliteActivation activation = TfliteActivation::kNone;
  std::int8_t weights_format = 0;  // 0: [N,K]
  bool keep_num_dims = false;
};

struct TfliteConcatenation {
  std::int32_t axis = 0;
  TfliteActivation activation = TfliteActivation::kNone;
};

struct TfliteAdd {
  TfliteActivation activation = TfliteActivation::kNone;
};

struct TfliteResizeBilinear {
  bool align_corners = false;
  bool half_pixel_centers = false;
};

/// MEAN
struct TfliteReducer {
  bool keep_dims = false;
};

using TfliteOptions = std::variant<std::monostate, TfliteConvolution, TflitePool, TfliteFullyConnected,
                                   TfliteConcatenation, TfliteAdd, TfliteResizeBilinear, TfliteReducer>;

struct TfliteTensor {
  std::string name;  // unique in its file: an empty or repeated name gets its number behind it, "add#12"
  DType dtype = DType::kF32;
  Shape shape;
  bool constant = false;  // its data is tensors().at(name)
};

struct TfliteOperator {
  TfliteCode code = TfliteCode::kCustom;
  std::string name;  // to_string(code), or "CUSTOM 'name'"
  std::int32_t version = 1;
  std::vector<int> inputs;  // tensor numbers; -1: absent
  std::vector<int> outputs;
  /// Of the alternative that belongs to `code`; absent options have TFLite's defaults. monostate: this code
  /// has none that are read.
  TfliteOptions options;
};

/// The one subgraph of a file. tensors() holds the constants; `graph_tensors()` all.
class TfliteFile : public Checkpoint {
 public:
  std::string_view format() const override { return "tflite"; }
  const std::vector<TfliteTensor>& graph_tensors() const { return graph_tensors_; }
  /// In the order of the file, in which they run.
  const std::vector<TfliteOperator>& operators() const { return operators_; }
  /// Tensor numbers.
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }

 protected:
  using Checkpoint::Checkpoint;
  std::vector<TfliteTensor> graph_tensors_;
  std::vector<TfliteOperator> operators_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
};

/// True for bytes that claim to be TFLite: the identifier TFL3 at offset 4.
bool is_tflite(std::span<const std::byte> bytes);

/// Opens and checks a file. Throws Error: kNotFound, kFormat (names the tensor or operator by number and
/// name, the value and what was expected), kLimit (counts, names, ranks beyond what any real file has),
/// kUnsupported (several subgraphs, variable, sparse, quantised or external tensors, element types that are
/// not ours). Whether operators and shapes fit each other is not checked here, nor is the order of operators.
std::shared_ptr<const TfliteFile> open_tflite(const std::string& path);

/// open_tflite as open_checkpoint hands it out.
std::unique_ptr<Checkpoint> open_tflite_checkpoint(const std::string& path);

/// The same over bytes in memory, which are copied when they do not lie on a 16-byte boundary and must
/// outlive the result otherwise; `name` stands for the path in messages.
std::shared_ptr<const TfliteFile> parse_tflite(std::span<const std::byte> bytes, const std::string& name);

}  // namespace sinew

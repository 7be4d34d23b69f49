// The reader of TFLite files. Everything is hostile: FlatBuffers' verifier comes first (every offset, table
// and vector lies inside the bytes), then counts and names are bounded before anything is copied, because
// tables and vectors may be shared: a file of a few MB can state the same vector a million times.
#include "io/tflite.h"

#include <flatbuffers/flatbuffers.h>
#include <io/tflite_schema.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/bytes.h"
#include "io/mapped_file.h"

namespace sinew {
namespace {

namespace schema = tflite::schema;

// The largest of the four hand networks has 272 operators, 413 tensors and names of 366 bytes.
constexpr std::uint32_t kMaxTensors = 20'000;
constexpr std::uint32_t kMaxOperators = 10'000;
constexpr std::uint32_t kMaxOperands = 256;  // of one operator
constexpr std::uint32_t kMaxEnds = 256;      // graph inputs, graph outputs
constexpr std::uint32_t kMaxNameBytes = 4096;
constexpr std::uint64_t kMaxConstantBytes = std::uint64_t{1}
                                            << 30;  // over all tensors, shared data counts again
constexpr std::int64_t kMaxComputedElements = std::int64_t{1} << 28;  // over all tensors: 1 GB as f32
constexpr std::uint32_t kMaxDepth = 8;                                // Model, SubGraph, Tensor, Quantization
// Two more tables with each tensor, one more with each operator, and buffers and operator codes.
constexpr std::uint32_t kMaxTables = 5 * kMaxTensors + 3 * kMaxOperators;
constexpr std::size_t kAlignment = 16;

/// TFLite's element types in order of their numbers; nothing for those that have no DType.
struct ElementType {
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr auto kTypes = std::to_array<ElementType>({{"FLOAT32", DType::kF32},
                                                    {"FLOAT16", DType::kF16},
                                                    {"INT32", DType::kI32},
                                                    {"UINT8", DType::kU8},
                                                    {"INT64", DType::kI64},
                                                    {"STRING", {}},
                                                    {"BOOL", DType::kBool},
                                                    {"INT16", DType::kI16},
                                                    {"COMPLEX64", {}},
                                                    {"INT8", DType::kI8},
                                                    {"FLOAT64", DType::kF64},
                                                    {"COMPLEX128", {}},
                                                    {"UINT64", DType::kU64},
                                                    {"RESOURCE", {}},
                                                    {"VARIANT", {}},
                                                    {"UINT32", DType::kU32},
                                                    {"UINT16", DType::kU16},
                                                    {"INT4", {}},
                                                    {"BFLOAT16", DType::kBF16}});

template <typename T>
std::uint32_t size_of_vector(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

std::string_view text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->c_str(), text->size());
}

class ParsedTflite final : public TfliteFile {
 public:
  explicit ParsedTflite(MappedFile file) : TfliteFile(file.path()), file_(std::move(file)) {
    read(file_.bytes());
  }
  ParsedTflite(std::span<const std::byte> bytes, const std::string& name) : TfliteFile(name) {
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment != 0) {
      copy_ = AlignedBuffer(bytes.size());
      std::copy(bytes.begin(), bytes.end(), copy_.data());
      bytes = {copy_.data(), copy_.size()};
    }
    read(bytes);
  }
  void release(const TensorView& view) const override {
    if (!file_.bytes().empty()) file_.release(view.data, view.bytes());
  }

 private:
  void read(std::span<const std::byte> bytes);
  void read_tensors(const schema::Model& model, const schema::SubGraph& graph);
  void read_tensor(const schema::Tensor& stated, const schema::Model& model);
  Shape read_shape(const schema::Tensor& stated) const;
  DType read_type(const schema::Tensor& stated) const;
  void check_plain(const schema::Tensor& stated) const;
  void read_constant(const schema::Tensor& stated, const schema::Model& model, TfliteTensor& tensor);
  void name_tensors();
  void read_operators(const schema::Model& model, const schema::SubGraph& graph);
  void read_code(const schema::Model& model, std::uint32_t index, TfliteOperator& op) const;
  TfliteOptions read_options(const schema::Operator& stated, TfliteCode code) const;
  std::vector<int> read_numbers(const flatbuffers::Vector<std::int32_t>* numbers, std::string_view what,
                                std::uint32_t most, bool may_be_absent) const;
  template <typename T>
  const T* options_table(const schema::Operator& stated, schema::Options type) const;
  TfliteActivation activation(std::int8_t value) const;
  TflitePadding padding(std::int8_t value) const;
  std::int32_t positive(std::int32_t value, std::string_view field) const;
  void bounded(std::uint32_t count, std::uint32_t most, std::string_view what) const;

  /// An error that names the file and what is being read.
  template <typename... Args>
  Error breach(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return {code, fmt::format("{}: {}{}", path_, where_, fmt::format(format, std::forward<Args>(args)...))};
  }

  MappedFile file_;     // empty when the bytes are the caller's
  AlignedBuffer copy_;  // of those, when they were not aligned
  std::string where_;   // "tensor 12 'name': ", for messages
  std::uint64_t constant_bytes_ = 0;
  std::int64_t computed_elements_ = 0;
  std::map<std::size_t, TensorView> constants_;  // by tensor number, until names are settled
};

void ParsedTflite::bounded(std::uint32_t count, std::uint32_t most, std::string_view what) const {
  if (count > most) throw breach(ErrorCode::kLimit, "{} {}, expected at most {}", count, what, most);
}

void ParsedTflite::read(std::span<const std::byte> bytes) {
  if (!is_tflite(bytes)) {
    throw breach(ErrorCode::kFormat,
                 "is not a TFLite file: the identifier 'TFL3' is not at offset 4 of its {} bytes",
                 bytes.size());
  }
  // FlatBuffers' offsets are signed 32-bit numbers.
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    throw breach(ErrorCode::kLimit, "has {} bytes, expected less than {}", bytes.size(),
                 FLATBUFFERS_MAX_BUFFER_SIZE);
  }
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(first, bytes.size(), kMaxDepth, kMaxTables);
  if (!schema::VerifyModelBuffer(verifier)) {
    throw breach(
        ErrorCode::kFormat,
        "an offset, length or table is wrong or leaves the file, which has {} bytes (is it truncated?)",
        bytes.size());
  }
  const schema::Model& model = *schema::GetModel(first);
  if (model.version() != 3) {
    throw breach(ErrorCode::kUnsupported, "schema version {}, expected 3", model.version());
  }
  if (size_of_vector(model.subgraphs()) != 1) {
    throw breach(ErrorCode::kUnsupported, "{} subgraphs, expected 1", size_of_vector(model.subgraphs()));
  }
  const schema::SubGraph& graph = *model.subgraphs()->Get(0);
  read_tensors(model, graph);
  read_operators(model, graph);
  where_ = "graph inputs: ";
  inputs_ = read_numbers(graph.inputs(), "inputs", kMaxEnds, false);
  where_ = "graph outputs: ";
  outputs_ = read_numbers(graph.outputs(), "outputs", kMaxEnds, false);
  metadata_.emplace("operators", fmt::format("{}", operators_.size()));
}

void ParsedTflite::read_tensors(const schema::Model& model, const schema::SubGraph& graph) {
  const std::uint32_t count = size_of_vector(graph.tensors());
  bounded(count, kMaxTensors, "tensors");
  graph_tensors_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const schema::Tensor& stated = *graph.tensors()->Get(i);
    where_ = fmt::format("tensor {} {}: ", i, quoted(text_of(stated.name())));
    read_tensor(stated, model);
  }
  where_.clear();
  name_tensors();
}

void ParsedTflite::read_tensor(const schema::Tensor& stated, const schema::Model& model) {
  TfliteTensor tensor;
  const std::string_view name = text_of(stated.name());
  if (name.size() > kMaxNameBytes) {
    throw breach(ErrorCode::kLimit, "its name has {} bytes, expected at most {}", name.size(), kMaxNameBytes);
  }
  tensor.name = name;
  check_plain(stated);
  tensor.dtype = read_type(stated);
  tensor.shape = read_shape(stated);
  read_constant(stated, model, tensor);
  if (!tensor.constant) {
    // No overflow: an extent is below 2^31, and Shape has checked the product.
    computed_elements_ += std::min(tensor.shape.count(), kMaxComputedElements + 1);
    if (computed_elements_ > kMaxComputedElements) {
      throw breach(ErrorCode::kLimit, "with its shape {} computed tensors have more than {} elements",
                   to_string(tensor.shape), kMaxComputedElements);
    }
  }
  graph_tensors_.push_back(std::move(tensor));
}

/// Neither variable nor sparse nor quantised. A quantization table with ranges alone is a remark.
void ParsedTflite::check_plain(const schema::Tensor& stated) const {
  if (stated.is_variable()) throw breach(ErrorCode::kUnsupported, "is a variable tensor");
  if (stated.sparsity() != nullptr) throw breach(ErrorCode::kUnsupported, "is a sparse tensor");
  const schema::Quantization* quantization = stated.quantization();
  if (quantization == nullptr) return;
  const std::uint32_t scales = size_of_vector(quantization->scale());
  const std::uint32_t zeros = size_of_vector(quantization->zero_point());
  if (scales != 0 || zeros != 0) {
    throw breach(ErrorCode::kUnsupported, "is quantised ({} scales, {} zero points), expected plain numbers",
                 scales, zeros);
  }
}

DType ParsedTflite::read_type(const schema::Tensor& stated) const {
  const std::int8_t type = stated.type();
  if (type < 0 || static_cast<std::size_t>(type) >= kTypes.size()) {
    throw breach(ErrorCode::kFormat, "element type {}, expected 0 to {}", type, kTypes.size() - 1);
  }
  const ElementType& known = kTypes.at(static_cast<std::size_t>(type));
  if (!known.dtype) throw breach(ErrorCode::kUnsupported, "element type {} is not supported", known.name);
  return *known.dtype;
}

Shape ParsedTflite::read_shape(const schema::Tensor& stated) const {
  const std::uint32_t rank = size_of_vector(stated.shape());
  bounded(rank, Shape::kMaxRank, "axes");
  std::vector<std::int64_t> dims;
  std::int64_t product = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const std::int64_t dim = stated.shape()->Get(i);
    if (dim < 0) throw breach(ErrorCode::kFormat, "axis {} has the extent {}", i, dim);
    dims.push_back(dim);
    // As Shape does: zeros aside.
    const auto next = checked_mul<std::int64_t>(product, std::max<std::int64_t>(dim, 1));
    if (!next) throw breach(ErrorCode::kLimit, "its extents overflow a 63-bit number of elements");
    product = *next;
  }
  return Shape(dims);
}

void ParsedTflite::read_constant(const schema::Tensor& stated, const schema::Model& model,
                                 TfliteTensor& tensor) {
  const std::uint32_t index = stated.buffer();
  const std::uint32_t buffers = size_of_vector(model.buffers());
  if (index >= buffers) {
    throw breach(ErrorCode::kFormat, "buffer {} does not exist, the file has {}", index, buffers);
  }
  const schema::Buffer& buffer = *model.buffers()->Get(index);
  if (buffer.offset() != 0 || buffer.size() != 0) {
    throw breach(ErrorCode::kUnsupported,
                 "its data lies outside of the FlatBuffer (buffer {}, offset {}, size {})", index,
                 buffer.offset(), buffer.size());
  }
  const std::uint64_t bytes = size_of_vector(buffer.data());
  if (bytes == 0) return;
  const auto wanted =
      checked_mul<std::uint64_t>(static_cast<std::uint64_t>(tensor.shape.count()), size_of(tensor.dtype));
  if (!wanted || *wanted != bytes) {
    throw breach(ErrorCode::kFormat, "buffer {} has {} bytes, but {} of {} takes {}", index, bytes,
                 to_string(tensor.shape), to_string(tensor.dtype),
                 wanted ? fmt::format("{}", *wanted) : std::string("more than 64 bits can say"));
  }
  constant_bytes_ += bytes;
  if (constant_bytes_ > kMaxConstantBytes) {
    throw breach(ErrorCode::kLimit, "with it constants take more than {} bytes", kMaxConstantBytes);
  }
  tensor.constant = true;
  constants_.emplace(graph_tensors_.size(), TensorView(tensor.dtype, tensor.shape, buffer.data()->data()));
}

/// Makes names unique and enters the constants under them.
void ParsedTflite::name_tensors() {
  std::map<std::string, int> uses;
  for (const TfliteTensor& tensor : graph_tensors_) ++uses[tensor.name];
  std::set<std::string> taken;
  for (const auto& [name, count] : uses) {
    if (count == 1 && !name.empty()) taken.insert(name);
  }
  for (std::size_t i = 0; i < graph_tensors_.size(); ++i) {
    std::string& name = graph_tensors_[i].name;
    if (name.empty() || uses.at(name) > 1) {
      do name += fmt::format("#{}", i);
      while (!taken.insert(name).second);
    }
    if (graph_tensors_[i].constant) tensors_.emplace(name, constants_.at(i));
  }
  constants_.clear();
}

void ParsedTflite::read_operators(const schema::Model& model, const schema::SubGraph& graph) {
  const std::uint32_t count = size_of_vector(graph.operators());
  bounded(count, kMaxOperators, "operators");
  operators_.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const schema::Operator& stated = *graph.operators()->Get(i);
    where_ = fmt::format("operator {}: ", i);
    TfliteOperator op;
    read_code(model, stated.opcode_index(), op);
    where_ = fmt::format("operator {} {}: ", i, op.name);
    op.inputs = read_numbers(stated.inputs(), "inputs", kMaxOperands, true);
    op.outputs = read_numbers(stated.outputs(), "outputs", kMaxOperands, false);
    op.options = read_options(stated, op.code);
    operators_.push_back(std::move(op));
  }
  where_.clear();
}

void ParsedTflite::read_code(const schema::Model& model, std::uint32_t index, TfliteOperator& op) const {
  const std::uint32_t codes = size_of_vector(model.operator_codes());
  if (index >= codes) {
    throw breach(ErrorCode::kFormat, "operator code {} does not exist, the file has {}", index, codes);
  }
  const schema::OperatorCode& code = *model.operator_codes()->Get(index);
  const std::int32_t number = std::max<std::int32_t>(code.deprecated_builtin_code(), code.builtin_code());
  if (number < 0) throw breach(ErrorCode::kFormat, "operator code {} is the number {}", index, number);
  op.code = static_cast<TfliteCode>(number);
  op.version = code.version();
  op.name = to_string(op.code);
  if (op.code == TfliteCode::kCustom) op.name += " " + quoted(text_of(code.custom_code()));
}

std::vector<int> ParsedTflite::read_numbers(const flatbuffers::Vector<std::int32_t>* numbers,
                                            std::string_view what, std::uint32_t most,
                                            bool may_be_absent) const {
  const std::uint32_t count = size_of_vector(numbers);
  bounded(count, most, what);
  std::vector<int> out;
  out.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t number = numbers->Get(i);
    const bool absent = may_be_absent && number == -1;
    if (!absent && (number < 0 || number >= static_cast<std::int64_t>(graph_tensors_.size()))) {
      throw breach(ErrorCode::kFormat,
                   "number {} of its {} is tensor {}, which does not exist; the graph has {}", i, what,
                   number, graph_tensors_.size());
    }
    out.push_back(number);
  }
  return out;
}

/// The operator's options, null when there are none.
template <typename T>
const T* ParsedTflite::options_table(const schema::Operator& stated, schema::Options type) const {
  if (stated.options_type() == schema::Options::NONE || stated.options() == nullptr) return nullptr;
  if (stated.options_type() != type) {
    throw breach(ErrorCode::kFormat, "its options are of type {}, expected {}",
                 static_cast<int>(stated.options_type()), static_cast<int>(type));
  }
  return static_cast<const T*>(stated.options());
}

TfliteActivation ParsedTflite::activation(std::int8_t value) const {
  if (value < 0 || value > static_cast<std::int8_t>(TfliteActivation::kSignBit)) {
    throw breach(ErrorCode::kFormat, "fused activation {}, expected 0 to 5", value);
  }
  return static_cast<TfliteActivation>(value);
}

TflitePadding ParsedTflite::padding(std::int8_t value) const {
  if (value != 0 && value != 1) throw breach(ErrorCode::kFormat, "padding {}, expected 0 or 1", value);
  return static_cast<TflitePadding>(value);
}

std::int32_t ParsedTflite::positive(std::int32_t value, std::string_view field) const {
  if (value < 1) throw breach(ErrorCode::kFormat, "{} is {}, expected at least 1", field, value);
  return value;
}

TfliteOptions ParsedTflite::read_options(const schema::Operator& stated, TfliteCode code) const {
  const auto convolution = [&](const auto* table) -> TfliteConvolution {
    if (table == nullptr) throw breach(ErrorCode::kFormat, "has no options, expected strides and padding");
    return {padding(table->padding()),
            positive(table->stride_rows(), "stride_rows"),
            positive(table->stride_columns(), "stride_columns"),
            positive(table->dilation_rows(), "dilation_rows"),
            positive(table->dilation_columns(), "dilation_columns"),
            1,
            activation(table->activation())};
  };
  switch (code) {
    case TfliteCode::kConv2d:
      return convolution(options_table<schema::Conv2D>(stated, schema::Options::Conv2D));
    case TfliteCode::kDepthwiseConv2d: {
      const auto* table = options_table<schema::DepthwiseConv2D>(stated, schema::Options::DepthwiseConv2D);
      TfliteConvolution out = convolution(table);
      out.depth_multiplier = table->depth_multiplier();
      return out;
    }
    case TfliteCode::kMaxPool2d: {
      const auto* table = options_table<schema::Pool2D>(stated, schema::Options::Pool2D);
      if (table == nullptr) throw breach(ErrorCode::kFormat, "has no options, expected strides and filter");
      return TflitePool{padding(table->padding()),
                        positive(table->stride_rows(), "stride_rows"),
                        positive(table->stride_columns(), "stride_columns"),
                        positive(table->filter_rows(), "filter_rows"),
                        positive(table->filter_columns(), "filter_columns"),
                        activation(table->activation())};
    }
    case TfliteCode::kFullyConnected: {
      const auto* table = options_table<schema::FullyConnected>(stated, schema::Options::FullyConnected);
      if (table == nullptr) return TfliteFullyConnected{};
      return TfliteFullyConnected{activation(table->activation()), table->weights_format(),
                                  table->keep_num_dims()};
    }
    case TfliteCode::kConcatenation: {
      const auto* table = options_table<schema::Concatenation>(stated, schema::Options::Concatenation);
      if (table == nullptr) return TfliteConcatenation{};
      return TfliteConcatenation{table->axis(), activation(table->activation())};
    }
    case TfliteCode::kAdd: {
      const auto* table = options_table<schema::Add>(stated, schema::Options::Add);
      return table == nullptr ? TfliteAdd{} : TfliteAdd{activation(table->activation())};
    }
    case TfliteCode::kResizeBilinear: {
      const auto* table = options_table<schema::ResizeBilinear>(stated, schema::Options::ResizeBilinear);
      if (table == nullptr) return TfliteResizeBilinear{};
      return TfliteResizeBilinear{table->align_corners(), table->half_pixel_centers()};
    }
    case TfliteCode::kMean: {
      const auto* table = options_table<schema::Reducer>(stated, schema::Options::Reducer);
      return table == nullptr ? TfliteReducer{} : TfliteReducer{table->keep_dims()};
    }
    default:
      return std::monostate();
  }
}

}  // namespace

bool is_tflite(std::span<const std::byte> bytes) {
  return bytes.size() >= 8 && as_text(bytes).substr(4, 4) == schema::ModelIdentifier();
}

std::shared_ptr<const TfliteFile> open_tflite(const std::string& path) {
  return std::make_shared<ParsedTflite>(MappedFile::open(path));
}

std::unique_ptr<Checkpoint> open_tflite_checkpoint(const std::string& path) {
  return std::make_unique<ParsedTflite>(MappedFile::open(path));
}

std::shared_ptr<const TfliteFile> parse_tflite(std::span<const std::byte> bytes, const std::string& name) {
  return std::make_shared<ParsedTflite>(bytes, name);
}

}  // namespace sinew

#include "models/mediapipe/graph.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "io/bytes.h"
#include "models/mediapipe/lowering.h"

namespace sinew::mediapipe {

const std::array<Lowering::Form, 13> Lowering::kForms = {{
    {TfliteCode::kConv2d, 2, 3, &Lowering::convolution},
    {TfliteCode::kDepthwiseConv2d, 2, 3, &Lowering::depthwise},
    {TfliteCode::kPrelu, 2, 2, &Lowering::prelu},
    {TfliteCode::kAdd, 2, 2, &Lowering::add},
    {TfliteCode::kMaxPool2d, 1, 1, &Lowering::max_pool},
    {TfliteCode::kPad, 2, 2, &Lowering::pad},
    {TfliteCode::kResizeBilinear, 2, 2, &Lowering::resize_bilinear},
    {TfliteCode::kReshape, 1, 2, &Lowering::reshape},
    {TfliteCode::kConcatenation, 1, 256, &Lowering::concatenation},
    {TfliteCode::kDequantize, 1, 1, &Lowering::dequantize},
    {TfliteCode::kMean, 2, 2, &Lowering::mean},
    {TfliteCode::kFullyConnected, 2, 3, &Lowering::fully_connected},
    {TfliteCode::kLogistic, 1, 1, &Lowering::logistic},
}};

Lowering::Lowering(std::shared_ptr<const TfliteFile> file, Policy policy)
    : file_(std::move(file)), dtype_(stream_dtype(policy)), builder_(file_->path()) {
  if (policy != Policy::kF32 && policy != Policy::kF64) {
    throw fail(ErrorCode::kUnsupported, "{}: policy {}: TFLite networks run in f32 or f64", file_->path(),
               to_string(policy));
  }
  const std::size_t count = file_->graph_tensors().size();
  end_names_.resize(count);
  values_.resize(count);
  claimed_.resize(count);
  sources_.assign(count, -1);
  readers_.assign(count, 0);
  reader_.assign(count, -1);
  for (std::size_t i = 0; i < count; ++i) {
    if (!file_->graph_tensors()[i].constant) continue;
    claimed_[i] = true;
    sources_[i] = static_cast<int>(i);
  }
}

Graph Lowering::run() {
  try {
    declare_inputs();
    declare_outputs();
  } catch (const Error& error) {
    throw error.prefixed(fmt::format("{}: ", file_->path()));
  }
  count_readers();
  for (const TfliteOperator& op : file_->operators()) {
    try {
      lower_operator(op);
    } catch (const Error& error) {
      throw error.prefixed(
          fmt::format("{}: operator {} {} (version {}): ", file_->path(), at_, op.name, op.version));
    }
    ++at_;
  }
  check_outputs_written();
  Graph graph;
  graph.program = builder_.finish();
  graph.plan = std::move(plan_);
  graph.sources.add_all(file_);
  return graph;
}

void Lowering::declare_inputs() {
  const std::vector<int>& inputs = file_->inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::string name = inputs.size() == 1 ? "input" : fmt::format("input{}", i);
    claim(inputs[i]);
    values_[static_cast<std::size_t>(inputs[i])] = builder_.input(name, dtype_, computed_shape(inputs[i]));
    names_.insert(std::move(name));
  }
}

/// Outputs get their names now, so that no other value takes them, and their values when they are written.
void Lowering::declare_outputs() {
  const std::vector<int>& outputs = file_->outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::string& name = end_names_[static_cast<std::size_t>(outputs[i])];
    if (!name.empty()) {
      throw fail(ErrorCode::kUnsupported, "{} is two outputs of the graph: {} and output{}",
                 describe(outputs[i]), name, i);
    }
    if (claimed_[static_cast<std::size_t>(outputs[i])]) {
      throw fail(ErrorCode::kUnsupported, "output {} of the graph is {}, which no operator computes", i,
                 describe(outputs[i]));
    }
    name = fmt::format("output{}", i);
    names_.insert(name);
  }
}

void Lowering::count_readers() {
  int number = 0;
  for (const TfliteOperator& op : file_->operators()) {
    for (const int input : op.inputs) {
      if (input < 0) continue;
      ++readers_[static_cast<std::size_t>(input)];
      reader_[static_cast<std::size_t>(input)] = number;
    }
    ++number;
  }
}

void Lowering::lower_operator(const TfliteOperator& op) {
  const auto* form =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& known) { return known.code == op.code; });
  if (form == kForms.end()) {
    std::string known;
    for (const Form& each : kForms) known += (known.empty() ? "" : ", ") + to_string(each.code);
    throw Error(ErrorCode::kUnsupported, "the operator is not supported", "known operators: " + known);
  }
  if (op.inputs.size() < form->fewest || op.inputs.size() > form->most) {
    throw fail(ErrorCode::kMismatch, "has {} inputs, expected {} to {}", op.inputs.size(), form->fewest,
               form->most);
  }
  if (op.outputs.size() != 1) {
    throw fail(ErrorCode::kMismatch, "has {} outputs, expected 1", op.outputs.size());
  }
  claim(op.outputs[0]);
  (this->*form->lower)(op);
}

void Lowering::check_outputs_written() const {
  for (const int output : file_->outputs()) {
    if (!values_[static_cast<std::size_t>(output)]) {
      throw fail(ErrorCode::kMismatch, "{}: {} is an output of the graph, but has no computed value",
                 file_->path(), describe(output));
    }
  }
}

const TfliteTensor& Lowering::tensor(int number) const {
  return file_->graph_tensors()[static_cast<std::size_t>(number)];
}

std::string Lowering::describe(int number) const {
  return fmt::format("tensor {} {}", number, quoted(tensor(number).name));
}

int Lowering::operand(const TfliteOperator& op, std::size_t index) const {
  const int number = op.inputs.at(index);
  if (number < 0) throw fail(ErrorCode::kMismatch, "input {} is absent", index);
  return number;
}

/// The shape of a tensor's value: without the batch axis where there is one.
Shape Lowering::computed_shape(int number) const {
  const TfliteTensor& stated = tensor(number);
  if (stated.dtype != DType::kF32) {
    throw fail(ErrorCode::kUnsupported, "{} is {}, expected f32: other arithmetic is not supported",
               describe(number), to_string(stated.dtype));
  }
  if (stated.shape.count() == 0) {
    throw fail(ErrorCode::kUnsupported, "{} has the shape {}, expected no empty axis", describe(number),
               to_string(stated.shape));
  }
  if (stated.shape.rank() < 2) return stated.shape;
  if (stated.shape[0] != 1) {
    throw fail(ErrorCode::kUnsupported, "{} has the shape {}, a batch of {}, expected 1", describe(number),
               to_string(stated.shape), stated.shape[0]);
  }
  if (stated.shape.rank() == 2) return stated.shape;
  return Shape(stated.shape.dims().subspan(1));
}

Shape Lowering::picture_shape(int number) const {
  const Shape shape = computed_shape(number);
  if (shape.rank() != 3) {
    throw fail(ErrorCode::kUnsupported, "{} has the shape {}, expected [1,rows,columns,channels]",
               describe(number), to_string(tensor(number).shape));
  }
  return shape;
}

/// A new value name for a tensor: the first of the names that TFLite's converter joined with semicolons, then
/// `suffix`, then the tensor's number as often as it takes.
std::string Lowering::unique(int number, std::string_view suffix) {
  const std::string& name = tensor(number).name;
  std::string out = fmt::format("{}{}", std::string_view(name).substr(0, name.find(';')), suffix);
  while (!names_.insert(out).second) out += fmt::format("#{}", number);
  return out;
}

/// A tensor gets its value once.
void Lowering::claim(int number) {
  if (claimed_[static_cast<std::size_t>(number)]) {
    throw fail(ErrorCode::kMismatch, "{} already has a value", describe(number));
  }
  claimed_[static_cast<std::size_t>(number)] = true;
}

ValueId Lowering::declare(int number) {
  const std::string& end = end_names_[static_cast<std::size_t>(number)];
  const Shape shape = computed_shape(number);
  const ValueId id =
      end.empty() ? builder_.local(unique(number), dtype_, shape) : builder_.output(end, dtype_, shape);
  values_[static_cast<std::size_t>(number)] = id;
  return id;
}

ValueId Lowering::scratch(int number, std::string_view suffix, const Shape& shape) {
  return builder_.local(unique(number, suffix), dtype_, shape);
}

/// The value of a computed tensor; a convolution that waited for something else is emitted now.
ValueId Lowering::read(int number) {
  if (sources_[static_cast<std::size_t>(number)] >= 0) {
    throw fail(ErrorCode::kUnsupported, "{} is constant, expected a computed tensor", describe(number));
  }
  if (waiting_.contains(number)) emit_convolution(number, take(number));
  const ValueId id = values_[static_cast<std::size_t>(number)];
  if (!id) throw fail(ErrorCode::kMismatch, "{} is read before it has a value", describe(number));
  return id;
}

/// The same under another shape.
ValueId Lowering::read_as(int number, const Shape& shape) {
  const ValueId value = read(number);
  if (computed_shape(number) == shape) return value;
  Reshape op;
  op.x = value;
  op.out = scratch(number, "/row", shape);
  builder_.add(op);
  return op.out;
}

/// The number of the constant behind input `index`.
int Lowering::constant(const TfliteOperator& op, std::size_t index) const {
  const int number = operand(op, index);
  const int source = sources_[static_cast<std::size_t>(number)];
  if (source < 0) {
    throw fail(ErrorCode::kUnsupported, "input {}, {}, is computed, expected a constant", index,
               describe(number));
  }
  return source;
}

/// The plan tensor of a constant: the same elements under `shape`, widened or rounded to the program's type.
ValueId Lowering::weight(const TfliteOperator& op, std::size_t index, const Shape& shape) {
  const int source = constant(op, index);
  const TfliteTensor& stated = tensor(source);
  if (stated.dtype != DType::kF32 && stated.dtype != DType::kF16) {
    throw fail(ErrorCode::kUnsupported, "input {}, {}, is {}, expected f32 or f16", index, describe(source),
               to_string(stated.dtype));
  }
  if (stated.shape.count() != shape.count()) {
    throw fail(ErrorCode::kMismatch, "input {}, {}, has the shape {}, expected the {} elements of {}", index,
               describe(source), to_string(stated.shape), shape.count(), to_string(shape));
  }
  const auto [at, is_new] = weights_.try_emplace(source);
  if (is_new) at->second = unique(source);
  plan_.add({at->second, "convolution", dtype_, shape, {stated.name}, {}});
  return builder_.shared_weight(at->second, dtype_, shape);
}

std::vector<std::int64_t> Lowering::integers(const TfliteOperator& op, std::size_t index) const {
  constexpr std::int64_t kMost = 2 * Shape::kMaxRank;  // PAD has a pair for each axis
  const int source = constant(op, index);
  const TfliteTensor& stated = tensor(source);
  if ((stated.dtype != DType::kI32 && stated.dtype != DType::kI64) || stated.shape.count() > kMost) {
    throw fail(ErrorCode::kMismatch, "input {}, {}, is {} {}, expected up to {} integers", index,
               describe(source), to_string(stated.dtype), to_string(stated.shape), kMost);
  }
  const Tensor copy = convert(file_->get(stated.name), DType::kI64);
  const auto values = copy.as<std::int64_t>();
  for (const std::int64_t value : values) {
    if (value < INT32_MIN || value > INT32_MAX) {
      throw fail(ErrorCode::kMismatch, "input {}, {}, holds {}, expected 32-bit numbers", index,
                 describe(source), value);
    }
  }
  return {values.begin(), values.end()};
}

Rectifier rectifier_of(TfliteActivation activation) {
  switch (activation) {
    case TfliteActivation::kNone:
      return Rectifier::kNone;
    case TfliteActivation::kRelu:
      return Rectifier::kRelu;
    case TfliteActivation::kRelu6:
      return Rectifier::kRelu6;
    default:
      throw fail(ErrorCode::kUnsupported, "fused activation {}, expected NONE, RELU or RELU6",
                 to_string(activation));
  }
}

Graph lower(const std::shared_ptr<const TfliteFile>& file, Policy policy) {
  return Lowering(file, policy).run();
}

}  // namespace sinew::mediapipe

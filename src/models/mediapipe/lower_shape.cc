// Everything but convolutions and what goes into them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/mediapipe/lowering.h"

namespace sinew::mediapipe {

void Lowering::pad(const TfliteOperator& op) {
  const int x = operand(op, 0);
  picture_shape(x);
  const std::vector<std::int64_t> amounts = integers(op, 1);
  if (amounts.size() != 8) {
    throw fail(ErrorCode::kMismatch, "pads by {} numbers, expected 8: before and after each of 4 axes",
               amounts.size());
  }
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const bool is_batch = i < 2;
    if (amounts[i] < 0 || (is_batch && amounts[i] != 0)) {
      throw fail(ErrorCode::kUnsupported, "pads axis {} by {}, expected {}", i / 2, amounts[i],
                 is_batch ? "0" : "at least 0");
    }
  }
  Pad out;
  out.x = read(x);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    out.before.at(axis) = amounts[2 * axis + 2];
    out.after.at(axis) = amounts[2 * axis + 3];
  }
  emit(out, op.outputs[0], computed_shape(op.outputs[0]));
}

void Lowering::resize_bilinear(const TfliteOperator& op) {
  const auto& options = std::get<TfliteResizeBilinear>(op.options);
  if (options.align_corners) throw fail(ErrorCode::kUnsupported, "align_corners is true, expected false");
  if (!options.half_pixel_centers) {
    throw fail(ErrorCode::kUnsupported, "half_pixel_centers is false, expected true");
  }
  const int x = operand(op, 0);
  picture_shape(x);
  const Shape scaled = picture_shape(op.outputs[0]);
  const std::vector<std::int64_t> size = integers(op, 1);
  if (size != std::vector<std::int64_t>{scaled[0], scaled[1]}) {
    throw fail(ErrorCode::kMismatch, "scales to [{}], but its result has the shape {}", fmt::join(size, ","),
               to_string(tensor(op.outputs[0]).shape));
  }
  ResizeBilinear out;
  out.x = read(x);
  emit(out, op.outputs[0], scaled);
}

void Lowering::reshape(const TfliteOperator& op) {
  const Shape& wanted = tensor(op.outputs[0]).shape;
  if (op.inputs.size() > 1 && op.inputs[1] >= 0) {
    const std::vector<std::int64_t> stated = integers(op, 1);
    const auto dims = wanted.dims();
    const bool same = std::equal(stated.begin(), stated.end(), dims.begin(), dims.end(),
                                 [](std::int64_t a, std::int64_t b) { return a == b || a == -1; });
    if (!same) {
      throw fail(ErrorCode::kMismatch, "gives the shape [{}], but its result has the shape {}",
                 fmt::join(stated, ","), to_string(wanted));
    }
  }
  Reshape out;
  out.x = read(operand(op, 0));
  emit(out, op.outputs[0], computed_shape(op.outputs[0]));
}

void Lowering::concatenation(const TfliteOperator& op) {
  const auto& options = std::get<TfliteConcatenation>(op.options);
  const Shape& whole = tensor(op.outputs[0]).shape;
  if (whole.rank() != 3 || (options.axis != 1 && options.axis != -2)) {
    throw fail(ErrorCode::kUnsupported, "joins along axis {} to {}, expected axis 1 of three", options.axis,
               to_string(whole));
  }
  ConcatRows out;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const int part = operand(op, i);
    if (tensor(part).shape.rank() != 3) {
      throw fail(ErrorCode::kMismatch, "{} has the shape {}, expected three axes", describe(part),
                 to_string(tensor(part).shape));
    }
    out.parts.push_back(read(part));
  }
  emit(std::move(out), op.outputs[0], computed_shape(op.outputs[0]), rectifier_of(options.activation));
}

/// A widened constant is a constant: the plan widens it once, at load.
void Lowering::dequantize(const TfliteOperator& op) {
  const int source = constant(op, 0);
  const int out = op.outputs[0];
  if (tensor(source).dtype != DType::kF16 || tensor(out).dtype != DType::kF32) {
    throw fail(ErrorCode::kUnsupported, "makes {} of {}, expected f32 of f16", to_string(tensor(out).dtype),
               to_string(tensor(source).dtype));
  }
  if (!(tensor(source).shape == tensor(out).shape)) {
    throw fail(ErrorCode::kMismatch, "makes the shape {} of {}", to_string(tensor(out).shape),
               to_string(tensor(source).shape));
  }
  sources_[static_cast<std::size_t>(out)] = source;
}

void Lowering::mean(const TfliteOperator& op) {
  const int x = operand(op, 0);
  const Shape picture = picture_shape(x);
  std::vector<std::int64_t> axes = integers(op, 1);
  for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::sort(axes.begin(), axes.end());
  if (axes != std::vector<std::int64_t>{1, 2}) {
    throw fail(ErrorCode::kUnsupported, "takes the mean over the axes [{}], expected [1,2]",
               fmt::join(axes, ","));
  }
  const Shape& stated = tensor(op.outputs[0]).shape;
  const Shape kept = {1, 1, 1, picture[2]};
  const Shape dropped = {1, picture[2]};
  if (!(stated == (std::get<TfliteReducer>(op.options).keep_dims ? kept : dropped))) {
    throw fail(ErrorCode::kMismatch, "makes the shape {} of {}, keep_dims is {}", to_string(stated),
               to_string(tensor(x).shape), std::get<TfliteReducer>(op.options).keep_dims);
  }
  MeanPool out;
  out.x = read(x);
  emit(out, op.outputs[0], dropped);
}

void Lowering::fully_connected(const TfliteOperator& op) {
  const auto& options = std::get<TfliteFullyConnected>(op.options);
  if (options.weights_format != 0) {
    throw fail(ErrorCode::kUnsupported, "weights_format is {}, expected 0", options.weights_format);
  }
  const Shape& matrix = tensor(operand(op, 1)).shape;
  if (matrix.rank() != 2) {
    throw fail(ErrorCode::kMismatch, "{} has the shape {}, expected two axes", describe(operand(op, 1)),
               to_string(matrix));
  }
  Linear out;
  out.x = read_as(operand(op, 0), {1, matrix[1]});
  out.weight = weight(op, 1, matrix);
  if (op.inputs.size() > 2 && op.inputs[2] >= 0) out.bias = weight(op, 2, {matrix[0]});
  emit(out, op.outputs[0], {1, matrix[0]}, rectifier_of(options.activation));
}

void Lowering::logistic(const TfliteOperator& op) {
  Logistic out;
  out.x = read(operand(op, 0));
  emit(out, op.outputs[0], computed_shape(op.outputs[0]));
}

}  // namespace sinew::mediapipe

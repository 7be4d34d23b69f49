#include "program/convolution.h"

#include <fmt/format.h>

#include "program/rules.h"

namespace sinew {
namespace {

/// The picture has three axes and the window lands on at least one pixel wherever it lands.
void check_window(const Rules& rules, ValueId x, const Window& w) {
  rules.rank(x, 3);
  rules.require(w.rows > 0 && w.columns > 0, x, "the window must have rows and columns");
  rules.require(w.stride_rows > 0 && w.stride_columns > 0, x, "strides must be positive");
  rules.require(w.pad_top >= 0 && w.pad_bottom >= 0 && w.pad_left >= 0 && w.pad_right >= 0, x,
                "padding must not be negative");
  rules.require(
      w.pad_top < w.rows && w.pad_bottom < w.rows && w.pad_left < w.columns && w.pad_right < w.columns, x,
      "padding must be smaller than the window");
  const Shape& shape = rules.value(x).shape;
  rules.require(
      shape[0] + w.pad_top + w.pad_bottom >= w.rows && shape[1] + w.pad_left + w.pad_right >= w.columns, x,
      "smaller than one window");
}

/// [H',W',channels] of a window over the picture x.
Shape windowed(const Shape& x, const Window& w, std::int64_t channels) {
  return {w.out_rows(x[0]), w.out_columns(x[1]), channels};
}

void check_weight(const Rules& rules, ValueId x, ValueId weight) {
  rules.dtype(x, {DType::kF32, DType::kF64});
  if (rules.value(x).dtype == DType::kF64) {
    rules.dtype(weight, {DType::kF64, DType::kF32, DType::kBF16, DType::kF16});
  } else {
    rules.dtype(weight, {DType::kF32});
  }
}

/// A value of the picture's dtype and this shape.
void check_like(const Rules& rules, ValueId x, ValueId id, const Shape& shape) {
  rules.same_dtype(x, id);
  rules.shape(id, shape);
}

double windows_cost(const Shape& out, const Window& w) {
  return static_cast<double>(out.count()) * static_cast<double>(w.rows) * static_cast<double>(w.columns);
}

/// "5x5, stride 2x2, pad 1+2 x 1+2": top + bottom x left + right.
std::string describe(const Window& w) {
  return fmt::format("{}x{}, stride {}x{}, pad {}+{} x {}+{}", w.rows, w.columns, w.stride_rows,
                     w.stride_columns, w.pad_top, w.pad_bottom, w.pad_left, w.pad_right);
}

std::string describe(const Window& w, Rectifier rectifier) {
  return rectifier == Rectifier::kNone ? describe(w)
                                       : fmt::format("{}, {}", describe(w), to_string(rectifier));
}

}  // namespace

std::vector<ValueId> Convolution::inputs() const {
  std::vector<ValueId> ids = {x, weight, bias};
  if (residual) ids.push_back(residual);
  if (slope) ids.push_back(slope);
  return ids;
}

void Convolution::check(const Program& program) const {
  const Rules rules(program, name());
  check_window(rules, x, window);
  check_weight(rules, x, weight);
  rules.rank(weight, 4);
  const Shape& picture = rules.value(x).shape;
  const std::int64_t channels_out = rules.value(weight).shape[0];
  rules.shape(weight, {channels_out, window.rows, window.columns, picture[2]});
  check_like(rules, x, bias, {channels_out});
  const Shape shape = windowed(picture, window, channels_out);
  check_like(rules, x, out, shape);
  if (residual) check_like(rules, x, residual, shape);
  rules.slope(slope, rectifier, out);
}

Cost Convolution::cost(const Program& program) const {
  return {2 * windows_cost(program.value(out).shape, window) *
          static_cast<double>(program.value(x).shape[2])};
}

std::string Convolution::attributes() const { return describe(window, rectifier); }

std::vector<ValueId> DepthwiseConvolution::inputs() const {
  std::vector<ValueId> ids = {x, weight, bias};
  if (slope) ids.push_back(slope);
  return ids;
}

void DepthwiseConvolution::check(const Program& program) const {
  const Rules rules(program, name());
  check_window(rules, x, window);
  check_weight(rules, x, weight);
  const Shape& picture = rules.value(x).shape;
  rules.shape(weight, {window.rows, window.columns, picture[2]});
  check_like(rules, x, bias, {picture[2]});
  check_like(rules, x, out, windowed(picture, window, picture[2]));
  rules.slope(slope, rectifier, out);
}

Cost DepthwiseConvolution::cost(const Program& program) const {
  return {2 * windows_cost(program.value(out).shape, window)};
}

std::string DepthwiseConvolution::attributes() const { return describe(window, rectifier); }

void MaxPool::check(const Program& program) const {
  const Rules rules(program, name());
  check_window(rules, x, window);
  rules.dtype(x, {DType::kF32, DType::kF64});
  const Shape& picture = rules.value(x).shape;
  check_like(rules, x, out, windowed(picture, window, picture[2]));
}

Cost MaxPool::cost(const Program& program) const { return {windows_cost(program.value(out).shape, window)}; }

std::string MaxPool::attributes() const { return describe(window); }

void MeanPool::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 3);
  rules.dtype(x, {DType::kF32, DType::kF64});
  check_like(rules, x, out, {1, rules.value(x).shape[2]});
}

Cost MeanPool::cost(const Program& program) const {
  return {static_cast<double>(program.value(x).shape.count())};
}

}  // namespace sinew

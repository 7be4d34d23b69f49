#include "plan/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/tile.h"

namespace sinew::transforms {
namespace {

/// A tensor around one of its axes: [outer, extent, inner].
struct Around {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};
Around around(const Shape& shape, int axis) {
  if (axis < 0 || axis >= shape.rank())
    throw fail(ErrorCode::kMismatch, "the tensor is {}; it has no axis {}", to_string(shape), axis);
  Around parts;
  for (int i = 0; i < axis; ++i) parts.outer *= shape[i];
  parts.extent = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) parts.inner *= shape[i];
  return parts;
}
Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[static_cast<std::size_t>(axis)] = extent;
  return Shape(std::span<const std::int64_t>(dims));
}

/// A range along the first axis, without a copy.
TensorView slice(const TensorView& view, std::int64_t first, std::int64_t count) {
  const std::int64_t skipped = first * view.strides[0] * static_cast<std::int64_t>(size_of(view.dtype));
  return {view.dtype, with_extent(view.shape, 0, count), view.strides, view.data + skipped};
}

/// `tensor` is "name: " or nothing.
void check_range(const std::string& tensor, std::int64_t first, std::int64_t count) {
  if (first < 0 || count < 0)
    throw fail(ErrorCode::kUsage, "{}rows {}, {} of them: neither can be negative", tensor, first, count);
}

Tensor take_rows(const TensorView& view, std::int64_t first, std::int64_t count) {
  const Shape& shape = view.shape;
  if (shape.rank() == 0) throw fail(ErrorCode::kMismatch, "a scalar has no rows");
  if (shape.rank() > 2) {
    const Shape matrix{around(shape, shape.rank() - 1).outer, shape.back()};
    if (view.contiguous()) return take_rows(reshaped(view, matrix), first, count);
    const Tensor whole = convert(view, DType::kF64);
    return take_rows(reshaped(whole, matrix), first, count);
  }
  if (first > shape[0] || count > shape[0] - first) {
    throw fail(ErrorCode::kMismatch, "the tensor is {}; expected rows within 0..{}", to_string(shape),
               shape[0]);
  }
  return convert(slice(view, first, count), DType::kF64);
}

void check_category(const std::string& tensor, std::int64_t index) {
  if (index < 0) throw fail(ErrorCode::kUsage, "{}category {}: categories count from 0", tensor, index);
}

Tensor take_category(const TensorView& view, std::int64_t index) {
  if (view.shape.rank() == 0)
    throw fail(ErrorCode::kMismatch, "the tensor is a scalar; expected [categories, ...]");
  if (index >= view.shape[0]) {
    throw fail(ErrorCode::kUsage, "the tensor is {}; expected a category from 0 to {}", to_string(view.shape),
               view.shape[0] - 1);
  }
  TensorView one = slice(view, index, 1);
  one.shape = Shape(one.shape.dims().subspan(1));
  std::copy(view.strides.begin() + 1, view.strides.end(), one.strides.begin());
  return convert(one, DType::kF64);
}

std::string rows_name(std::int64_t first, std::int64_t count) {
  return fmt::format("rows {}..{}", first, first + count);
}
std::string category_name(std::int64_t index) { return fmt::format("category {}", index); }

/// Copies `count` runs of `length` elements; runs begin every `from_pitch` and `to_pitch` elements.
void copy_runs(const double* from, std::int64_t from_pitch, double* to, std::int64_t to_pitch,
               std::int64_t count, std::int64_t length) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(from + i * from_pitch, length, to + i * to_pitch);
}

/// Each of the `groups` equal parts of an axis grows to `padded` elements.
Tensor pad_groups(Tensor tensor, int axis, std::int64_t groups, std::int64_t padded) {
  const Around at = around(tensor.shape(), axis);
  if (at.extent == groups * padded) return tensor;
  Tensor out(DType::kF64, with_extent(tensor.shape(), axis, groups * padded));
  const std::int64_t length = at.extent / groups * at.inner;
  copy_runs(tensor.as<double>().data(), length, out.as<double>().data(), padded * at.inner, at.outer * groups,
            length);
  return out;
}

void transpose_matrix(const double* from, std::int64_t rows, std::int64_t columns, double* to) {
  // Squares of one cache line's elements: each line of either side is used whole while it is in L1.
  constexpr std::int64_t kSquare = 8;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kSquare) {
    const std::int64_t r1 = std::min(rows, r0 + kSquare);
    for (std::int64_t c0 = 0; c0 < columns; c0 += kSquare) {
      const std::int64_t c1 = std::min(columns, c0 + kSquare);
      for (std::int64_t c = c0; c < c1; ++c) {
        for (std::int64_t r = r0; r < r1; ++r) to[c * rows + r] = from[r * columns + c];
      }
    }
  }
}

Tensor transposed(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const int rank = shape.rank();
  if (rank < 2)
    throw fail(ErrorCode::kMismatch, "the tensor is {}; expected a matrix [a,b] or [categories,a,b]",
               to_string(shape));
  const std::int64_t a = shape[rank - 2];
  const std::int64_t b = shape[rank - 1];
  Tensor out(DType::kF64, with_extent(with_extent(shape, rank - 2, b), rank - 1, a));
  for (std::int64_t done = 0; done < shape.count(); done += a * b)
    transpose_matrix(tensor.as<double>().data() + done, a, b, out.as<double>().data() + done);
  return out;
}

Tensor in_tiles(const Tensor& tensor) {
  const TileGrid grid = tile_grid(tensor.shape());
  Tensor out(DType::kF64, Shape{grid.tiles(), kTileElements});
  const double* from = tensor.as<double>().data();
  double* to = out.as<double>().data();
  for (std::int64_t row = 0; row < grid.batch * grid.rows; ++row) {
    const std::int64_t r = row % grid.rows;
    for (std::int64_t c = 0; c < grid.columns; c += kFaceSide) {
      const std::int64_t tile = grid.index(row / grid.rows, r / kTileSide, c / kTileSide);
      const int within = tile_offset(static_cast<int>(r % kTileSide), static_cast<int>(c % kTileSide));
      const std::int64_t length = std::min<std::int64_t>(kFaceSide, grid.columns - c);
      std::copy_n(from + row * grid.columns + c, length, to + tile * kTileElements + within);
    }
  }
  return out;
}

Tensor concatenate(Operands parts, int axis) {
  const Shape first = parts.front().shape();
  std::int64_t extent = 0;
  for (const Tensor& part : parts) {
    const Shape& shape = part.shape();
    const std::int64_t along = around(shape, axis).extent;
    if (shape.rank() != first.rank() || with_extent(shape, axis, 0) != with_extent(first, axis, 0))
      throw fail(ErrorCode::kMismatch, "{} does not fit behind {}", to_string(shape), to_string(first));
    extent += along;
  }
  Tensor out(DType::kF64, with_extent(first, axis, extent));
  const Around whole = around(out.shape(), axis);
  double* to = out.as<double>().data();
  for (Tensor& part : parts) {
    const std::int64_t length = around(part.shape(), axis).extent * whole.inner;
    copy_runs(part.as<double>().data(), length, to, whole.extent * whole.inner, whole.outer, length);
    to += length;
    part = Tensor();  // its memory goes as soon as it is copied
  }
  return out;
}

}  // namespace

Chain source_rows(const std::string& name, std::int64_t first, std::int64_t count) {
  check_range(name + ": ", first, count);
  return source_part(name, rows_name(first, count),
                     [first, count](const TensorView& view) { return take_rows(view, first, count); });
}

Chain source_category(const std::string& name, std::int64_t index) {
  check_category(name + ": ", index);
  return source_part(name, category_name(index),
                     [index](const TensorView& view) { return take_category(view, index); });
}

Chain stacked(const std::vector<std::string>& names) {
  const std::string step = fmt::format("stack {}", names.size());
  if (names.empty()) throw fail(ErrorCode::kUsage, "{}: there is nothing to stack", step);
  return {names, step, [names, step](const Sources& sources) {
            const Shape& first = sources.get(names.front()).shape;
            const bool vectors = first.rank() <= 1;
            std::int64_t rows = 0;
            for (const std::string& name : names) {
              const Shape& shape = sources.get(name).shape;
              if ((shape.rank() <= 1) != vectors || (!vectors && shape.back() != first.back())) {
                throw fail(ErrorCode::kMismatch, "{}: {}: {} does not fit under {} {}", name, step,
                           to_string(shape), names.front(), to_string(first));
              }
              rows += vectors ? shape.count() : around(shape, shape.rank() - 1).outer;
            }
            Tensor all(DType::kF64, vectors ? Shape{rows} : Shape{rows, first.back()});
            double* next = all.as<double>().data();
            for (const std::string& name : names) {
              const TensorView& part = sources.get(name);
              convert_into(part, DType::kF64, next);
              next += part.shape.count();
            }
            return all;
          }};
}

Step rows(std::int64_t first, std::int64_t count) {
  check_range("", first, count);
  return {rows_name(first, count),
          [first, count](const Tensor& tensor) { return take_rows(tensor, first, count); }};
}

Step category(std::int64_t index) {
  check_category("", index);
  return {category_name(index), [index](const Tensor& tensor) { return take_category(tensor, index); }};
}

Step transpose() {
  return {"transpose", [](const Tensor& tensor) { return transposed(tensor); }};
}

Step reshape(const Shape& shape) {
  return {fmt::format("reshape {}", to_string(shape)), [shape](Tensor tensor) {
            if (tensor.shape() == shape) return tensor;
            if (tensor.shape().count() != shape.count()) {
              throw fail(ErrorCode::kMismatch, "the tensor is {} of {} elements; expected {}",
                         to_string(tensor.shape()), tensor.shape().count(), shape.count());
            }
            return Tensor::of<double>(shape, tensor.as<double>());
          }};
}

Step pad_heads(const HeadPadding& padding) {
  const std::string name =
      fmt::format("pad heads {} to {} on axis {}", padding.dim, padding.padded, padding.axis);
  if (padding.heads <= 0 || padding.dim <= 0 || padding.padded < padding.dim) {
    throw fail(ErrorCode::kUsage, "{}: {} heads; expected heads > 0 and 0 < dim <= padded", name,
               padding.heads);
  }
  return {name, [padding](Tensor tensor) {
            const std::int64_t extent = around(tensor.shape(), padding.axis).extent;
            if (extent != padding.heads * padding.dim) {
              throw fail(ErrorCode::kMismatch, "the tensor is {}; expected {} heads of {} = {} on that axis",
                         to_string(tensor.shape()), padding.heads, padding.dim, padding.heads * padding.dim);
            }
            return pad_groups(std::move(tensor), padding.axis, padding.heads, padding.padded);
          }};
}

Step pad_to_multiple(int axis, std::int64_t multiple) {
  const std::string name = fmt::format("pad axis {} to a multiple of {}", axis, multiple);
  if (multiple <= 0) throw fail(ErrorCode::kUsage, "{}: expected a positive multiple", name);
  return {name, [axis, multiple](Tensor tensor) {
            const std::int64_t extent = around(tensor.shape(), axis).extent;
            return pad_groups(std::move(tensor), axis, 1, round_up(extent, multiple));
          }};
}

Step tiles() {
  return {fmt::format("tiles of {0} x {0}", kTileSide),
          [](const Tensor& tensor) { return in_tiles(tensor); }};
}

Chain concatenated(std::vector<Chain> parts, int axis) {
  const std::string step = fmt::format("concatenate {} on axis {}", parts.size(), axis);
  if (parts.empty()) throw fail(ErrorCode::kUsage, "{}: there is nothing to concatenate", step);
  return combined(std::move(parts), step,
                  [axis](Operands operands) { return concatenate(std::move(operands), axis); });
}

}  // namespace sinew::transforms

#include "tensor/tile.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace sinew {
namespace {

/// Calls fn(row-major offset, tile offset, elements) for each run of up to 16 neighbours that are contiguous
/// in both orders, offsets in elements.
template <typename Fn>
void for_each_face_row(const TileGrid& grid, Fn&& fn) {
  for (std::int64_t matrix = 0; matrix < grid.batch; ++matrix) {
    for (std::int64_t row = 0; row < grid.rows; ++row) {
      const std::int64_t line = (matrix * grid.rows + row) * grid.columns;
      for (std::int64_t column = 0; column < grid.columns; column += kFaceSide) {
        const std::int64_t tile = grid.index(matrix, row / kTileSide, column / kTileSide);
        const int within =
            tile_offset(static_cast<int>(row % kTileSide), static_cast<int>(column % kTileSide));
        fn(line + column, tile * kTileElements + within,
           std::min<std::int64_t>(kFaceSide, grid.columns - column));
      }
    }
  }
}

/// memcpy of a length that the compiler knows when the run is a full one.
void copy_run(std::byte* to, const std::byte* from, std::int64_t elements, std::int64_t size) {
  if (elements == kFaceSide && size == 2) {
    std::memcpy(to, from, std::size_t{2} * kFaceSide);
  } else if (elements == kFaceSide && size == 4) {
    std::memcpy(to, from, std::size_t{4} * kFaceSide);
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(elements * size));
  }
}

}  // namespace

std::int64_t tile_bytes(DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kU16:
    case DType::kBF16:
    case DType::kU32:
    case DType::kI32:
    case DType::kF32:
      return kTileElements * static_cast<std::int64_t>(size_of(dtype));
    default:
      throw fail(ErrorCode::kUnsupported, "there are no tiles of {}; expected u8, u16, bf16, u32, i32 or f32",
                 to_string(dtype));
  }
}

TileGrid tile_grid(const Shape& shape) {
  TileGrid grid;
  const int rank = shape.rank();
  if (rank >= 1) grid.columns = shape[rank - 1];
  if (rank >= 2) grid.rows = shape[rank - 2];
  for (int axis = 0; axis < rank - 2; ++axis) grid.batch *= shape[axis];  // fits: the shape's count does
  constexpr std::int64_t kLimit = std::int64_t{1} << 59;
  // Extents below the limit first, so that rounding up cannot overflow.
  const bool small = grid.rows < kLimit && grid.columns < kLimit;
  if (small) {
    grid.tile_rows = round_up<std::int64_t>(grid.rows, kTileSide) / kTileSide;
    grid.tile_columns = round_up<std::int64_t>(grid.columns, kTileSide) / kTileSide;
  }
  const auto matrix = checked_mul(grid.tile_rows, grid.tile_columns);
  const auto tiles = matrix ? checked_mul(*matrix, grid.batch) : matrix;
  if (!small || !tiles || *tiles >= kLimit / kTileElements) {
    throw fail(ErrorCode::kLimit, "shape {} padded to tiles of 32 x 32 has 2^59 elements or more",
               to_string(shape));
  }
  return grid;
}

Shape padded_shape(const Shape& shape) {
  const TileGrid grid = tile_grid(shape);
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  const int rank = std::max(shape.rank(), 2);
  for (int axis = 0; axis < rank - 2; ++axis) dims[axis] = shape[axis];
  dims[rank - 2] = grid.tile_rows * kTileSide;
  dims[rank - 1] = grid.tile_columns * kTileSide;
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
}

std::int64_t tiled_bytes(const Shape& shape, DType dtype) {
  return tile_grid(shape).tiles() * tile_bytes(dtype);
}
std::int64_t tiled_bytes(const Shape& shape, BlockFormat format) {
  return tile_grid(shape).tiles() * tile_bytes(format);
}

void to_tiles(const TensorView& source, std::span<std::byte> out) {
  assert(source.contiguous());
  assert(static_cast<std::int64_t>(out.size()) == tiled_bytes(source.shape, source.dtype));
  const TileGrid grid = tile_grid(source.shape);
  const std::int64_t size = tile_bytes(source.dtype) / kTileElements;
  const bool ragged = grid.rows % kTileSide != 0 || grid.columns % kTileSide != 0;
  if (ragged) std::ranges::fill(out, std::byte{0});
  for_each_face_row(grid, [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
    copy_run(out.data() + to * size, source.data + from * size, elements, size);
  });
}

void from_tiles(std::span<const std::byte> tiles, DType dtype, const Shape& shape, std::span<std::byte> out) {
  const TileGrid grid = tile_grid(shape);
  const std::int64_t size = tile_bytes(dtype) / kTileElements;
  assert(static_cast<std::int64_t>(tiles.size()) == grid.tiles() * kTileElements * size);
  assert(static_cast<std::int64_t>(out.size()) == shape.count() * size);
  for_each_face_row(grid, [&](std::int64_t to, std::int64_t from, std::int64_t elements) {
    copy_run(out.data() + to * size, tiles.data() + from * size, elements, size);
  });
}

}  // namespace sinew

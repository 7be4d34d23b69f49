// The tile layout of Tenstorrent's machines: matrices in pieces of 32 x 32, each of four faces of 16 x 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/block_float.h"
#include "tensor/tensor.h"

namespace sinew {

inline constexpr int kTileSide = 32;
inline constexpr int kFaceSide = 16;
inline constexpr int kTileElements = kTileSide * kTileSide;
inline constexpr int kFaceElements = kFaceSide * kFaceSide;
/// Blocks of a tile, one for each row of each face: block face * 16 + row. Their exponents are a tile's first
/// bytes.
inline constexpr int kTileBlocks = kTileElements / kBlockSize;

/// Where element (row, column) of a tile lies, in elements: faces in the order top left, top right, bottom
/// left, bottom right, each row by row.
constexpr int tile_offset(int row, int column) {
  return (row / kFaceSide * 2 + column / kFaceSide) * kFaceElements + row % kFaceSide * kFaceSide +
         column % kFaceSide;
}

struct TilePosition {
  int row;
  int column;
  bool operator==(const TilePosition&) const = default;
};
/// The inverse of tile_offset().
constexpr TilePosition tile_position(int offset) {
  const int face = offset / kFaceElements;
  const int within = offset % kFaceElements;
  return {face / 2 * kFaceSide + within / kFaceSide, face % 2 * kFaceSide + within % kFaceSide};
}

/// Bytes of a tile of u8, u16, bf16, u32, i32 or f32: 1024, 2048 or 4096. Throws Error (kUnsupported) for
/// others.
std::int64_t tile_bytes(DType dtype);
/// 1088, 576 or 320: exponents, then codes in the order of tile_offset().
constexpr std::int64_t tile_bytes(BlockFormat format) {
  return kTileBlocks + std::int64_t{kTileBlocks} * code_bytes(format);
}

/// How a tensor is cut into tiles. Only the last two extents are padded; those before them are a batch of
/// matrices. [n] is one row, a scalar one element.
struct TileGrid {
  std::int64_t batch = 1;         // product of the leading extents
  std::int64_t rows = 1;          // of a matrix, as the shape says
  std::int64_t columns = 1;       //
  std::int64_t tile_rows = 1;     // ceil(rows / 32)
  std::int64_t tile_columns = 1;  // ceil(columns / 32)

  std::int64_t tiles() const { return batch * tile_rows * tile_columns; }
  /// Tile (row, column) of one matrix: a row of tiles after the other, a matrix after the other.
  std::int64_t index(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return (matrix * tile_rows + row) * tile_columns + column;
  }
};

/// Throws Error (kLimit) when the padded tensor has 2^59 elements or more (its bytes would not fit in 63
/// bits).
TileGrid tile_grid(const Shape& shape);
/// The last two extents raised to multiples of 32; at least two extents. Throws as tile_grid() does.
Shape padded_shape(const Shape& shape);

/// Bytes of a whole tensor in tiles. Throws as tile_grid() and tile_bytes() do.
std::int64_t tiled_bytes(const Shape& shape, DType dtype);
std::int64_t tiled_bytes(const Shape& shape, BlockFormat format);

/// A row-major tensor of 1-, 2- or 4-byte elements to tiles, padded with zeros. `out` has tiled_bytes()
/// bytes. Throws Error (kUnsupported) for other element sizes; asserts that the view is contiguous.
void to_tiles(const TensorView& source, std::span<std::byte> out);
/// The inverse: shape.count() elements in row-major order, padding left out.
void from_tiles(std::span<const std::byte> tiles, DType dtype, const Shape& shape, std::span<std::byte> out);

}  // namespace sinew

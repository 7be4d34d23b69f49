#include "tensor/tile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"

namespace sinew {
namespace {

TEST(Tile, FacesInOrder) {
  EXPECT_EQ(tile_offset(0, 0), 0);
  EXPECT_EQ(tile_offset(0, 15), 15);
  EXPECT_EQ(tile_offset(1, 0), 16);
  EXPECT_EQ(tile_offset(0, 16), 256);
  EXPECT_EQ(tile_offset(16, 0), 512);
  EXPECT_EQ(tile_offset(16, 16), 768);
  EXPECT_EQ(tile_offset(31, 31), 1023);
  std::set<int> seen;
  for (int row = 0; row < kTileSide; ++row) {
    for (int column = 0; column < kTileSide; ++column) {
      const int offset = tile_offset(row, column);
      EXPECT_EQ(tile_position(offset), (TilePosition{row, column}));
      seen.insert(offset);
    }
  }
  EXPECT_EQ(seen.size(), std::size_t{kTileElements});
  EXPECT_EQ(*seen.rbegin(), kTileElements - 1);
}

TEST(Tile, Bytes) {
  EXPECT_EQ(tile_bytes(DType::kF32), 4096);
  EXPECT_EQ(tile_bytes(DType::kU32), 4096);
  EXPECT_EQ(tile_bytes(DType::kI32), 4096);
  EXPECT_EQ(tile_bytes(DType::kBF16), 2048);
  EXPECT_EQ(tile_bytes(DType::kU16), 2048);
  EXPECT_EQ(tile_bytes(DType::kU8), 1024);
  EXPECT_EQ(tile_bytes(BlockFormat::kBfp8), 1088);
  EXPECT_EQ(tile_bytes(BlockFormat::kBfp4), 576);
  EXPECT_EQ(tile_bytes(BlockFormat::kBfp2), 320);
  for (const DType dtype : {DType::kF64, DType::kI64, DType::kF16, DType::kI8, DType::kBool}) {
    EXPECT_THROW(tile_bytes(dtype), Error) << to_string(dtype);
  }
}

TEST(Tile, GridPadsTheLastTwoExtents) {
  EXPECT_EQ(padded_shape(Shape{}), (Shape{32, 32}));
  EXPECT_EQ(padded_shape(Shape{33}), (Shape{32, 64}));
  EXPECT_EQ(padded_shape(Shape{32, 32}), (Shape{32, 32}));
  EXPECT_EQ(padded_shape(Shape{3, 5, 1, 65}), (Shape{3, 5, 32, 96}));
  EXPECT_EQ(padded_shape(Shape{2, 0, 7}), (Shape{2, 0, 32}));
  const TileGrid grid = tile_grid(Shape{3, 5, 70, 65});
  EXPECT_EQ(grid.batch, 15);
  EXPECT_EQ(grid.tile_rows, 3);
  EXPECT_EQ(grid.tile_columns, 3);
  EXPECT_EQ(grid.tiles(), 135);
  EXPECT_EQ(grid.index(7, 2, 1), (7 * 3 + 2) * 3 + 1);
  // 192 x 1280 of bf16, and a weight of 1280 x 5120 in each format.
  EXPECT_EQ(tiled_bytes(Shape{1, 1, 192, 1280}, DType::kBF16), 192 * 1280 * 2);
  EXPECT_EQ(tiled_bytes(Shape{1280, 5120}, BlockFormat::kBfp8), 6400 * 1088);
  EXPECT_EQ(tiled_bytes(Shape{1280, 5120}, BlockFormat::kBfp4), 6400 * 576);
}

TEST(Tile, GridRefusesWhatDoesNotFit) {
  constexpr std::int64_t kBig = std::int64_t{1} << 60;
  EXPECT_THROW(tile_grid(Shape{kBig}), Error);
  EXPECT_THROW(tile_grid(Shape{kBig, 1}), Error);
  EXPECT_THROW(tile_grid(Shape{kBig, 1, 1}), Error) << "fits unpadded, not with 1024 elements for one";
  EXPECT_THROW(tile_grid(Shape{std::int64_t{1} << 62, 1}), Error);
  EXPECT_EQ(tile_grid(Shape{std::int64_t{1} << 40}).tile_columns, std::int64_t{1} << 35);
}

/// Elements 1, 2, 3, ... in row-major order.
template <typename T>
Tensor counting(const Shape& shape) {
  Tensor tensor(DTypeOf<T>::value, shape);
  const auto values = tensor.as<T>();
  std::iota(values.begin(), values.end(), T{1});
  return tensor;
}

template <typename T>
std::vector<T> tiled(const Tensor& tensor) {
  const auto bytes = static_cast<std::size_t>(tiled_bytes(tensor.shape(), tensor.dtype()));
  std::vector<T> tiles(bytes / sizeof(T), T{99});  // what is not written shows
  to_tiles(tensor, std::as_writable_bytes(std::span(tiles)));
  return tiles;
}

TEST(Tile, ElementsOfARaggedBatch) {
  const Shape shape{2, 3, 40, 70};
  const std::vector<std::uint32_t> tiles = tiled<std::uint32_t>(counting<std::uint32_t>(shape));
  const TileGrid grid = tile_grid(shape);
  std::uint32_t expected = 0;
  std::size_t zeros = 0;
  for (std::int64_t matrix = 0; matrix < 6; ++matrix) {
    for (int row = 0; row < 64; ++row) {
      for (int column = 0; column < 96; ++column) {
        const std::int64_t tile = grid.index(matrix, row / 32, column / 32);
        const std::uint32_t found =
            tiles[static_cast<std::size_t>(tile * kTileElements + tile_offset(row % 32, column % 32))];
        const bool padding = row >= 40 || column >= 70;
        zeros += padding ? 1 : 0;
        ASSERT_EQ(found, padding ? 0 : ++expected) << matrix << ' ' << row << ' ' << column;
      }
    }
  }
  EXPECT_EQ(expected, 2 * 3 * 40 * 70);
  EXPECT_EQ(zeros, tiles.size() - expected);
}

TEST(Tile, RowZeroOfFourTilesSideBySide) {
  const std::vector<std::uint32_t> tiles = tiled<std::uint32_t>(counting<std::uint32_t>(Shape{32, 128}));
  for (std::uint32_t j = 0; j < 128; ++j) {
    ASSERT_EQ(tiles[j / 32 * 1024 + j % 32 / 16 * 256 + j % 16], j + 1);
  }
}

template <typename T>
void expect_round_trip(const Shape& shape) {
  const Tensor tensor = counting<T>(shape);
  const std::vector<T> tiles = tiled<T>(tensor);
  std::vector<T> back(static_cast<std::size_t>(shape.count()));
  from_tiles(std::as_bytes(std::span(tiles)), tensor.dtype(), shape, std::as_writable_bytes(std::span(back)));
  const auto values = tensor.as<T>();
  EXPECT_TRUE(std::equal(values.begin(), values.end(), back.begin())) << to_string(shape);
}

TEST(Tile, ThereAndBack) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{31}, Shape{32, 32}, Shape{17, 16}, Shape{1, 1, 33, 47},
                             Shape{4, 100, 200}, Shape{0, 5}, Shape{3, 0}}) {
    expect_round_trip<std::uint8_t>(shape);
    expect_round_trip<std::uint16_t>(shape);
    expect_round_trip<std::uint32_t>(shape);
  }
}

}  // namespace
}  // namespace sinew

#include "tensor/block_float_kernels.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "base/error.h"

namespace sinew {
namespace kernels {
namespace {

float load_f32(const std::byte* p, const float* /*type*/) {
  float value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
float load_f32(const std::byte* p, const BF16* /*type*/) {
  BF16 value;
  std::memcpy(&value, p, sizeof(value));
  return to_f32(value);
}
void store(BF16 value, std::byte* p, const float* /*type*/) {
  const float wide = to_f32(value);
  std::memcpy(p, &wide, sizeof(wide));
}
void store(BF16 value, std::byte* p, const BF16* /*type*/) { std::memcpy(p, &value, sizeof(value)); }

/// Where in a matrix a block of a tile begins.
TilePosition position_of(int block) { return tile_position(block * kBlockSize); }

template <BlockFormat kFormat, typename T>
void pack_tile(const std::byte* source, std::int64_t stride, const BlockPacking& packing, std::byte* tile) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(tile);
  BlockPacking rules = packing;
  if constexpr (sizeof(T) == sizeof(BF16))
    rules.through_bf16 = false;  // it is bf16; its NaN stay as they are
  for (int i = 0; i < kTileBlocks; ++i) {
    const TilePosition at = position_of(i);
    const std::byte* from = source + at.row * stride + at.column * static_cast<std::int64_t>(sizeof(T));
    std::array<float, kBlockSize> values;
    for (int k = 0; k < kBlockSize; ++k) {
      values[k] = load_f32(from + sizeof(T) * static_cast<std::size_t>(k), static_cast<const T*>(nullptr));
    }
    const Block block = pack_block(values, kFormat, rules);
    bytes[i] = block.exponent;
    store_codes(block, kFormat, bytes + kTileBlocks + std::int64_t{i} * code_bytes(kFormat));
  }
}

template <BlockFormat kFormat, typename T>
void unpack_tile(const std::byte* tile, std::byte* out, std::int64_t stride) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tile);
  for (int i = 0; i < kTileBlocks; ++i) {
    const TilePosition at = position_of(i);
    std::byte* to = out + at.row * stride + at.column * static_cast<std::int64_t>(sizeof(T));
    Block block;
    block.exponent = bytes[i];
    load_codes(bytes + kTileBlocks + std::int64_t{i} * code_bytes(kFormat), kFormat, block);
    for (int k = 0; k < kBlockSize; ++k) {
      store(unpack_code(kFormat, block.exponent, block.codes[k]),
            to + sizeof(T) * static_cast<std::size_t>(k), static_cast<const T*>(nullptr));
    }
  }
}

constexpr auto kBfp8 = BlockFormat::kBfp8;
constexpr auto kBfp4 = BlockFormat::kBfp4;
constexpr auto kBfp2 = BlockFormat::kBfp2;

}  // namespace

const BlockKernels kBlockBaseline = {
    Isa::kBaseline,
    {pack_tile<kBfp8, float>, pack_tile<kBfp4, float>, pack_tile<kBfp2, float>},
    {pack_tile<kBfp8, BF16>, pack_tile<kBfp4, BF16>, pack_tile<kBfp2, BF16>},
    {unpack_tile<kBfp8, float>, unpack_tile<kBfp4, float>, unpack_tile<kBfp2, float>},
    {unpack_tile<kBfp8, BF16>, unpack_tile<kBfp4, BF16>, unpack_tile<kBfp2, BF16>},
};

const BlockKernels& block_kernels(Isa limit) {
#if defined(__x86_64__)
  if (limit >= Isa::kAvx512) return kBlockAvx512;
  if (limit >= Isa::kAvx2) return kBlockAvx2;
#else
  (void)limit;
#endif
  return kBlockBaseline;
}

}  // namespace kernels

namespace {

/// A tile that a matrix covers only in part passes through here.
struct alignas(64) Scratch {
  std::byte bytes[kTileElements * sizeof(float)];
};

bool is_f32(DType dtype) {
  if (dtype != DType::kF32 && dtype != DType::kBF16) {
    throw fail(ErrorCode::kUnsupported, "block floats are made from and become f32 or bf16, not {}",
               to_string(dtype));
  }
  return dtype == DType::kF32;
}

/// A row of tiles and its place in the row-major matrix.
struct TileRow {
  TileRow(const TileGrid& grid, std::int64_t index, std::int64_t element_size)
      : grid_(grid), size_(element_size) {
    const std::int64_t matrix = index / grid.tile_rows;
    const std::int64_t first = index % grid.tile_rows * kTileSide;
    rows = static_cast<int>(std::min<std::int64_t>(kTileSide, grid.rows - first));
    stride = grid.columns * size_;
    offset = (matrix * grid.rows + first) * stride;
    tile = index * grid.tile_columns;
  }
  /// Columns of the matrix inside tile i of the row.
  int columns(std::int64_t i) const {
    return static_cast<int>(std::min<std::int64_t>(kTileSide, grid_.columns - i * kTileSide));
  }
  bool whole(std::int64_t i) const { return rows == kTileSide && columns(i) == kTileSide; }
  std::int64_t offset_of(std::int64_t i) const { return offset + i * kTileSide * size_; }

  int rows;
  std::int64_t stride;  // bytes
  std::int64_t offset;  // bytes to the first row
  std::int64_t tile;    // index of the first tile

 private:
  const TileGrid& grid_;
  std::int64_t size_;
};

/// An 8-bit sum: a tile has 64 exponents, and sixteen or more of these add in one instruction.
std::int64_t count_255(const std::byte* exponents) {
  std::uint8_t count = 0;
  for (int i = 0; i < kTileBlocks; ++i) count += exponents[i] == std::byte{255} ? 1 : 0;
  return count;
}

}  // namespace

std::int64_t pack_blocks(const BlockPackJob& job, std::int64_t first, std::int64_t last) {
  const bool f32 = is_f32(job.source.dtype);
  assert(job.source.contiguous());
  const TileGrid grid = tile_grid(job.source.shape);
  const std::int64_t bytes = tile_bytes(job.format);
  assert(static_cast<std::int64_t>(job.tiles.size()) == grid.tiles() * bytes);
  assert(first >= 0 && last <= grid.batch * grid.tile_rows);
  const bool scalar = job.packing.exponent == BlockExponent::kLeastError;
  const kernels::BlockKernels& table = kernels::block_kernels(scalar ? Isa::kBaseline : job.isa);
  const int format = static_cast<int>(job.format);
  const kernels::PackTile pack = f32 ? table.pack_f32[format] : table.pack_bf16[format];
  const std::int64_t size = f32 ? 4 : 2;
  std::int64_t not_finite = 0;
  for (std::int64_t i = first; i < last; ++i) {
    const TileRow row(grid, i, size);
    for (std::int64_t column = 0; column < grid.tile_columns; ++column) {
      const std::byte* from = job.source.data + row.offset_of(column);
      std::byte* to = job.tiles.data() + (row.tile + column) * bytes;
      if (row.whole(column)) {
        pack(from, row.stride, job.packing, to);
      } else {
        Scratch scratch{};
        for (int r = 0; r < row.rows; ++r) {
          std::memcpy(scratch.bytes + r * kTileSide * size, from + r * row.stride,
                      static_cast<std::size_t>(row.columns(column) * size));
        }
        pack(scratch.bytes, kTileSide * size, job.packing, to);
      }
      not_finite += count_255(to);
    }
  }
  return not_finite;
}

void unpack_blocks(const BlockUnpackJob& job, std::int64_t first, std::int64_t last) {
  const bool f32 = is_f32(job.dtype);
  const TileGrid grid = tile_grid(job.shape);
  const std::int64_t bytes = tile_bytes(job.format);
  assert(static_cast<std::int64_t>(job.tiles.size()) == grid.tiles() * bytes);
  assert(first >= 0 && last <= grid.batch * grid.tile_rows);
  const kernels::BlockKernels& table = kernels::block_kernels(job.isa);
  const int format = static_cast<int>(job.format);
  const kernels::UnpackTile unpack = f32 ? table.unpack_f32[format] : table.unpack_bf16[format];
  const std::int64_t size = f32 ? 4 : 2;
  for (std::int64_t i = first; i < last; ++i) {
    const TileRow row(grid, i, size);
    for (std::int64_t column = 0; column < grid.tile_columns; ++column) {
      const std::byte* from = job.tiles.data() + (row.tile + column) * bytes;
      std::byte* to = job.out + row.offset_of(column);
      if (row.whole(column)) {
        unpack(from, to, row.stride);
        continue;
      }
      Scratch scratch;
      unpack(from, scratch.bytes, kTileSide * size);
      for (int r = 0; r < row.rows; ++r) {
        std::memcpy(to + r * row.stride, scratch.bytes + r * kTileSide * size,
                    static_cast<std::size_t>(row.columns(column) * size));
      }
    }
  }
}

std::int64_t pack_blocks(const BlockPackJob& job) {
  const TileGrid grid = tile_grid(job.source.shape);
  return pack_blocks(job, 0, grid.batch * grid.tile_rows);
}

void unpack_blocks(const BlockUnpackJob& job) {
  const TileGrid grid = tile_grid(job.shape);
  unpack_blocks(job, 0, grid.batch * grid.tile_rows);
}

}  // namespace sinew

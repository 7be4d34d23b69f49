// Whole tensors: the layout of pages against the definition of one block, and each instruction set against
// the scalar kernels, bit for bit.
#include "tensor/block_float_kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "tensor/block_float_test_support.h"

namespace sinew {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Isa> isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= best_isa()) found.push_back(isa);
  }
  return found;
}

const std::vector<BlockPacking>& packings() {
  static const std::vector<BlockPacking> kAll = [] {
    std::vector<BlockPacking> all;
    for (const auto rounding : {BlockRounding::kNearestEven, BlockRounding::kTruncate}) {
      for (const auto exponent : {BlockExponent::kLargest, BlockExponent::kLeastError}) {
        for (const bool through_bf16 : {false, true}) all.push_back({rounding, exponent, through_bf16});
      }
    }
    return all;
  }();
  return kAll;
}

std::size_t bytes_of(const Shape& shape, BlockFormat format) {
  return static_cast<std::size_t>(tiled_bytes(shape, format));
}

struct Packed {
  Bytes tiles;
  std::int64_t not_finite;
  bool operator==(const Packed&) const = default;
};

Packed pack(const TensorView& source, BlockFormat format, const BlockPacking& packing, Isa isa) {
  Packed packed{Bytes(bytes_of(source.shape, format), std::byte{0xa5}), 0};
  packed.not_finite = pack_blocks({source, format, packing, packed.tiles, isa});
  return packed;
}

/// Whole elements with a guard behind them.
Bytes unpack(const Bytes& tiles, BlockFormat format, const Shape& shape, DType dtype, Isa isa) {
  const std::size_t bytes = static_cast<std::size_t>(shape.count()) * size_of(dtype);
  Bytes out(bytes + 64, std::byte{0x5a});
  unpack_blocks({tiles, format, shape, dtype, out.data(), isa});
  for (std::size_t i = bytes; i < out.size(); ++i)
    EXPECT_EQ(out[i], std::byte{0x5a}) << "written past the end";
  out.resize(bytes);
  return out;
}

Tensor random_bits(const Shape& shape, DType dtype, unsigned seed) {
  Tensor tensor(dtype, shape);
  std::mt19937 random(seed);
  const std::size_t bytes = tensor.view().bytes();
  for (std::size_t i = 0; i + 2 <= bytes; i += 2) {
    const auto word = static_cast<std::uint16_t>(random());
    std::memcpy(tensor.data() + i, &word, 2);
  }
  return tensor;
}

/// Rows of exponents in bands of every width, from the denormals, the middle and the top, with zeros,
/// negative zeros, ties and numbers that saturate among them.
Tensor edge_values(const Shape& shape, DType dtype, unsigned seed) {
  Tensor tensor(DType::kF32, shape);
  std::mt19937 random(seed);
  std::size_t i = 0;
  for (float& x : tensor.as<float>()) {
    const std::size_t block = i++ / kBlockSize;
    const int spread = 1 + static_cast<int>(block) % 34;
    const int first = std::array{0, 1, 5, 24, 120, 255 - spread, 256 - spread}[block / 34 % 7];
    x = random_float(random, first, spread);
    const auto kind = random() % 8;
    if (kind == 0) x = std::copysign(0.0F, x);
    if (kind == 1) x = to_f32(to_bf16(x));
    if (kind == 2) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) | 0x7fff00U);
    if (kind == 3) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xfff80000U);
  }
  return convert(tensor, dtype);
}

TEST(BlockKernels, PagesAreExponentsThenCodesOfTheFaces) {
  const Shape shape{2, 50, 70};
  const Tensor source = Tensor::of<float>(shape, normal_floats(2 * 50 * 70, 1));
  const auto values = source.as<float>();
  for (const BlockFormat format : kBlockFormats) {
    const Packed packed = pack(source, format, {}, Isa::kBaseline);
    EXPECT_EQ(packed.not_finite, 0);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(packed.tiles.data());
    // Tile (matrix, th, tw), face f, row q, written out from the specification.
    for (int t = 0; t < 2 * 2 * 3; ++t) {
      for (int g = 0; g < 64; ++g) {
        const int row = t / 3 % 2 * 32 + g / 32 * 16 + g % 16;
        const int column = t % 3 * 32 + g / 16 % 2 * 16;
        Values block_values{};
        for (int k = 0; k < kBlockSize && row < 50; ++k) {
          if (column + k < 70) block_values[k] = values[(t / 6 * 50 + row) * 70 + column + k];
        }
        const std::uint8_t* tile = bytes + t * tile_bytes(format);
        Block found;
        found.exponent = tile[g];
        load_codes(tile + 64 + g * code_bytes(format), format, found);
        ASSERT_EQ(found, pack_block(block_values, format)) << to_string(format) << ' ' << t << ' ' << g;
      }
    }
    const Bytes unpacked = unpack(packed.tiles, format, shape, DType::kF32, Isa::kBaseline);
    for (int i = 0; i < 2 * 50 * 70; ++i) {
      const int row = i / 70 % 50;
      const int column = i % 70;
      const std::uint8_t* tile = bytes + (i / 3500 * 6 + row / 32 * 3 + column / 32) * tile_bytes(format);
      const int offset = tile_offset(row % 32, column % 32);
      const int bits = code_bits(format);
      const int code = tile[64 + offset * bits / 8] >> offset * bits % 8 & ((1 << bits) - 1);
      float found;
      std::memcpy(&found, unpacked.data() + std::size_t{4} * i, 4);
      ASSERT_EQ(found, to_f32(unpack_code(format, tile[offset / 16], static_cast<std::uint8_t>(code)))) << i;
    }
  }
}

/// kLeastError is the scalar kernels' alone; it need not be tried on much.
void expect_packed_alike(const TensorView& source, const char* what, bool least_error = false) {
  for (const BlockFormat format : kBlockFormats) {
    for (const BlockPacking& packing : packings()) {
      if (packing.exponent == BlockExponent::kLeastError && !least_error) continue;
      const Packed expected = pack(source, format, packing, Isa::kBaseline);
      for (const Isa isa : isas()) {
        if (isa == Isa::kBaseline) continue;
        const Packed found = pack(source, format, packing, isa);
        ASSERT_EQ(found.not_finite, expected.not_finite);
        const auto differs = std::ranges::mismatch(found.tiles, expected.tiles);
        ASSERT_TRUE(differs.in1 == found.tiles.end())
            << what << ' ' << to_string(source.dtype) << ' ' << to_string(source.shape) << ' '
            << to_string(format) << ' ' << to_string(isa) << " rounding "
            << static_cast<int>(packing.rounding) << " through bf16 " << packing.through_bf16 << ": byte "
            << differs.in1 - found.tiles.begin();
      }
    }
  }
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> kShapes = {
      Shape{},        Shape{17},        Shape{1, 33},       Shape{32, 32},  Shape{33, 31},
      Shape{64, 128}, Shape{3, 40, 70}, Shape{2, 2, 5, 16}, Shape{0, 7, 9}, Shape{4, 0}};
  return kShapes;
}

TEST(BlockKernels, EveryIsaPacksAlike) {
  unsigned seed = 1;
  for (const Shape& shape : shapes()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      expect_packed_alike(random_bits(shape, dtype, seed++), "random bits", true);
      expect_packed_alike(edge_values(shape, dtype, seed++), "edges");
      const auto count = static_cast<std::size_t>(shape.count());
      expect_packed_alike(convert(Tensor::of<float>(shape, normal_floats(count, seed++)), dtype), "normal");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    expect_packed_alike(edge_values(Shape{512, 256}, dtype, seed++), "many edges");
  }
}

/// Every bf16 beside a power of two of each exponent that can matter: all shifts, all ties, all special
/// values.
TEST(BlockKernels, EveryBF16IsPackedAlike) {
  const Shape shape{4096 + 32, 16};
  for (const int exponent : {0, 1, 8, 24, 25, 33, 127, 150, 254, 255}) {
    Tensor tensor(DType::kBF16, shape);
    const auto values = tensor.as<BF16>();
    unsigned next = 0;
    // Fifteen values a row; those of larger exponents make their row's exponent.
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i].bits = static_cast<std::uint16_t>(i % 16 == 0 ? exponent << 7 : next++ * 16 + i / 16 / 273);
    }
    ASSERT_GE(next, 4096U * 15U);
    expect_packed_alike(tensor, "every bf16");
    expect_packed_alike(convert(tensor, DType::kF32), "every bf16, widened");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void expect_unpacked_alike(const Bytes& tiles, BlockFormat format, const Shape& shape) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Bytes expected = unpack(tiles, format, shape, dtype, Isa::kBaseline);
    for (const Isa isa : isas()) {
      const Bytes found = unpack(tiles, format, shape, dtype, isa);
      const auto differs = std::ranges::mismatch(found, expected);
      ASSERT_TRUE(differs.in1 == found.end())
          << to_string(format) << ' ' << to_string(dtype) << ' ' << to_string(shape) << ' ' << to_string(isa)
          << ": byte " << differs.in1 - found.begin();
    }
  }
}

TEST(BlockKernels, EveryIsaUnpacksAlike) {
  std::mt19937 random(5);
  for (const BlockFormat format : kBlockFormats) {
    for (const Shape& shape : shapes()) {
      Bytes tiles(bytes_of(shape, format));
      for (std::byte& byte : tiles) byte = static_cast<std::byte>(random());
      expect_unpacked_alike(tiles, format, shape);
    }
    // Every code under every exponent: a row of tiles per exponent.
    const std::int64_t columns =
        std::max(1, (1 << code_bits(format)) / kBlockSize) * std::int64_t{kBlockSize};
    const Shape shape{256, 32, columns};
    Bytes tiles(bytes_of(shape, format));
    const std::int64_t tile = tile_bytes(format);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(tiles.size()); ++i) {
      const std::int64_t within = i % tile - kTileBlocks;
      const std::int64_t row_of_tiles = i / tile / tile_grid(shape).tile_columns;
      tiles[static_cast<std::size_t>(i)] =
          static_cast<std::byte>(within < 0 ? row_of_tiles : within + i / tile % 4 * 64);
    }
    expect_unpacked_alike(tiles, format, shape);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(BlockKernels, UnalignedMemory) {
  const Shape shape{64, 64};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Tensor source = edge_values(shape, dtype, 3);
    Bytes shifted(source.view().bytes() + 1);
    std::memcpy(shifted.data() + 1, source.data(), source.view().bytes());
    for (const Isa isa : isas()) {
      const Packed expected = pack(source, BlockFormat::kBfp8, {}, isa);
      Bytes tiles(expected.tiles.size() + 1);
      pack_blocks(
          {{dtype, shape, shifted.data() + 1}, BlockFormat::kBfp8, {}, std::span(tiles).subspan(1), isa});
      EXPECT_TRUE(std::equal(expected.tiles.begin(), expected.tiles.end(), tiles.begin() + 1));
      const Bytes values = unpack(expected.tiles, BlockFormat::kBfp8, shape, dtype, isa);
      Bytes out(values.size() + 1);
      unpack_blocks({std::span<const std::byte>(tiles).subspan(1), BlockFormat::kBfp8, shape, dtype,
                     out.data() + 1, isa});
      EXPECT_TRUE(std::equal(values.begin(), values.end(), out.begin() + 1));
    }
  }
}

TEST(BlockKernels, PartsMakeTheWhole) {
  const Shape shape{3, 70, 40};  // nine rows of tiles
  const Tensor source = edge_values(shape, DType::kF32, 8);
  const Packed whole = pack(source, BlockFormat::kBfp4, {}, best_isa());
  const Bytes values = unpack(whole.tiles, BlockFormat::kBfp4, shape, DType::kBF16, best_isa());
  Bytes tiles(whole.tiles.size());
  Bytes out(values.size());
  const BlockPackJob job{source, BlockFormat::kBfp4, {}, tiles};
  std::int64_t not_finite = 0;
  for (const auto& [first, last] : {std::pair(7, 9), std::pair(0, 4), std::pair(4, 4), std::pair(4, 7)}) {
    not_finite += pack_blocks(job, first, last);
    unpack_blocks({whole.tiles, BlockFormat::kBfp4, shape, DType::kBF16, out.data()}, first, last);
  }
  EXPECT_EQ(tiles, whole.tiles);
  EXPECT_EQ(not_finite, whole.not_finite);
  EXPECT_EQ(out, values);
}

TEST(BlockKernels, CountsBlocksThatAreNotFinite) {
  Tensor source(DType::kF32, Shape{40, 40});
  const auto values = source.as<float>();
  values[0] = std::numeric_limits<float>::quiet_NaN();
  values[1] = std::numeric_limits<float>::infinity();  // the same block
  values[39 * 40 + 39] = -std::numeric_limits<float>::infinity();
  values[800] = std::numeric_limits<float>::max();
  for (const Isa isa : isas()) {
    EXPECT_EQ(pack(source, BlockFormat::kBfp8, {}, isa).not_finite, 2);
    EXPECT_EQ(pack(source, BlockFormat::kBfp8, {.through_bf16 = true}, isa).not_finite, 3) << "max rounds up";
  }
}

TEST(BlockKernels, OnlyF32AndBF16) {
  const Tensor source(DType::kF16, Shape{4, 4});
  Bytes tiles(1088);
  EXPECT_THROW(pack_blocks({source, BlockFormat::kBfp8, {}, tiles}), Error);
  EXPECT_THROW(unpack_blocks({tiles, BlockFormat::kBfp8, Shape{4, 4}, DType::kF64, tiles.data()}), Error);
}

TEST(BlockKernels, TableOfAnIsaIsTheBestUpToIt) {
  EXPECT_EQ(kernels::block_kernels(Isa::kBaseline).isa, Isa::kBaseline);
#if defined(__x86_64__)
  EXPECT_EQ(kernels::block_kernels(Isa::kAvx2).isa, Isa::kAvx2);
  EXPECT_EQ(kernels::block_kernels(Isa::kAvx512).isa, Isa::kAvx512);
  EXPECT_EQ(kernels::block_kernels(Isa::kAvx512Bf16).isa, Isa::kAvx512);
#endif
}

}  // namespace
}  // namespace sinew

// Block floats, one block at a time, against the specification's vectors and against arithmetic in double
// that shares no trick with the packer: a magnitude there is a quotient rounded by nearbyint.
#include "tensor/block_float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tensor/block_float_test_support.h"

namespace sinew {
namespace {

constexpr auto kBfp8 = BlockFormat::kBfp8;
constexpr auto kBfp4 = BlockFormat::kBfp4;
constexpr auto kBfp2 = BlockFormat::kBfp2;
constexpr BlockPacking kTruncating = {.rounding = BlockRounding::kTruncate};

Block pack(const Values& values, BlockFormat format, const BlockPacking& packing = {}) {
  return pack_block(values, format, packing);
}
double value_of(BlockFormat format, const Block& block, int i) {
  return to_f32(unpack_code(format, block.exponent, block.codes[i]));
}

TEST(BlockFloat, HostVectors) {
  EXPECT_EQ(pack(row_a(), kBfp8), block_of(127, "40 c0 20 90 60 7f 7f 00 01 02 00 00 00 40 42 c2"));
  EXPECT_EQ(pack(row_a(), kBfp8, kTruncating),
            block_of(127, "40 c0 20 90 60 7f 7f 00 01 01 00 00 00 40 41 c2"));
  EXPECT_EQ(pack(row_a(), kBfp4), block_of(127, "4 c 2 9 6 7 7 0 0 0 0 0 0 4 4 c"));
  EXPECT_EQ(pack(row_b(), kBfp8), block_of(133, "64 83 00 81 01 00 32 e4 7f 7f 40 01 02 00 00 21"));
  EXPECT_EQ(pack(row_b(), kBfp4), block_of(133, "6 0 0 0 0 0 3 e 7 7 4 0 0 0 0 2"));
  EXPECT_EQ(pack(row_d(), kBfp8), block_of(254, "71 00 00 6d 40"));
  EXPECT_EQ(pack(row_d(), kBfp4), block_of(254, "7 0 0 7 4"));
  for (const BlockFormat format : kBlockFormats) {
    EXPECT_EQ(pack({}, format), Block{}) << to_string(format);
    EXPECT_EQ(pack({0x1p-127F, -0.0F, -0x1p-149F}, format), Block{}) << to_string(format);
  }
}

TEST(BlockFloat, Bfp2KeepsASignAndOneBit) {
  // Unit 1 under E = 127: 0.5 is a tie and goes to 0, what is above saturates at 1.
  EXPECT_EQ(pack({1, -1, 0.5F, -0.75F, 1.5F, 1.75F, 0.25F}, kBfp2), block_of(127, "1 3 0 3 1 1 0"));
}

TEST(BlockFloat, CodesInBytes) {
  Block block;
  for (int i = 0; i < kBlockSize; ++i) block.codes[i] = static_cast<std::uint8_t>(i);
  std::array<std::uint8_t, kBlockSize> bytes{};
  store_codes(block, kBfp8, bytes.data());
  EXPECT_EQ(bytes, block.codes);
  store_codes(block, kBfp4, bytes.data());
  const std::array<std::uint8_t, 8> nibbles = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe};
  EXPECT_TRUE(std::equal(nibbles.begin(), nibbles.end(), bytes.begin()));
  for (std::uint8_t& code : block.codes) code &= 3;
  store_codes(block, kBfp2, bytes.data());
  EXPECT_EQ(bytes[0], 0b11100100);
  EXPECT_EQ(bytes[3], 0b11100100);
  EXPECT_EQ(bytes[4], 0x98) << "only four bytes belong to a block of bfp2";
  std::mt19937 random(1);
  for (const BlockFormat format : kBlockFormats) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    Block loaded;
    load_codes(bytes.data(), format, loaded);
    std::array<std::uint8_t, kBlockSize> again = bytes;
    std::fill_n(again.begin(), code_bytes(format), std::uint8_t{0});
    store_codes(loaded, format, again.data());
    EXPECT_EQ(again, bytes) << to_string(format);
  }
}

TEST(BlockFloat, BF16OfTheHost) {
  for (const std::uint32_t nan : {0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffc00000U}) {
    EXPECT_EQ(to_bf16_host(std::bit_cast<float>(nan)).bits, 0x7fc0) << std::hex << nan;
  }
  std::mt19937 random(2);
  for (int i = 0; i < 100'000; ++i) {
    const float x = random_float(random, 0, 255);
    ASSERT_EQ(to_bf16_host(x).bits, to_bf16(x).bits) << x;
  }
  EXPECT_EQ(to_bf16_host(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

/// Every code under every exponent: the formula where bf16 has room for it, the underflow rules below.
TEST(BlockFloat, EveryValueIsExactInBF16) {
  for (const BlockFormat format : kBlockFormats) {
    const int width = magnitude_bits(format);
    for (int exponent = 0; exponent < 256; ++exponent) {
      for (int code = 0; code < 1 << (width + 1); ++code) {
        const BF16 found =
            unpack_code(format, static_cast<std::uint8_t>(exponent), static_cast<std::uint8_t>(code));
        const int magnitude = code & ((1 << width) - 1);
        const int sign = code >> width << 15;
        SCOPED_TRACE(testing::Message()
                     << to_string(format) << ", exponent " << exponent << ", code " << code);
        if (magnitude == 0) {
          ASSERT_EQ(found.bits, sign);
          continue;
        }
        const int top = static_cast<int>(std::log2(magnitude));
        const int own = exponent - (width - 1 - top);
        if (own < 0) {
          ASSERT_EQ(found.bits, 0);
        } else if (own == 0 || own == 255) {
          ASSERT_EQ(found.bits, sign | own << 7 | ((magnitude << (7 - top)) & 0x7f));
        } else {
          const double value = magnitude * unit_of(format, exponent);
          ASSERT_EQ(to_f32(found), sign != 0 ? -value : value);
        }
      }
    }
  }
}

/// The code of x under exponent E in double, where every step is exact but the rounding that is wanted.
int code_in_double(double x, int exponent, BlockFormat format, BlockRounding rounding) {
  const double magnitude = std::fabs(x);
  if (magnitude < 0x1p-126) return 0;
  const double ulp = std::ldexp(1.0, exponent - 127 - 23);
  const double cut = std::floor(magnitude / ulp) * ulp / unit_of(format, exponent);
  const double most = (1 << magnitude_bits(format)) - 1;
  const double whole =
      std::min(most, rounding == BlockRounding::kTruncate ? std::floor(cut) : std::nearbyint(cut));
  const int sign = x < 0 && whole > 0 ? 1 : 0;
  return sign << magnitude_bits(format) | static_cast<int>(whole);
}

void expect_packed(const Values& values, const BlockPacking& packing) {
  Values input = values;
  if (packing.through_bf16) input = rounded_to_bf16(values);
  for (const BlockFormat format : kBlockFormats) {
    const Block block = pack(values, format, packing);
    int exponent = 0;
    for (const float x : input) {
      if (std::isnormal(x)) exponent = std::max(exponent, std::ilogb(x) + 127);
    }
    ASSERT_EQ(block.exponent, exponent);
    for (int i = 0; i < kBlockSize; ++i) {
      ASSERT_EQ(block.codes[i], code_in_double(input[i], exponent, format, packing.rounding))
          << to_string(format) << ", exponent " << exponent << ", value " << std::hexfloat << input[i];
    }
  }
}

TEST(BlockFloat, PacksAsDoubleDoes) {
  std::mt19937 random(3);
  for (int i = 0; i < 40'000; ++i) {
    // Spreads of 1 to 30 exponents, down among the denormals and up to the largest.
    const int spread = 1 + i % 30;
    const int first = std::array{0, 3, 100, 254 - spread}[i / 30 % 4];
    Values values;
    for (float& x : values) {
      x = random_float(random, first, spread);
      if (i % 3 == 0) x = to_f32(to_bf16(x));  // ties
    }
    for (const BlockRounding rounding : {BlockRounding::kNearestEven, BlockRounding::kTruncate}) {
      for (const bool through_bf16 : {false, true}) {
        const Values rounded = rounded_to_bf16(values);
        if (through_bf16 && std::ranges::any_of(rounded, [](float x) { return std::isinf(x); })) continue;
        expect_packed(values, {.rounding = rounding, .through_bf16 = through_bf16});
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(BlockFloat, AlignmentCutsBeforeRoundingUnlessThroughBF16) {
  // 2^-7 is half a unit under E = 127. A hair (2^-30) above is cut off by the alignment: a tie, to 0.
  const Values values = {1, 0x1.000002p-7F, 0x1.000002p-1F};
  EXPECT_EQ(pack(values, kBfp8), block_of(127, "40 00 20"));
  // Under the number's own exponent nothing is cut: a hair above 32.5 units goes up, through bf16 it is a
  // tie.
  EXPECT_EQ(pack({0x1.040002p0F}, kBfp8).codes[0], 0x41);
  EXPECT_EQ(pack({0x1.020002p0F}, kBfp8).codes[0], 0x41);
  EXPECT_EQ(pack({0x1.020002p0F}, kBfp8, {.through_bf16 = true}).codes[0], 0x40);
}

TEST(BlockFloat, InfinityAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::bit_cast<float>(0xffc00000U);
  const Block block = pack({1, infinity, -infinity, nan, std::numeric_limits<float>::max()}, kBfp8);
  EXPECT_EQ(block, block_of(255, "0 40 c0 e0 40"));
  EXPECT_EQ(value_of(kBfp8, block, 1), infinity);
  EXPECT_EQ(value_of(kBfp8, block, 2), -infinity);
  EXPECT_TRUE(std::isnan(value_of(kBfp8, block, 3)));
  EXPECT_EQ(pack({nan}, kBfp8, {.through_bf16 = true}), block_of(255, "60"));
  // Of a payload only what is left of it after rounding counts: this NaN becomes an infinity.
  EXPECT_EQ(pack({std::bit_cast<float>(0x7f800001U)}, kBfp8), block_of(255, "40"));
}

/// Bounds of one rounding, for bf16 input. f32 input may lose another 2^-23 of the largest power of two to
/// the alignment's cut.
void expect_bounded(const Values& values, BlockFormat format, double cut) {
  const Block block = pack(values, format);
  const double unit = unit_of(format, block.exponent);
  const double steps = 1 << magnitude_bits(format);
  double most = 0;
  for (const float x : values) most = std::max(most, std::fabs(static_cast<double>(x)));
  for (int i = 0; i < kBlockSize; ++i) {
    const double error = std::fabs(values[i] - value_of(format, block, i));
    const bool saturates = std::fabs(values[i]) > (steps - 0.5) * unit;
    const double slack = cut * std::ldexp(1.0, block.exponent - 127);
    if (saturates) {
      ASSERT_LT(error, unit) << values[i];
    } else {
      ASSERT_LE(error, unit / 2 + slack) << values[i];
    }
    ASSERT_LE(error, most / steps + slack) << values[i];
    if (std::fabs(values[i]) < unit / 2) {
      ASSERT_EQ(block.codes[i], 0) << values[i];
    }
  }
}

TEST(BlockFloat, ErrorBounds) {
  std::mt19937 random(4);
  for (int i = 0; i < 30'000; ++i) {
    Values values;
    for (float& x : values) x = random_float(random, 120, 1 + i % 12);
    for (const BlockFormat format : kBlockFormats) {
      expect_bounded(rounded_to_bf16(values), format, 0);
      expect_bounded(values, format, 0x1p-23);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  // Tight: half a unit beside a power of two vanishes. Saturation: 7.9999 becomes 7.9375.
  EXPECT_EQ(value_of(kBfp8, pack({1, 0x1p-7F}, kBfp8), 1), 0);
  EXPECT_EQ(value_of(kBfp4, pack({1, 0x1p-3F}, kBfp4), 1), 0);
  EXPECT_EQ(value_of(kBfp8, pack({7.9999F}, kBfp8), 0), 7.9375);
}

TEST(BlockFloat, PackingWhatWasUnpackedChangesNothing) {
  std::mt19937 random(5);
  for (int i = 0; i < 30'000; ++i) {
    Values values;
    for (float& x : values) x = random_float(random, i % 2 == 0 ? 7 : 120, 1 + i % 40);
    for (const BlockFormat format : kBlockFormats) {
      for (const BlockPacking& packing : {BlockPacking{}, kTruncating}) {
        const Block block = pack(values, format, packing);
        Values unpacked;
        for (int k = 0; k < kBlockSize; ++k) unpacked[k] = static_cast<float>(value_of(format, block, k));
        ASSERT_EQ(pack(unpacked, format, packing), block) << to_string(format);
      }
    }
  }
}

double relative_error(const std::vector<float>& values, BlockFormat format, const BlockPacking& packing) {
  double squares = 0;
  double errors = 0;
  for (std::size_t at = 0; at < values.size(); at += kBlockSize) {
    Values block_values;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), kBlockSize, block_values.begin());
    const Block block = pack(block_values, format, packing);
    for (int i = 0; i < kBlockSize; ++i) {
      const double error = value_of(format, block, i) - block_values[i];
      errors += error * error;
      squares += static_cast<double>(block_values[i]) * block_values[i];
    }
  }
  return std::sqrt(errors / squares);
}

TEST(BlockFloat, RelativeErrorOnNormalNumbers) {
  std::vector<float> values = normal_floats(64'000, 6);
  // f32 as it is. With bf16 the numbers near the top of a block end in a tie half the time, the worst case of
  // rounding.
  EXPECT_NEAR(relative_error(values, kBfp8, {}), 0.0073, 0.05 * 0.0073);
  for (float& x : values) x = to_f32(to_bf16(x));
  EXPECT_NEAR(relative_error(values, kBfp8, {}), 0.0077, 0.05 * 0.0077);
  EXPECT_NEAR(relative_error(values, kBfp4, {}), 0.117, 0.05 * 0.117);
  EXPECT_NEAR(relative_error(values, kBfp2, {}), 0.48, 0.05 * 0.48);
}

TEST(BlockFloat, LeastErrorTakesTheLowerExponentOnlyWhenStrictlyBetter) {
  constexpr BlockPacking kLeast = {.exponent = BlockExponent::kLeastError};
  // bfp4, unit 1/4 under 127: fifteen ties vanish (15/64); under 126 only the 1 is off, 7/8 (1/64).
  Values values;
  values.fill(-0.125F);
  values[0] = 1;
  EXPECT_EQ(pack(values, kBfp4), block_of(127, "4"));
  EXPECT_EQ(pack(values, kBfp4, kLeast), block_of(126, "7 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9"));
  // One vanishing eighth against the 1's loss of an eighth: equal, so nothing changes.
  EXPECT_EQ(pack({1, 0.125F}, kBfp4, kLeast), block_of(127, "4"));
  // Not at exponents up to the width, nor at 255: half of 2^-126's unit would be exact under 2.
  values.fill(-0x1.8p-126F);
  values[0] = 0x1p-124F;
  EXPECT_EQ(pack(values, kBfp4, kLeast), pack(values, kBfp4));
  EXPECT_EQ(pack(values, kBfp4).exponent, 3);
  for (float& x : values) x *= 2;
  EXPECT_EQ(pack(values, kBfp4, kLeast), block_of(3, "7 b b b b b b b b b b b b b b b"));
  values[5] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(pack(values, kBfp4, kLeast).exponent, 255);

  const std::vector<float> normal = normal_floats(64'000, 7);
  for (const BlockFormat format : kBlockFormats) {
    EXPECT_LE(relative_error(normal, format, kLeast), relative_error(normal, format, {}))
        << to_string(format);
  }
  EXPECT_LT(relative_error(normal, kBfp4, kLeast), 0.99 * relative_error(normal, kBfp4, {}));
}

}  // namespace
}  // namespace sinew

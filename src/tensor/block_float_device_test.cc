// The device's packer and unpacker against the specification's vectors and bounds.
#include "tensor/block_float_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tensor/block_float_test_support.h"

namespace sinew {
namespace {

constexpr auto kBfp8 = BlockFormat::kBfp8;
constexpr auto kBfp4 = BlockFormat::kBfp4;
constexpr auto kBfp2 = BlockFormat::kBfp2;
constexpr auto kSingle = DevicePacker::kPrecise;
constexpr auto kDouble = DevicePacker::kDefault;

/// From bf16 destination registers.
Block pack(const Values& values, BlockFormat format, DevicePacker packer) {
  std::array<BF16, kBlockSize> words;
  std::ranges::transform(values, words.begin(),
                         [&](float x) { return device_packer_word(to_bf16(x), packer); });
  return pack_block_device(words, format);
}

TEST(BlockFloatDevice, Vectors) {
  EXPECT_EQ(pack(row_a(), kBfp8, kSingle), block_of(127, "40 c0 20 90 60 7f 7f 01 01 02 81 00 00 41 42 c3"));
  EXPECT_EQ(pack(row_a(), kBfp8, kDouble), block_of(128, "20 a0 10 88 30 40 40 00 01 01 00 00 00 21 21 a2"));
  EXPECT_EQ(pack(row_b(), kBfp8, kSingle), block_of(133, "64 83 00 81 01 00 33 e4 7f 7f 40 01 02 00 81 21"));
  EXPECT_EQ(pack(row_b(), kBfp8, kDouble), block_of(134, "32 82 00 00 00 00 19 b2 40 40 20 01 01 00 00 11"));
  EXPECT_EQ(pack(row_b(), kBfp4, kDouble), block_of(134, "3 0 0 0 0 0 1 b 4 4 2 0 0 0 0 1"));
  EXPECT_EQ(pack(row_d(), kBfp4, kSingle), block_of(254, "7 0 0 6 4"));
  for (const BlockFormat format : kBlockFormats) EXPECT_EQ(pack({}, format, kDouble), Block{});
}

TEST(BlockFloatDevice, WordsOfDestinationRegisters) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DevicePacker packer : {kSingle, kDouble}) {
    EXPECT_EQ(device_packer_word(BF16{0x807f}, packer).bits, 0) << "denormal";
    EXPECT_EQ(device_packer_word(BF16{0x7fc1}, packer).bits, 0x7f80);
    EXPECT_EQ(device_packer_word(BF16{0xff81}, packer).bits, 0xff80);
    EXPECT_EQ(device_packer_word(-infinity, packer).bits, 0xff80);
    EXPECT_EQ(device_packer_word(std::bit_cast<float>(0xff800001U), packer).bits, 0xff80);
    EXPECT_EQ(device_packer_word(std::bit_cast<float>(0x00700000U), packer).bits, 0);
  }
  EXPECT_EQ(device_packer_word(BF16{0x3f81}, kSingle).bits, 0x3f81);
  EXPECT_EQ(device_packer_word(BF16{0x3f81}, kDouble).bits, 0x3f82);
  EXPECT_EQ(device_packer_word(BF16{0x3fff}, kDouble).bits, 0x4000) << "the exponent goes up";
  EXPECT_EQ(device_packer_word(BF16{0x7f7f}, kDouble).bits, 0x7f80);
  // f32 is cut, not rounded; the default's step comes before denormals go, so the largest of them survives.
  EXPECT_EQ(device_packer_word(std::bit_cast<float>(0x3f80ffffU), kSingle).bits, 0x3f80);
  EXPECT_EQ(device_packer_word(std::bit_cast<float>(0x3f81ffffU), kDouble).bits, 0x3f82);
  EXPECT_EQ(device_packer_word(std::bit_cast<float>(0x007fffffU), kSingle).bits, 0);
  EXPECT_EQ(device_packer_word(std::bit_cast<float>(0x007fffffU), kDouble).bits, 0x0080);
}

TEST(BlockFloatDevice, UnpackerAgreesWithTheHostAboveUnderflow) {
  for (const BlockFormat format : kBlockFormats) {
    const int width = magnitude_bits(format);
    for (int exponent = 0; exponent < 256; ++exponent) {
      for (int code = 0; code < 1 << (width + 1); ++code) {
        const auto e = static_cast<std::uint8_t>(exponent);
        const auto c = static_cast<std::uint8_t>(code);
        const BF16 device = unpack_code_device(format, e, c);
        if (code == 1 << width) {
          ASSERT_EQ(device.bits, 0xff80);
          continue;
        }
        if (exponent >= 7 || code == 0) {
          ASSERT_EQ(device.bits, unpack_code(format, e, c).bits) << exponent << ' ' << code;
        }
      }
    }
  }
  EXPECT_EQ(unpack_code_device(kBfp8, 0, 0x40).bits, 0);
  EXPECT_EQ(unpack_code_device(kBfp8, 0, 0x20).bits, 255 << 7) << "an exponent of -1 wraps";
  EXPECT_EQ(unpack_code_device(kBfp8, 2, 0x83).bits, 0x8000 | 253 << 7 | 0x40);
  EXPECT_EQ(unpack_code_device(kBfp4, 2, 0x9).bits, 0x8000) << "2 - 2";
}

TEST(BlockFloatDevice, ErrorBoundOfTwoRoundings) {
  std::mt19937 random(11);
  double worst = 0;
  for (int i = 0; i < 60'000; ++i) {
    Values values;
    for (float& x : values) x = to_f32(to_bf16(random_float(random, 120, 1 + i % 8)));
    const Block block = pack(values, kBfp8, kDouble);
    double most = 0;
    for (const float x : values) most = std::max(most, std::fabs(static_cast<double>(x)));
    for (int k = 0; k < kBlockSize; ++k) {
      const double value = to_f32(unpack_code_device(kBfp8, block.exponent, block.codes[k]));
      const double error = std::fabs(values[k] - value);
      ASSERT_LE(error, 0.75 * unit_of(kBfp8, block.exponent)) << values[k];
      worst = std::max(worst, error / most);
    }
  }
  EXPECT_LE(worst, 0.0118);
  EXPECT_GE(worst, 0.0115) << "the bound is said to be reached";
}

double relative_error(const std::vector<float>& values, BlockFormat format, DevicePacker packer) {
  double squares = 0;
  double errors = 0;
  for (std::size_t at = 0; at < values.size(); at += kBlockSize) {
    Values block_values;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), kBlockSize, block_values.begin());
    const Block block = pack(block_values, format, packer);
    for (int i = 0; i < kBlockSize; ++i) {
      const double error =
          to_f32(unpack_code_device(format, block.exponent, block.codes[i])) - block_values[i];
      errors += error * error;
      squares += static_cast<double>(block_values[i]) * block_values[i];
    }
  }
  return std::sqrt(errors / squares);
}

TEST(BlockFloatDevice, RelativeErrorOnNormalNumbers) {
  std::vector<float> values = normal_floats(64'000, 12);
  for (float& x : values) x = to_f32(to_bf16(x));  // registers of bf16
  EXPECT_NEAR(relative_error(values, kBfp8, kSingle), 0.0077, 0.05 * 0.0077);
  EXPECT_NEAR(relative_error(values, kBfp8, kDouble), 0.0093, 0.05 * 0.0093);
  EXPECT_NEAR(relative_error(values, kBfp4, kSingle), 0.21, 0.05 * 0.21);
}

TEST(BlockFloatDevice, Bfp2IsCutFromBfp8) {
  // 0.984375 has bfp8 magnitude 63 of 64 under E = 127: cut to 0, where the host rounds to 1.
  EXPECT_EQ(pack({1, 0.984375F, -1.5F}, kBfp2, kSingle), block_of(127, "1 0 3"));
}

}  // namespace
}  // namespace sinew

#include "tensor/block_float.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sinew {
namespace {

constexpr std::uint32_t kLeadingOne = 1U << 23;

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
int exponent_of(std::uint32_t bits) { return static_cast<int>(bits >> 23 & 0xffU); }

/// The code of an f32 under the block's exponent, which is at most one below the number's own.
std::uint8_t code_of(std::uint32_t bits, int exponent, int width, BlockRounding rounding) {
  const int own = exponent_of(bits);
  if (own == 0) return 0;
  const std::uint32_t most = (1U << width) - 1;
  std::uint32_t magnitude = most;
  if (own <= exponent) {
    const int shift = exponent - own;
    magnitude = shift < 32 ? ((bits & (kLeadingOne - 1)) | kLeadingOne) >> shift : 0;
    const int dropped = 24 - width;
    if (rounding == BlockRounding::kNearestEven) {
      const std::uint32_t below_half = (1U << (dropped - 1)) - 1;
      magnitude += below_half + (magnitude >> dropped & 1U);  // ties go to the even neighbour
    }
    magnitude = std::min(magnitude >> dropped, most);
  }
  const std::uint32_t sign = magnitude == 0 ? 0 : bits >> 31;
  return static_cast<std::uint8_t>(sign << width | magnitude);
}

Block pack_under(std::span<const float, kBlockSize> values, int exponent, int width, BlockRounding rounding) {
  Block block;
  block.exponent = static_cast<std::uint8_t>(exponent);
  for (int i = 0; i < kBlockSize; ++i) {
    block.codes[i] = code_of(bits_of(values[i]), exponent, width, rounding);
  }
  return block;
}

double squared_error(std::span<const float, kBlockSize> values, const Block& block, int width) {
  double sum = 0;
  for (int i = 0; i < kBlockSize; ++i) {
    const int magnitude = block.codes[i] & ((1 << width) - 1);
    const double value = std::ldexp(magnitude, block.exponent - 127 - (width - 1));
    const double error = std::abs(static_cast<double>(values[i])) - value;
    sum += error * error;
  }
  return sum;
}

}  // namespace

std::string_view to_string(BlockFormat format) {
  switch (format) {
    case BlockFormat::kBfp8:
      return "bfp8_b";
    case BlockFormat::kBfp4:
      return "bfp4_b";
    case BlockFormat::kBfp2:
      return "bfp2_b";
  }
  return "unknown";
}

Block pack_block(std::span<const float, kBlockSize> values, BlockFormat format, const BlockPacking& packing) {
  std::array<float, kBlockSize> rounded;
  if (packing.through_bf16) {
    std::ranges::transform(values, rounded.begin(), [](float v) { return to_f32(to_bf16_host(v)); });
    values = rounded;
  }
  const int width = magnitude_bits(format);
  int largest = 0;
  for (const float value : values) largest = std::max(largest, exponent_of(bits_of(value)));
  Block block = pack_under(values, largest, width, packing.rounding);
  if (packing.exponent == BlockExponent::kLeastError && largest > width && largest < 255) {
    const Block lower = pack_under(values, largest - 1, width, packing.rounding);
    if (squared_error(values, lower, width) < squared_error(values, block, width)) block = lower;
  }
  return block;
}

BF16 unpack_code(BlockFormat format, std::uint8_t exponent, std::uint8_t code) {
  const int width = magnitude_bits(format);
  const unsigned sign = code >> width & 1U;
  unsigned magnitude = code & ((1U << width) - 1);
  if (magnitude == 0) return {static_cast<std::uint16_t>(sign << 15)};
  int own = exponent;
  for (; magnitude >> (width - 1) == 0; magnitude <<= 1) --own;
  if (own < 0) return {0};
  const unsigned fraction = (magnitude << (8 - width)) & 0x7fU;  // the leading one goes
  return {static_cast<std::uint16_t>(sign << 15 | static_cast<unsigned>(own) << 7 | fraction)};
}

void store_codes(const Block& block, BlockFormat format, std::uint8_t* bytes) {
  const int bits = code_bits(format);
  const int per_byte = 8 / bits;
  std::fill_n(bytes, code_bytes(format), std::uint8_t{0});
  for (int i = 0; i < kBlockSize; ++i) {
    bytes[i / per_byte] |= static_cast<std::uint8_t>(block.codes[i] << (i % per_byte * bits));
  }
}

void load_codes(const std::uint8_t* bytes, BlockFormat format, Block& block) {
  const int bits = code_bits(format);
  const int per_byte = 8 / bits;
  for (int i = 0; i < kBlockSize; ++i) {
    block.codes[i] =
        static_cast<std::uint8_t>(bytes[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1));
  }
}

}  // namespace sinew

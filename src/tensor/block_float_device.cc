#include "tensor/block_float_device.h"

#include <algorithm>
#include <bit>

namespace sinew {
namespace {

constexpr unsigned kInfinity = 0x7f80;
constexpr int kBfp8Width = 7;

unsigned without_nan(unsigned word) {
  return (word & 0x7fffU) > kInfinity ? (word & 0x8000U) | kInfinity : word;
}
unsigned without_denormal(unsigned word) { return (word & kInfinity) == 0 ? 0 : word; }
/// Rounds to six bits of fraction, half away from zero; may go up to the next exponent, and to infinity.
unsigned without_last_bit(unsigned word) { return (word + 1) & 0xfffeU; }
int exponent_of(BF16 word) { return word.bits >> 7 & 0xff; }

}  // namespace

BF16 device_packer_word(BF16 destination, DevicePacker packer) {
  unsigned word = without_nan(without_denormal(destination.bits));
  if (packer == DevicePacker::kDefault) word = without_last_bit(word);
  return {static_cast<std::uint16_t>(word)};
}

BF16 device_packer_word(float destination, DevicePacker packer) {
  const auto bits = std::bit_cast<std::uint32_t>(destination);
  // A NaN whose payload sits in the low half only is cut to infinity, which is what every NaN becomes.
  unsigned word = without_nan(bits >> 16);
  if (packer == DevicePacker::kDefault) word = without_last_bit(word);
  return {static_cast<std::uint16_t>(without_denormal(word))};
}

Block pack_block_device(std::span<const BF16, kBlockSize> words, BlockFormat format) {
  Block block;
  int largest = 0;
  for (const BF16 word : words) largest = std::max(largest, exponent_of(word));
  block.exponent = static_cast<std::uint8_t>(largest);
  const int width = magnitude_bits(format);
  for (int i = 0; i < kBlockSize; ++i) {
    const int own = exponent_of(words[i]);
    const int shift = largest - own;
    const unsigned significand = own == 0 ? 0 : 0x80U | (words[i].bits & 0x7fU);
    unsigned magnitude = shift >= 8 ? 0 : (significand + (1U << shift)) >> (shift + 1);
    magnitude = std::min(magnitude, 127U) >> (kBfp8Width - width);
    const unsigned sign = magnitude == 0 ? 0 : words[i].bits >> 15;
    block.codes[i] = static_cast<std::uint8_t>(sign << width | magnitude);
  }
  return block;
}

BF16 unpack_code_device(BlockFormat format, std::uint8_t exponent, std::uint8_t code) {
  const int width = magnitude_bits(format);
  const unsigned sign = code >> width & 1U;
  unsigned magnitude = (code & ((1U << width) - 1)) << (kBfp8Width - width);
  if (magnitude == 0) return {static_cast<std::uint16_t>(sign == 0 ? 0 : 0x8000U | kInfinity)};
  unsigned own = exponent;
  for (; (magnitude & 0x40U) == 0; magnitude <<= 1) --own;
  const unsigned fraction = (magnitude & 0x3fU) << 1;
  return {static_cast<std::uint16_t>(sign << 15 | (own & 0xffU) << 7 | fraction)};
}

}  // namespace sinew

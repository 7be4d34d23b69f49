// Blocks for the tests of block floats.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tensor/block_float.h"

namespace sinew {

using Values = std::array<float, kBlockSize>;

/// The rows of test vectors of the specification of the formats; bf16 after rounding to nearest even.
inline Values rounded_to_bf16(Values values) {
  for (float& value : values) value = to_f32(to_bf16_host(value));
  return values;
}
inline Values row_a() {
  return rounded_to_bf16({1, -1, 0.5F, -0.25F, 1.5F, 1.984375F, 1.9921875F, 0.0078125F, 0.015625F, 0.0234375F,
                          -0.0078125F, 0, -0.0F, 1.0078125F, 1.0234375F, -1.0390625F});
}
inline Values row_b() {
  return rounded_to_bf16({100, -3, 0.10009765625F, -0.6015625F, 0.78125F, 0.390625F, 50.5F, -99.5F, 127,
                          127.5F, 64, 1.171875F, 2.34375F, -0.390625F, -0.5F, 33.25F});
}
inline Values row_d() {
  return rounded_to_bf16({3.00405527e38F, 1.0010070e-38F, 0x1p-130F, 2.8977170e38F, 0x1p127F});
}

/// "7f 80 0": sixteen codes in hexadecimal, zeros after the last.
inline Block block_of(int exponent, const std::string& codes) {
  Block block;
  block.exponent = static_cast<std::uint8_t>(exponent);
  std::istringstream in(codes);
  int i = 0;
  for (int code; in >> std::hex >> code; ++i) block.codes.at(i) = static_cast<std::uint8_t>(code);
  return block;
}

/// Sign, fraction and exponent at random, the exponent among `exponents` values from `first` on.
inline float random_float(std::mt19937& random, int first, int exponents) {
  const auto exponent = static_cast<std::uint32_t>(first) +
                        static_cast<std::uint32_t>(random()) % static_cast<std::uint32_t>(exponents);
  return std::bit_cast<float>((static_cast<std::uint32_t>(random()) & 0x807fffffU) | exponent << 23);
}

inline std::vector<float> normal_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// 2^(exponent - 127 - (width - 1)): what a magnitude of 1 stands for.
inline double unit_of(BlockFormat format, int exponent) {
  return std::ldexp(1.0, exponent - 127 - (magnitude_bits(format) - 1));
}

}  // namespace sinew

// Inside the rasteriser: four numbers at a time, with the vectors of GCC and clang.
#pragma once

#include <cstdint>

namespace sinew::raster {

using Floats = float __attribute__((vector_size(16)));
using Words = std::int32_t __attribute__((vector_size(16)));
using Longs = std::int64_t __attribute__((vector_size(16)));

inline Floats all(float value) { return Floats{value, value, value, value}; }

inline Floats choose(Words mask, Floats yes, Floats no) {
  return reinterpret_cast<Floats>((mask & reinterpret_cast<Words>(yes)) |
                                  (~mask & reinterpret_cast<Words>(no)));
}
// One instruction each, which g++ does not find in choose().
inline Floats smaller(Floats a, Floats b) { return a < b ? a : b; }
inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

/// Bit i for lane i of a mask.
inline unsigned lanes_of(Words mask) {
  Words bits = mask & Words{1, 2, 4, 8};  // of masks, whose lanes are all ones or none
  bits |= __builtin_shufflevector(bits, bits, 2, 3, 0, 1);
  bits |= __builtin_shufflevector(bits, bits, 1, 0, 3, 2);
  return static_cast<unsigned>(bits[0]);
}

/// All bits where neither of four numbers is negative, from two pairs of them.
inline Words not_negative(Longs first, Longs second) {
  // The sign is in the upper half of each (io/bytes.h asserts little-endian machines).
  const Words upper =
      __builtin_shufflevector(reinterpret_cast<Words>(first), reinterpret_cast<Words>(second), 1, 3, 5, 7);
  return ~(upper >> 31);
}

/// 1/sqrt to 3e-7 by Newton's iteration from the exponent's half; large but finite at 0. Vectors have no
/// square root of their own, and this is faster than four of them.
inline Floats inverse_root(Floats x) {
  constexpr std::int32_t kMagic = 0x5f375a86;
  const Words guess = Words{kMagic, kMagic, kMagic, kMagic} - (reinterpret_cast<Words>(x) >> 1);
  Floats y = reinterpret_cast<Floats>(guess);
  for (int i = 0; i < 3; ++i) y = y * (1.5F - 0.5F * x * y * y);
  return y;
}

}  // namespace sinew::raster

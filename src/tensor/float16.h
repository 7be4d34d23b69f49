// bf16 and IEEE binary16 ("f16") scalars with round to nearest even; NaN stays NaN (quiet bit set, sign
// kept).
#pragma once

#include <bit>
#include <cstdint>

namespace sinew {

/// bf16: the upper half of an f32 (8 exponent bits, 7 mantissa bits).
struct BF16 {
  std::uint16_t bits;
};

/// IEEE 754 binary16 (5 exponent bits, 10 mantissa bits, subnormals).
struct F16 {
  std::uint16_t bits;
};

/// Exact.
constexpr float to_f32(BF16 v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16); }

/// Round to nearest even; values above the largest bf16 by half a step or more become infinity.
constexpr BF16 to_bf16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  // A NaN whose payload sits only in the low half would turn into infinity when cut: set the quiet bit first.
  if ((u & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((u >> 16) | 0x40U)};
  const std::uint32_t rounding = 0x7fffU + ((u >> 16) & 1U);  // ties go to the even neighbour
  return {static_cast<std::uint16_t>((u + rounding) >> 16)};
}

/// Exact.
constexpr float to_f32(F16 v) {
  const std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (v.bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = v.bits & 0x3ffU;
  if (exponent == 0x1fU) {  // infinity, NaN (made quiet)
    const std::uint32_t quiet = mantissa != 0 ? 0x00400000U : 0;
    return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13) | quiet);
  }
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

/// Round to nearest even, subnormals included; overflow becomes infinity.
constexpr F16 to_f16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000U);
  const std::uint32_t magnitude = u & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: keep the top of the payload, stay quiet
    return {static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x1ffU))};
  }
  if (magnitude >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // >= 65520 rounds up
  if (magnitude < 0x38800000U) {  // below 2^-14: adding 0.5 aligns the mantissa to units of 2^-24 and rounds
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U))};
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  return {static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)))};
}

}  // namespace sinew

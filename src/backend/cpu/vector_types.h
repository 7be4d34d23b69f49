// Vectors of SINEW_LANES floats (GCC/clang vector extensions). Included, through the kernels, by one file per
// instruction set, which defines SINEW_LANES and SINEW_ISA_NAMESPACE: nothing here may be shared between
// instruction sets, or the linker could keep the copy that this processor cannot run.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/float16.h"

namespace sinew::cpu::SINEW_ISA_NAMESPACE {

inline constexpr int kLanes = SINEW_LANES;
typedef float Vec __attribute__((vector_size(4 * SINEW_LANES)));
typedef std::int32_t IntVec __attribute__((vector_size(4 * SINEW_LANES)));
typedef std::uint32_t UintVec __attribute__((vector_size(4 * SINEW_LANES)));
typedef std::uint16_t HalfVec __attribute__((vector_size(2 * SINEW_LANES)));

static inline Vec splat(float x) { return x - Vec{}; }

static inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
static inline Vec load(const BF16* p) {
  HalfVec h;
  std::memcpy(&h, p, sizeof(h));
  const UintVec wide = __builtin_convertvector(h, UintVec) << 16;
  Vec v;
  std::memcpy(&v, &wide, sizeof(v));
  return v;
}
static inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof(v)); }
/// Round to nearest even, NaN kept (see to_bf16).
static inline void store(BF16* p, Vec v) {
  UintVec u;
  std::memcpy(&u, &v, sizeof(u));
  const UintVec rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
  const UintVec nan = (u >> 16) | 0x40U;
  const auto is_nan = reinterpret_cast<UintVec>(v != v);
  const UintVec bits = (rounded & ~is_nan) | (nan & is_nan);
  const HalfVec h = __builtin_convertvector(bits, HalfVec);
  std::memcpy(p, &h, sizeof(h));
}

/// e^x for x <= 0 (the softmax's range), relative error below 2e-7: x = n ln2 + r, |r| <= ln2/2, Taylor to
/// degree 7. Below -87 the result is held at e^-87 = 1.6e-38, above the subnormals, which would cost 100
/// cycles each.
static inline Vec exp_of_negative(Vec x) {
  const Vec lowest = splat(-87.0F);
  x = x > lowest ? x : lowest;
  const Vec shifted = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec n = shifted - 12582912.0F;
  const Vec r =
      (x - n * 0.693145752F) - n * 1.42860677e-6F;  // ln 2 in two parts, the first with 16 zero bits
  Vec p = splat(1.0F / 5040);
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const IntVec exponent = (__builtin_convertvector(n, IntVec) + 127) << 23;
  Vec scale;
  std::memcpy(&scale, &exponent, sizeof(scale));
  return p * scale;
}

static inline void put(float* p, float v) { *p = v; }
static inline void put(BF16* p, float v) { *p = to_bf16(v); }
static inline float get(const float* p) { return *p; }
static inline float get(const BF16* p) { return to_f32(*p); }

}  // namespace sinew::cpu::SINEW_ISA_NAMESPACE

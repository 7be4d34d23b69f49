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

}  // namespace sinew::cpu::SINEW_ISA_NAMESPACE

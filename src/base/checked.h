// Arithmetic on sizes that come from outside: overflow is an answer, not undefined behaviour.
#pragma once

#include <cstdint>
#include <optional>

namespace sinew {

/// a + b, or nothing when the sum does not fit.
template <typename T>
std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// a * b, or nothing when the product does not fit.
template <typename T>
std::optional<T> checked_mul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// The smallest multiple of `step` that is >= n.
template <typename T>
constexpr T round_up(T n, T step) {
  return (n + step - 1) / step * step;
}

}  // namespace sinew

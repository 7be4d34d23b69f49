// Element access and conversion between dtypes. Everything but the straight copies goes through double, which
// holds every source value exactly (64-bit integers above 2^53 excepted, and those only ever convert to
// themselves or fail).
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "tensor/tensor.h"

namespace sinew {
namespace {

template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <typename T>
double widen(T value) {
  if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    return to_f32(value);
  } else {
    return static_cast<double>(value);
  }
}

// Rounding double -> float -> bf16 would round twice. Rounding to odd in the first step keeps the information
// that the second needs: f32 has 24 bits, more than the 8 + 2 of bf16 and the 11 + 2 of f16.
float to_odd_f32(double value) {
  auto nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((bits & 1U) != 0) return nearest;
  // The neighbour on the other side of `value` is odd, because consecutive floats alternate.
  const bool rounded_away = std::fabs(back) > std::fabs(value);
  bits += rounded_away ? -1U : 1U;
  return std::bit_cast<float>(bits);
}

template <typename T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, BF16>) {
    return to_bf16(to_odd_f32(value));
  } else if constexpr (std::is_same_v<T, F16>) {
    return to_f16(to_odd_f32(value));
  } else if constexpr (std::is_same_v<T, std::uint8_t> || std::is_integral_v<T>) {
    const double low = static_cast<double>(std::numeric_limits<T>::lowest());
    // max()+1 is a power of two, exact in double even where max() itself is not.
    const double limit = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (!(value >= low && value < limit) || value != std::trunc(value)) {
      throw fail(ErrorCode::kMismatch, "the value {} cannot be held by {}", value,
                 to_string(DTypeOf<T>::value));
    }
    return static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

/// Calls fn.template operator()<T>() with the C++ type of a dtype. bool is read as a byte: any non-zero byte
/// of a file is true.
template <typename Fn>
decltype(auto) with_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return fn.template operator()<std::uint8_t>();
    case DType::kI8:
      return fn.template operator()<std::int8_t>();
    case DType::kU16:
      return fn.template operator()<std::uint16_t>();
    case DType::kI16:
      return fn.template operator()<std::int16_t>();
    case DType::kF16:
      return fn.template operator()<F16>();
    case DType::kBF16:
      return fn.template operator()<BF16>();
    case DType::kU32:
      return fn.template operator()<std::uint32_t>();
    case DType::kI32:
      return fn.template operator()<std::int32_t>();
    case DType::kF32:
      return fn.template operator()<float>();
    case DType::kU64:
      return fn.template operator()<std::uint64_t>();
    case DType::kI64:
      return fn.template operator()<std::int64_t>();
    case DType::kF64:
      break;
  }
  return fn.template operator()<double>();
}

/// Visits the elements in row-major order as runs along the last axis: fn(first byte of the run, stride in
/// bytes, length).
template <typename Fn>
void for_each_run(const TensorView& view, Fn&& fn) {
  const std::int64_t item = static_cast<std::int64_t>(size_of(view.dtype));
  const std::int64_t total = view.shape.count();
  if (total == 0) return;
  if (view.contiguous()) return fn(view.data, item, total);
  const int last = view.shape.rank() - 1;
  const std::int64_t length = view.shape[last];
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (std::int64_t run = 0; run < total / length; ++run) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < last; ++axis) offset += index[axis] * view.strides[axis];
    fn(view.data + offset * item, view.strides[last] * item, length);
    for (int axis = last - 1; axis >= 0 && ++index[axis] == view.shape[axis]; --axis) index[axis] = 0;
  }
}

template <typename From, typename To>
To convert_one(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BF16>) {
    return to_bf16(value);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, F16>) {
    return to_f16(value);
  } else if constexpr (std::is_same_v<To, float> &&
                       (std::is_same_v<From, BF16> || std::is_same_v<From, F16>)) {
    return to_f32(value);
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if (!std::in_range<To>(value)) {
      throw fail(ErrorCode::kMismatch, "the value {} cannot be held by {}", value,
                 to_string(DTypeOf<To>::value));
    }
    return static_cast<To>(value);
  } else {
    return narrow<To>(widen(value));
  }
}

}  // namespace

double element(const TensorView& view, std::int64_t index) {
  assert(index >= 0 && index < view.shape.count());
  std::int64_t offset = 0;
  for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
    offset += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  const std::byte* p = view.data + offset * static_cast<std::int64_t>(size_of(view.dtype));
  const double value = with_type(view.dtype, [&]<typename T>() { return widen(load<T>(p)); });
  return view.dtype == DType::kBool ? static_cast<double>(value != 0) : value;
}

void convert_into(const TensorView& view, DType dtype, void* out) {
  if (view.dtype == dtype && view.contiguous() && dtype != DType::kBool) {
    if (view.bytes() > 0) std::memcpy(out, view.data, view.bytes());
    return;
  }
  const bool from_bool = view.dtype == DType::kBool;
  const bool to_bool = dtype == DType::kBool;
  with_type(view.dtype, [&]<typename From>() {
    with_type(dtype, [&]<typename To>() {
      To* next = static_cast<To*>(out);
      for_each_run(view, [&](const std::byte* p, std::int64_t stride, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i, p += stride) {
          auto value = load<From>(p);
          if constexpr (std::is_same_v<From, std::uint8_t>) {
            if (from_bool) value = value != 0 ? 1 : 0;
          }
          if (to_bool) {
            const double real = widen(value);
            if (real != 0 && real != 1)
              throw fail(ErrorCode::kMismatch, "the value {} cannot be held by bool", real);
          }
          *next++ = convert_one<From, To>(value);
        }
      });
    });
  });
}

Tensor convert(const TensorView& view, DType dtype) {
  Tensor out(dtype, view.shape);
  convert_into(view, dtype, out.data());
  return out;
}

}  // namespace sinew

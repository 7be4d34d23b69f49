// Tensors: a non-owning strided view of typed elements, and an owner of aligned memory.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensor/dtype.h"
#include "tensor/float16.h"
#include "tensor/shape.h"

namespace sinew {

/// The DType of a C++ element type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::kI8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::kU16;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::kI16;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::kU32;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::kU64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};

/// Strides in elements, one per axis of the shape they belong to.
using Strides = std::array<std::int64_t, Shape::kMaxRank>;
/// Row-major strides of a shape.
Strides contiguous_strides(const Shape& shape);

/// A non-owning, read-only view. `data` may be unaligned (mapped files): elements are read with memcpy.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  Strides strides{};
  const std::byte* data = nullptr;

  TensorView() = default;
  /// A contiguous view.
  TensorView(DType element_type, const Shape& extents, const void* bytes);
  TensorView(DType element_type, const Shape& extents, const Strides& steps, const void* bytes)
      : dtype(element_type), shape(extents), strides(steps), data(static_cast<const std::byte*>(bytes)) {}

  /// True when elements lie in row-major order without gaps.
  bool contiguous() const;
  /// count * size_of(dtype). Throws Error (kLimit) when that does not fit.
  std::size_t bytes() const;
  /// The elements of a contiguous, aligned view; asserts dtype, order and alignment.
  template <typename T>
  std::span<const T> as() const {
    assert(DTypeOf<T>::value == dtype && contiguous());
    assert(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0);
    return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(shape.count())};
  }
};

/// Frees the memory of an AlignedBuffer.
struct FreeAligned {
  std::size_t mapped = 0;  // bytes, where the memory is the system's and not the heap's
  void operator()(std::byte* p) const;
};

/// Memory on a 64-byte boundary (one cache line, one AVX-512 register), zero-filled.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  AlignedBuffer() = default;
  /// Throws Error (kLimit) when the memory cannot be had.
  explicit AlignedBuffer(std::size_t bytes);
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte, FreeAligned> data_;
  std::size_t size_ = 0;
};

/// An owning, contiguous, 64-byte aligned tensor. Move-only: a copy is written as clone().
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled. Throws Error (kLimit) when the memory cannot be had.
  Tensor(DType dtype, const Shape& shape);
  template <typename T>
  static Tensor of(const Shape& shape, std::span<const T> values) {
    Tensor out(DTypeOf<T>::value, shape);
    assert(static_cast<std::int64_t>(values.size()) == shape.count());
    std::copy(values.begin(), values.end(), out.as<T>().begin());
    return out;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::byte* data() { return buffer_.data(); }
  const std::byte* data() const { return buffer_.data(); }
  TensorView view() const { return {dtype_, shape_, buffer_.data()}; }
  operator TensorView() const { return view(); }
  template <typename T>
  std::span<T> as() {
    assert(DTypeOf<T>::value == dtype_);
    return {reinterpret_cast<T*>(buffer_.data()), static_cast<std::size_t>(shape_.count())};
  }
  template <typename T>
  std::span<const T> as() const {
    return view().as<T>();
  }
  Tensor clone() const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  AlignedBuffer buffer_;
};

/// Element `index` (row-major over the shape) of any dtype as double; exact except for 64-bit integers above
/// 2^53.
double element(const TensorView& view, std::int64_t index);

/// A contiguous copy converted to `dtype`: floats round to nearest even (from double only once), integers and
/// bools keep their value; a value that the integer type cannot hold throws Error (kMismatch).
Tensor convert(const TensorView& view, DType dtype);
/// convert() into memory of the caller's: shape.count() elements of `dtype`.
void convert_into(const TensorView& view, DType dtype, void* out);

/// The same elements under another shape; asserts equal counts and contiguity.
TensorView reshaped(const TensorView& view, const Shape& shape);

}  // namespace sinew

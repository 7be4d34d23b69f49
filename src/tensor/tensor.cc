#include "tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace sinew {

Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis] > 0 ? shape[axis] : 1;
  }
  return strides;
}

TensorView::TensorView(DType element_type, const Shape& extents, const void* bytes)
    : TensorView(element_type, extents, contiguous_strides(extents), bytes) {}

bool TensorView::contiguous() const {
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[axis] != step) return shape.count() == 0;
    step *= shape[axis];
  }
  return true;
}

namespace {

/// Bytes of a dense tensor; a shape from outside may have a count that fits in 63 bits and a size that does
/// not.
std::size_t dense_bytes(DType dtype, const Shape& shape) {
  const auto bytes = checked_mul(static_cast<std::size_t>(shape.count()), size_of(dtype));
  if (!bytes)
    throw fail(ErrorCode::kLimit, "a tensor {}{} has more than 2^64 bytes", to_string(dtype),
               to_string(shape));
  return *bytes;
}

}  // namespace

std::size_t TensorView::bytes() const { return dense_bytes(dtype, shape); }

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* memory =
      bytes > SIZE_MAX - kAlignment ? nullptr : std::aligned_alloc(kAlignment, round_up(bytes, kAlignment));
  if (memory == nullptr) throw fail(ErrorCode::kLimit, "out of memory: {} bytes wanted", bytes);
  std::memset(memory, 0, round_up(bytes, kAlignment));
  data_.reset(static_cast<std::byte*>(memory));
}

Tensor::Tensor(DType dtype, const Shape& shape)
    : dtype_(dtype), shape_(shape), buffer_(dense_bytes(dtype, shape)) {}

Tensor Tensor::clone() const {
  Tensor out(dtype_, shape_);
  if (buffer_.size() > 0) std::memcpy(out.data(), data(), buffer_.size());
  return out;
}

TensorView reshaped(const TensorView& view, const Shape& shape) {
  assert(view.contiguous() && view.shape.count() == shape.count());
  return {view.dtype, shape, view.data};
}

}  // namespace sinew

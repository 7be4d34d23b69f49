#include "tensor/tensor.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace sinew {
namespace {

// Large buffers come from the system and go back to it. glibc 2.36's aligned_alloc does not find the hole
// that an equal buffer left (it looks for size + alignment), so that making one weight after the other let
// the heap grow by all of them: 1.7 GB for 670 M parameters in f32, 0.1 GB like this. Under AddressSanitizer
// its own allocator stays, for its red zones.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SINEW_KEEP_RED_ZONES
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(SINEW_KEEP_RED_ZONES)
constexpr std::size_t kMapFrom = SIZE_MAX;
#else
constexpr std::size_t kMapFrom = std::size_t{1} << 20;
#endif

}  // namespace

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

void FreeAligned::operator()(std::byte* p) const {
  if (mapped > 0) {
    ::munmap(p, mapped);
  } else {
    std::free(p);
  }
}

namespace {

/// Pages of the system, all of them there: what is asked for will be used, and the first run of a session is
/// to be as fast as the next. Large pages where there may be some: products whose activations lie in them ran
/// 5 % faster.
std::unique_ptr<std::byte, FreeAligned> map_anonymous(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw fail(ErrorCode::kLimit, "out of memory: {} bytes wanted", bytes);
  std::unique_ptr<std::byte, FreeAligned> out(static_cast<std::byte*>(memory), FreeAligned{bytes});
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // advice: failure changes nothing
#ifdef MADV_POPULATE_WRITE                  // Linux 5.14
  if (::madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return out;
#endif
  std::memset(memory, 0, bytes);
  return out;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kMapFrom && bytes <= SIZE_MAX - kAlignment) {
    data_ = map_anonymous(round_up(bytes, kAlignment));
    return;
  }
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

#include "plan/forms.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sinew {
namespace {

/// Addresses that nothing lies behind: whoever touches them stops at once.
ResidentBytes reserve(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  void* const start = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    throw fail(ErrorCode::kLimit, "cannot reserve {} bytes of addresses: {}", size, std::strerror(errno));
  return {static_cast<const std::byte*>(start),
          [size](const std::byte* p) { ::munmap(const_cast<std::byte*>(p), size); }};
}

}  // namespace

TierKey key_of(const std::string& name, const WeightForm& form) {
  return {name, fmt::format("{}, {}", form.dtype, form.layout)};
}

TensorView FormList::load(const std::string& name, DType, const Shape&) {
  throw fail(ErrorCode::kUnsupported, "weight {} is asked for as it is, not in a form; its form is not known",
             name);
}

ResidentBytes FormList::resident(const std::string& name, DType dtype, const Shape& shape,
                                 const WeightForm& form, const MakeForm& make) {
  requests_.push_back({name, dtype, shape, form, make});
  return reserve(form.bytes);
}

}  // namespace sinew

// Structs of the C ABI that may grow at their end: the first field is the size that the caller was compiled
// with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"

namespace sinew::capi {

/// What the caller gave, seen with this library's struct. Fields an older caller does not have are zero,
/// which means default. Throws Error (kUsage) when struct_size was not set, (kUnsupported) when a newer
/// caller sets a field that this library does not have. `given` may be shorter or longer than a T;
/// `first_size` is sizeof(T) in the first ABI version.
template <typename T>
T grown(const T* given, std::size_t first_size, const char* name) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  std::size_t size = 0;
  std::memcpy(&size, bytes + offsetof(T, struct_size), sizeof(size));
  if (size < first_size || size > 65536) {
    throw fail(ErrorCode::kUsage, "{}.struct_size is {}; set it to sizeof({})", name, size, name);
  }
  const std::size_t known = std::min(size, sizeof(T));
  if (std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; })) {
    throw fail(ErrorCode::kUnsupported,
               "{} has a field set that this libsinew does not have; it is older than the program", name);
  }
  T seen{};
  std::memcpy(&seen, bytes, known);
  return seen;
}

}  // namespace sinew::capi

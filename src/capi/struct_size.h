// Structs of the C ABI that may grow at their end: the first field is the size that the caller was compiled
// with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"

namespace sinew::capi {

/// struct_size of a struct that may be shorter or longer than a T. Throws Error (kUsage) when it was not set:
/// when it is below `first_size`, the sizeof(T) of the first ABI version.
template <typename T>
std::size_t struct_size(const T* given, std::size_t first_size, const char* name) {
  std::size_t size = 0;
  std::memcpy(&size, reinterpret_cast<const unsigned char*>(given) + offsetof(T, struct_size), sizeof(size));
  if (size < first_size || size > 65536) {
    throw fail(ErrorCode::kUsage, "{0}.struct_size is {1}; set it to sizeof({0})", name, size);
  }
  return size;
}

/// What the caller gave. Fields an older caller does not have are zero, which means default. Throws Error as
/// struct_size does, and kUnsupported when a newer caller sets a field that this library does not have.
template <typename T>
T read_struct(const T* given, std::size_t first_size, const char* name) {
  const std::size_t size = struct_size(given, first_size, name);
  const std::size_t known = std::min(size, sizeof(T));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; })) {
    throw fail(ErrorCode::kUnsupported,
               "{} has a field set that this libsinew does not have; it is older than the program", name);
  }
  T seen{};
  std::memcpy(&seen, bytes, known);
  return seen;
}

/// Gives the caller what it has room for; fields that only a newer caller has become zero. struct_size stays
/// as set. Throws Error as struct_size does.
template <typename T>
void write_struct(const T& result, std::size_t first_size, const char* name, T* out) {
  const std::size_t size = struct_size(out, first_size, name);
  T kept = result;
  kept.struct_size = size;
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  std::memset(bytes, 0, size);
  std::memcpy(bytes, &kept, std::min(size, sizeof(T)));
}

}  // namespace sinew::capi

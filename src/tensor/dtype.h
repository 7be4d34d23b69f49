// Element types of tensors on disk and in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sinew {

/// The compute types are f32, bf16 and f16 (f64 in the reference backend); the others carry data and indices.
enum class DType : std::uint8_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64
};

/// Bytes of one element: 1, 2, 4 or 8.
std::size_t size_of(DType dtype);
/// Lower-case name: "f32", "bf16", "bool", ...
std::string_view to_string(DType dtype);
/// The inverse of to_string; nothing for an unknown name.
std::optional<DType> parse_dtype(std::string_view name);
/// True for f16, bf16, f32 and f64.
bool is_float(DType dtype);

}  // namespace sinew

// What the reader and the writer of safetensors share: the bounds and codes of the format. Not for other
// rooms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tensor/dtype.h"

namespace sinew::safetensors {

/// The bound of the format itself, for files whose length field is not to be trusted.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::string_view kMetadataKey = "__metadata__";

inline constexpr std::array<std::pair<std::string_view, DType>, 13> kCodes = {{
    {"BOOL", DType::kBool},
    {"U8", DType::kU8},
    {"I8", DType::kI8},
    {"U16", DType::kU16},
    {"I16", DType::kI16},
    {"F16", DType::kF16},
    {"BF16", DType::kBF16},
    {"U32", DType::kU32},
    {"I32", DType::kI32},
    {"F32", DType::kF32},
    {"U64", DType::kU64},
    {"I64", DType::kI64},
    {"F64", DType::kF64},
}};

/// Codes that the format has and sinew does not read: floats of 8 bits and fewer, complex numbers.
constexpr bool known_but_unsupported(std::string_view code) {
  return code.starts_with("F8_") || code.starts_with("F6_") || code == "F4" || code == "C64";
}

constexpr std::optional<DType> dtype_of(std::string_view code) {
  for (const auto& [name, dtype] : kCodes) {
    if (name == code) return dtype;
  }
  return std::nullopt;
}

constexpr std::string_view code_of(DType dtype) {
  for (const auto& [name, known] : kCodes) {
    if (known == dtype) return name;
  }
  return {};
}

/// True for well-formed UTF-8. Here because only one translation unit includes simdjson.
bool valid_utf8(std::string_view text);

}  // namespace sinew::safetensors

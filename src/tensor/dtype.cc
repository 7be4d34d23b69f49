#include "tensor/dtype.h"

#include <array>

namespace sinew {
namespace {

struct Info {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<Info, 13> kInfo = {{
    {DType::kBool, "bool", 1},
    {DType::kU8, "u8", 1},
    {DType::kI8, "i8", 1},
    {DType::kU16, "u16", 2},
    {DType::kI16, "i16", 2},
    {DType::kF16, "f16", 2},
    {DType::kBF16, "bf16", 2},
    {DType::kU32, "u32", 4},
    {DType::kI32, "i32", 4},
    {DType::kF32, "f32", 4},
    {DType::kU64, "u64", 8},
    {DType::kI64, "i64", 8},
    {DType::kF64, "f64", 8},
}};

// The table is indexed by the enumerator.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kInfo.size(); ++i) {
    if (static_cast<std::size_t>(kInfo[i].dtype) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

std::size_t size_of(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)].size; }

std::string_view to_string(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Info& info : kInfo) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

bool is_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

}  // namespace sinew

#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <iterator>

#include "tensor/tensor.h"

namespace sinew {
namespace {

struct Case {
  const char* name;
  std::size_t size;
  DType dtype;
  bool floating;
};

constexpr Case kCases[] = {
    {"bool", 1, DType::kBool, false}, {"u8", 1, DType::kU8, false},   {"i8", 1, DType::kI8, false},
    {"u16", 2, DType::kU16, false},   {"i16", 2, DType::kI16, false}, {"f16", 2, DType::kF16, true},
    {"bf16", 2, DType::kBF16, true},  {"u32", 4, DType::kU32, false}, {"i32", 4, DType::kI32, false},
    {"f32", 4, DType::kF32, true},    {"u64", 8, DType::kU64, false}, {"i64", 8, DType::kI64, false},
    {"f64", 8, DType::kF64, true},
};

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(std::size(kCases), 13U);
  for (const auto& [name, size, dtype, floating] : kCases) {
    EXPECT_EQ(to_string(dtype), name);
    EXPECT_EQ(parse_dtype(name), dtype);
    EXPECT_EQ(size_of(dtype), size) << name;
    EXPECT_EQ(is_float(dtype), floating) << name;
  }
}

TEST(DType, UnknownNames) {
  for (const char* name : {"", "F32", "float32", "f8", "f32 ", " f32", "bf", "bfp8", "int8"}) {
    EXPECT_EQ(parse_dtype(name), std::nullopt) << name;
  }
}

template <typename T>
void expect_type(DType dtype) {
  EXPECT_EQ(DTypeOf<T>::value, dtype);
  EXPECT_EQ(sizeof(T), size_of(dtype));
}

TEST(DType, CppTypes) {
  expect_type<bool>(DType::kBool);
  expect_type<std::uint8_t>(DType::kU8);
  expect_type<std::int8_t>(DType::kI8);
  expect_type<std::uint16_t>(DType::kU16);
  expect_type<std::int16_t>(DType::kI16);
  expect_type<F16>(DType::kF16);
  expect_type<BF16>(DType::kBF16);
  expect_type<std::uint32_t>(DType::kU32);
  expect_type<std::int32_t>(DType::kI32);
  expect_type<float>(DType::kF32);
  expect_type<std::uint64_t>(DType::kU64);
  expect_type<std::int64_t>(DType::kI64);
  expect_type<double>(DType::kF64);
}

}  // namespace
}  // namespace sinew

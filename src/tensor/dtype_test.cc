#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <iterator>

#include "tensor/tensor.h"

namespace sinew {
namespace {

struct Case {
  DType dtype;
  const char* name;
  std::size_t size;
  bool floating;
};

constexpr Case kCases[] = {
    {DType::kBool, "bool", 1, false}, {DType::kU8, "u8", 1, false},   {DType::kI8, "i8", 1, false},
    {DType::kU16, "u16", 2, false},   {DType::kI16, "i16", 2, false}, {DType::kF16, "f16", 2, true},
    {DType::kBF16, "bf16", 2, true},  {DType::kU32, "u32", 4, false}, {DType::kI32, "i32", 4, false},
    {DType::kF32, "f32", 4, true},    {DType::kU64, "u64", 8, false}, {DType::kI64, "i64", 8, false},
    {DType::kF64, "f64", 8, true},
};

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(std::size(kCases), 13U);
  for (const auto& [dtype, name, size, floating] : kCases) {
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

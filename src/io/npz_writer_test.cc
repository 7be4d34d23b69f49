#include "io/npz_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "base/error.h"
#include "io/npz.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

template <typename T>
TensorView view(const Shape& shape, const std::vector<T>& values) {
  return {DTypeOf<T>::value, shape, values.data()};
}

TEST(NpzWriter, WhatIsWrittenIsRead) {
  const TestFolder folder;
  const std::string path = folder.file("a.npz");
  const std::vector<float> floats = {1.5F, -2, 3e-8F, 4, 5, 6};
  const std::vector<std::uint32_t> words = {7, 0xffffffff};
  const std::vector<double> one = {0.1};
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  const std::vector<std::int64_t> none = {0};
  NpzWriter writer(path);
  writer.add("floats", view({2, 3}, floats));
  writer.add("words", view({2}, words));
  writer.add("scalar", view({}, one));
  writer.add("bytes", view({1, 3, 1}, bytes));
  writer.add("none", view({0, 4}, none));
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.commit();

  const auto npz = open_npz(path);
  npz->verify();
  EXPECT_EQ(npz->tensors().size(), 5U);
  const auto check = [&](const std::string& name, const Shape& shape, const auto& values) {
    const TensorView& array = npz->get(name);
    EXPECT_EQ(array.shape, shape) << name;
    using T = typename std::decay_t<decltype(values)>::value_type;
    ASSERT_EQ(array.dtype, DTypeOf<T>::value);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data) % 64, 0U) << "can be used where it is mapped";
    const auto read = array.as<T>();
    EXPECT_EQ(std::vector<T>(read.begin(), read.end()), values) << name;
  };
  check("floats", {2, 3}, floats);
  check("words", {2}, words);
  check("scalar", {}, one);
  check("bytes", {1, 3, 1}, bytes);
  EXPECT_EQ(npz->get("none").shape, (Shape{0, 4}));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.npz"});
}

TEST(NpzWriter, EqualArraysGiveEqualFiles) {
  const TestFolder folder;
  const std::vector<std::uint8_t> values = {1, 2, 3};
  for (const char* name : {"a.npz", "b.npz"}) {
    NpzWriter writer(folder.file(name));
    writer.add("x", view({3}, values));
    writer.commit();
  }
  EXPECT_EQ(std::filesystem::file_size(folder.file("a.npz")),
            std::filesystem::file_size(folder.file("b.npz")));
  EXPECT_EQ(open_npz(folder.file("b.npz"))->tensors().size(), 1U);
}

TEST(NpzWriter, EmptyArchivesAndTracesOfNone) {
  const TestFolder folder;
  {
    NpzWriter writer(folder.file("left.npz"));
    const std::vector<float> values = {1};
    writer.add("x", view({1}, values));
  }
  EXPECT_TRUE(folder.names().empty());
  NpzWriter writer(folder.file("empty.npz"));
  writer.commit();
  EXPECT_EQ(std::filesystem::file_size(folder.file("empty.npz")), 22U);
}

TEST(NpzWriter, RefusesNamesAndTypes) {
  const TestFolder folder;
  NpzWriter writer(folder.file("a.npz"));
  const std::vector<float> values = {1};
  const auto code = [&](const std::string& name, const TensorView& array) {
    try {
      writer.add(name, array);
    } catch (const Error& error) {
      return std::string(to_string(error.code()));
    }
    return std::string("added");
  };
  const TensorView array = view({1}, values);
  EXPECT_EQ(code("x", array), "added");
  const std::string usage(to_string(ErrorCode::kUsage));
  for (const std::string name : {"x", "", "a/b", "..\\c", "sp ace", "\xc3\xa4"})
    EXPECT_EQ(code(name, array), usage) << name;
  EXPECT_EQ(code("y", TensorView(DType::kBF16, {1}, values.data())), to_string(ErrorCode::kUnsupported));
}

}  // namespace
}  // namespace sinew

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Entry = SafetensorsWriter::Entry;

template <typename Fn>
Error error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kUsage, "nothing was thrown"};
}

std::string slurp(const std::string& path) {
  const auto file = MappedFile::open(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::vector<std::byte> counting(std::size_t size) {
  std::vector<std::byte> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
  return out;
}

TEST(SafetensorsWriter, ExactBytes) {
  const TestFolder folder;
  const std::string path = folder.file("out");
  SafetensorsWriter writer(path, {{"z", DType::kU8, Shape{3}}, {"a\"\\\n", DType::kBF16, Shape{}}},
                           {{"k", "v\t"}});
  writer.write(counting(2));
  writer.write(counting(3));
  EXPECT_THAT(folder.names(), ElementsAre(::testing::StartsWith("out.tmp-")));
  writer.commit();
  EXPECT_THAT(folder.names(), ElementsAre("out"));
  const std::string header =
      R"({"__metadata__":{"k":"v\u0009"},"z":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
      R"("a\"\\\u000a":{"dtype":"BF16","shape":[],"data_offsets":[3,5]}})";
  const std::string file = slurp(path);
  ASSERT_EQ(file.size() % 64, 5U);
  EXPECT_EQ(file.substr(8, header.size()), header);
  EXPECT_EQ(file.substr(8 + header.size(), file.size() - 13 - header.size()),
            std::string(file.size() - 13 - header.size(), ' '));
  EXPECT_LT(file.size() - 13 - header.size(), 64U);
}

TEST(SafetensorsWriter, RoundTripAndDeterminism) {
  const TestFolder folder;
  const auto bytes = counting(48);
  std::map<std::string, TensorView> tensors;
  tensors["scalar"] = {DType::kF64, Shape{}, bytes.data()};
  tensors["empty"] = {DType::kF32, Shape{0, 7}, bytes.data()};
  tensors["matrix"] = {DType::kU16, Shape{4, 6}, bytes.data()};
  tensors["transposed"] = {DType::kU16, Shape{6, 4}, Strides{1, 6}, bytes.data()};
  tensors["unaligned"] = {DType::kI32, Shape{3}, bytes.data() + 1};
  tensors["\u00fcber \x01"] = {DType::kBool, Shape{1}, bytes.data()};
  const std::map<std::string, std::string> metadata{{"", ""}, {"a", "quote \" and \u00e9"}};
  write_safetensors(folder.file("one"), tensors, metadata);
  write_safetensors(folder.file("two"), tensors, metadata);
  EXPECT_EQ(slurp(folder.file("one")), slurp(folder.file("two")));

  const auto checkpoint = open_safetensors(folder.file("one"));
  EXPECT_EQ(checkpoint->metadata(), metadata);
  ASSERT_EQ(checkpoint->tensors().size(), tensors.size());
  for (const auto& [name, view] : tensors) {
    SCOPED_TRACE(name);
    const TensorView& back = checkpoint->tensors().at(name);
    ASSERT_EQ(back.dtype, view.dtype);
    ASSERT_EQ(back.shape, view.shape);
    for (std::int64_t i = 0; i < view.shape.count(); ++i) EXPECT_EQ(element(back, i), element(view, i));
  }
}

TEST(SafetensorsWriter, DataStartsOnABoundary) {
  const TestFolder folder;
  for (std::size_t length = 1; length < 70; ++length) {
    const std::string path = folder.file("out");
    const auto bytes = counting(64);
    write_safetensors(path, {{std::string(length, 'n'), TensorView(DType::kU8, Shape{64}, bytes.data())}});
    const auto checkpoint = open_safetensors(path);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint->tensors().begin()->second.data) % 64, 0U);
  }
}

TEST(SafetensorsWriter, LargeAndSmallPiecesKeepTheirOrder) {
  const TestFolder folder;
  const auto bytes = counting((std::size_t{5} << 20) + 3);
  const auto total = static_cast<std::int64_t>(bytes.size());
  SafetensorsWriter writer(folder.file("out"), {{"t", DType::kU8, Shape{total}}});
  std::size_t done = 0;
  std::size_t piece = 1;
  while (done < bytes.size()) {
    piece = std::min(piece, bytes.size() - done);
    writer.write(std::span(bytes).subspan(done, piece));
    done += piece;
    piece = piece > (std::size_t{1} << 21) ? 1 : piece * 3;
  }
  writer.commit();
  const auto checkpoint = open_safetensors(folder.file("out"));
  EXPECT_EQ(std::memcmp(checkpoint->tensors().at("t").data, bytes.data(), bytes.size()), 0);
}

TEST(SafetensorsWriter, NothingToWrite) {
  const TestFolder folder;
  write_safetensors(folder.file("out"), {});
  EXPECT_TRUE(open_safetensors(folder.file("out"))->tensors().empty());
  EXPECT_EQ(slurp(folder.file("out")).size(), 64U);
}

TEST(SafetensorsWriter, ByteCountIsExact) {
  const TestFolder folder;
  {
    SafetensorsWriter writer(folder.file("out"), {{"t", DType::kF32, Shape{2}}});
    writer.write(counting(7));
    const Error few = error_of([&] { writer.commit(); });
    EXPECT_EQ(few.code(), ErrorCode::kFormat);
    EXPECT_THAT(few.what(), HasSubstr("8 bytes of tensor data were declared, but 7 were written"));
    const Error many = error_of([&] { writer.write(counting(2)); });
    EXPECT_EQ(many.code(), ErrorCode::kFormat);
    EXPECT_THAT(many.what(), HasSubstr("8 bytes of tensor data were declared, but 9 are written"));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(SafetensorsWriter, BadDeclarations) {
  const TestFolder folder;
  const auto declare = [&](const std::vector<Entry>& entries,
                           const std::map<std::string, std::string>& metadata = {}) {
    return error_of([&] { SafetensorsWriter(folder.file("out"), entries, metadata); });
  };
  EXPECT_THAT(declare({{"t", DType::kU8, {}}, {"t", DType::kU8, {}}}).what(),
              HasSubstr("tensor 't' is declared twice"));
  EXPECT_THAT(declare({{"__metadata__", DType::kU8, {}}}).what(), HasSubstr("'__metadata__' is reserved"));
  EXPECT_THAT(declare({{"\xff", DType::kU8, {}}}).what(), HasSubstr("is not UTF-8"));
  EXPECT_THAT(declare({}, {{"k", "\xc3"}}).what(), HasSubstr("metadata value"));
  const Shape huge{std::int64_t{1} << 61};
  EXPECT_EQ(declare({{"t", DType::kF64, huge}}).code(), ErrorCode::kLimit);
  const Shape large{std::int64_t{1} << 62};
  EXPECT_EQ(declare({{"a", DType::kU16, large}, {"b", DType::kU16, large}}).code(), ErrorCode::kLimit);
  EXPECT_THAT(folder.names(), IsEmpty());
  EXPECT_EQ(error_of([&] { SafetensorsWriter(folder.file("no/out"), {}); }).code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace sinew

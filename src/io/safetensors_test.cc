// The reader of safetensors against every rule of the format; the writer is tested in
// safetensors_writer_test.cc.
#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + rest;
}

/// A file with this header and `data_bytes` bytes of data that count up.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string out = with_length(header.size(), header);
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

std::unique_ptr<Checkpoint> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "file.st");
}

Error error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kUsage, "nothing was thrown"};
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const std::string file = file_of(
      R"({"__metadata__":{"rows":"0,95,191","é":"\u00e9\n"},)"
      R"("b":{"data_offsets":[4,10],"shape":[3,1],"dtype":"BF16"},"a\"\\\u0041":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("none":{"dtype":"I64","shape":[2,0],"data_offsets":[10,10]}})"
      "   ",
      10);
  const auto checkpoint = parse(file);
  EXPECT_EQ(checkpoint->format(), "safetensors");
  EXPECT_EQ(checkpoint->path(), "file.st");
  EXPECT_THAT(checkpoint->metadata(), ElementsAre(Pair("rows", "0,95,191"), Pair("é", "é\n")));
  ASSERT_EQ(checkpoint->tensors().size(), 3U);
  const TensorView& a = checkpoint->tensors().at("a\"\\A");
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, Shape());
  const TensorView& b = checkpoint->tensors().at("b");
  EXPECT_EQ(b.dtype, DType::kBF16);
  EXPECT_EQ(b.shape, Shape({3, 1}));
  EXPECT_TRUE(b.contiguous());
  EXPECT_EQ(static_cast<int>(*b.data), 4);
  EXPECT_EQ(checkpoint->tensors().at("none").shape.count(), 0);
  checkpoint->release(b);  // nothing to let go: the bytes are ours
}

TEST(Safetensors, EmptyHeader) {
  EXPECT_TRUE(parse(file_of("{}", 0))->tensors().empty());
  EXPECT_TRUE(parse(file_of("{ }    ", 0))->tensors().empty());
  EXPECT_THAT(error_of(file_of("{}", 1)).what(),
              HasSubstr("the data section has 1 bytes, but its tensors end at 0"));
}

TEST(Safetensors, EveryDtype) {
  const std::pair<const char*, DType> codes[] = {
      {"BOOL", DType::kBool}, {"U8", DType::kU8},   {"I8", DType::kI8},     {"U16", DType::kU16},
      {"I16", DType::kI16},   {"F16", DType::kF16}, {"BF16", DType::kBF16}, {"U32", DType::kU32},
      {"I32", DType::kI32},   {"F32", DType::kF32}, {"U64", DType::kU64},   {"I64", DType::kI64},
      {"F64", DType::kF64}};
  for (const auto& [code, dtype] : codes) {
    const std::size_t bytes = 3 * size_of(dtype);
    const std::string header =
        fmt::format(R"({{"t":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})", code, bytes);
    const std::string file = file_of(header, bytes);
    EXPECT_EQ(parse(file)->tensors().at("t").dtype, dtype) << code;
  }
}

TEST(Safetensors, UnsupportedDtypesAreNamed) {
  for (const char* code : {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "C64"}) {
    const Error error = error_of(
        file_of(fmt::format(R"({{"layer.w":{{"dtype":"{}","shape":[4],"data_offsets":[0,4]}}}})", code), 4));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(std::string(error.what()),
              fmt::format("file.st: tensor 'layer.w': dtype {} is not supported", code));
  }
}

struct Breach {
  const char* header;
  std::size_t data_bytes;
  const char* message;  // part of it
};

void expect_breaches(std::initializer_list<Breach> breaches) {
  for (const auto& [header, data_bytes, message] : breaches) {
    SCOPED_TRACE(header);
    const Error error = error_of(file_of(header, data_bytes));
    EXPECT_EQ(error.code(), ErrorCode::kFormat);
    EXPECT_THAT(error.what(), StartsWith("file.st: "));
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(Safetensors, HeaderText) {
  expect_breaches({
      {"", 0, "does not start with '{'"},
      {" {}", 0, "does not start with '{'"},
      {"\xef\xbb\xbf{}", 0, "does not start with '{'"},
      {"[]", 0, "does not start with '{'"},
      {"{}\n", 0, "does not end with '}' and spaces"},
      {"{", 0, "does not end with '}' and spaces"},
      {"{}{}", 0, "more text after the end"},
      {"{}}", 0, "more text after the end"},
      {"{,}", 0, "header: "},
      {"{\"a\"}", 0, "header: "},
      {"{\"a\":}", 0, "tensor 'a': "},
      {"{\"a\":{}", 0, "tensor 'a': has no dtype"},
      {"{\"a\xff\":{}}", 0, "header: "},
      {"{\"\\ud800\":{}}", 0, "header: "},
      {"{\"\\udc00\":{}}", 0, "header: "},
      {"{\"a\nb\":{}}", 0, "header: "},
      {"{\"a\\q\":{}}", 0, "header: "},
  });
}

TEST(Safetensors, Entries) {
  expect_breaches({
      {R"({"a":5})", 0, "tensor 'a': its entry must be an object"},
      {R"({"a":[]})", 0, "tensor 'a': its entry must be an object"},
      {R"({"a":null})", 0, "tensor 'a': its entry must be an object"},
      {R"({"a":{}})", 0, "tensor 'a': has no dtype"},
      {R"({"a":{"dtype":"F32"}})", 0, "tensor 'a': has no shape"},
      {R"({"a":{"dtype":"F32","shape":[]}})", 0, "tensor 'a': has no data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"x":1}})", 4, "tensor 'a': has the key 'x'"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4,
       "'a': the key 'dtype' appears twice"},
      {R"({"a":{"dtype":"F32","shape":[],"\u0073hape":[],"data_offsets":[0,4]}})", 4,
       "the key 'shape' appears twice"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"data_offsets":[0,4]}})", 4,
       "'data_offsets' appears twice"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
       4, "tensor 'a': the name appears twice"},
      {R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"\u0061":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
       4, "tensor 'a': the name appears twice"},
      {R"({"a":{"dtype":7,"shape":[],"data_offsets":[0,4]}})", 4, "tensor 'a': dtype must be a string"},
      {R"({"a":{"dtype":"f32","shape":[],"data_offsets":[0,4]}})", 4,
       "dtype 'f32' is not one of the format's"},
      {R"({"a":{"dtype":"","shape":[],"data_offsets":[0,4]}})", 4, "dtype '' is not one of the format's"},
      {R"({"\u001b[2J":{"dtype":"Q4","shape":[],"data_offsets":[0,4]}})", 4,
       R"(tensor '\x1b[2J': dtype 'Q4')"},
  });
}

TEST(Safetensors, Metadata) {
  expect_breaches({
      {R"({"__metadata__":5})", 0, "__metadata__ must be an object"},
      {R"({"__metadata__":{"a":5}})", 0, "__metadata__ 'a' must be a string"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "__metadata__ 'a' must be a string"},
      {R"({"__metadata__":{"a":"1","a":"1"}})", 0, "__metadata__ has the key 'a' twice"},
      {R"({"__metadata__":{"a":"\udc00"}})", 0, "header: "},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "the key '__metadata__' appears twice"},
  });
}

TEST(Safetensors, Shapes) {
  expect_breaches({
      {R"({"a":{"shape":4,"dtype":"U8","data_offsets":[0,4]}})", 4, "tensor 'a': shape must be an array"},
      {R"({"a":{"shape":[-4],"dtype":"U8","data_offsets":[0,4]}})", 4,
       "shape holds '-4', expected a non-negative integer"},
      {R"({"a":{"shape":[-0],"dtype":"U8","data_offsets":[0,0]}})", 0, "shape holds '-0'"},
      {R"({"a":{"shape":[4.0],"dtype":"U8","data_offsets":[0,4]}})", 4, "shape holds '4.0'"},
      {R"({"a":{"shape":[4e0 ],"dtype":"U8","data_offsets":[0,4]}})", 4, "shape holds '4e0'"},
      {R"({"a":{"shape":[04],"dtype":"U8","data_offsets":[0,4]}})", 4, "shape holds '04'"},
      {R"({"a":{"shape":["4"],"dtype":"U8","data_offsets":[0,4]}})", 4, "shape holds '\"4\"'"},
      {R"({"a":{"shape":[null],"dtype":"U8","data_offsets":[0,4]}})", 4, "shape holds 'null'"},
      {R"({"a":{"shape":[[4]],"dtype":"U8","data_offsets":[0,4]}})", 4, "shape holds '['"},
      {R"({"a":{"shape":[4,],"dtype":"U8","data_offsets":[0,4]}})", 4, "tensor 'a': shape"},
      {R"({"a":{"shape":[2 2],"dtype":"U8","data_offsets":[0,4]}})", 4, "tensor 'a': shape"},
      {R"({"a":{"shape":[1,1,1,1,1,1,1,1,4],"dtype":"U8","data_offsets":[0,4]}})", 4,
       "more than 8 dimensions"},
      {R"({"a":{"shape":[9223372036854775808],"dtype":"U8","data_offsets":[0,4]}})", 4,
       "dimension 9223372036854775808"},
      {R"({"a":{"shape":[18446744073709551620],"dtype":"U8","data_offsets":[0,4]}})", 4,
       "shape holds '18446744073709551620'"},
      {R"({"a":{"shape":[99999999999999999999999999999999999999999999],"dtype":"U8","data_offsets":[0,4]}})",
       4, "shape holds '9999999999999999999999999999999999999999...'"},
      // 2^32 * 2^32 wraps to 0; (2^42 + 1) * 2^22 wraps to 2^22; 2^61 of F64 wraps to 0 bytes (hostile
      // inputs, row 13).
      {R"({"a":{"shape":[4294967296,4294967296],"dtype":"U8","data_offsets":[0,0]}})", 0,
       "does not fit in 63 bits"},
      {R"({"a":{"shape":[4398046511105,4194304],"dtype":"U8","data_offsets":[0,4]}})", 4,
       "does not fit in 63 bits"},
      {R"({"a":{"shape":[0,4294967296,4294967296],"dtype":"U8","data_offsets":[0,0]}})", 0,
       "does not fit in 63 bits"},
      {R"({"a":{"shape":[2305843009213693952],"dtype":"F64","data_offsets":[0,0]}})", 0,
       "shape [2305843009213693952] of F64 overflows"},
  });
}

TEST(Safetensors, Offsets) {
  expect_breaches({
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":4}})", 4, "data_offsets must be an array"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[4]}})", 4,
       "data_offsets has 1 values, expected two"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[0,4,4]}})", 4,
       "data_offsets has more than two values"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[0,4.0]}})", 4, "data_offsets holds '4.0'"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[4,0]}})", 4, "data_offsets [4,0] run backwards"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[0,3]}})", 3,
       "hold 3 bytes, but shape [4] of U8 takes 4"},
      {R"({"a":{"shape":[1],"dtype":"F32","data_offsets":[0,8]}})", 8,
       "hold 8 bytes, but shape [1] of F32 takes 4"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[0,4]}})", 3,
       "leave the data section, which has 3 bytes"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[0,4]}})", 5,
       "the data section has 5 bytes, but its tensors end at 4"},
      {R"({"a":{"shape":[4],"dtype":"U8","data_offsets":[1,5]}})", 5,
       "tensor 'a': a hole lies before it: data bytes 0 to 1"},
      {R"({"a":{"shape":[2],"dtype":"U8","data_offsets":[0,2]},"b":{"shape":[2],"dtype":"U8","data_offsets":[3,5]}})",
       5, "tensor 'b': a hole lies before it: data bytes 2 to 3"},
      {R"({"b":{"shape":[3],"dtype":"U8","data_offsets":[0,3]},"a":{"shape":[3],"dtype":"U8","data_offsets":[2,5]}})",
       5, "tensor 'a': data_offsets [2,5] overlap tensor 'b'"},
      {R"({"b":{"shape":[4],"dtype":"U8","data_offsets":[0,4]},"a":{"shape":[4],"dtype":"U8","data_offsets":[0,4]}})",
       4, "overlap tensor"},
      {R"({"b":{"shape":[4],"dtype":"U8","data_offsets":[0,4]},"a":{"shape":[0],"dtype":"U8","data_offsets":[2,2]}})",
       4, "tensor 'a': data_offsets [2,2] overlap tensor 'b'"},
      {R"({"a":{"shape":[1],"dtype":"U8","data_offsets":[18446744073709551615,0]}})", 1, "run backwards"},
  });
}

TEST(Safetensors, HeaderLength) {
  EXPECT_THAT(error_of("").what(), HasSubstr("0 bytes are too few"));
  EXPECT_THAT(error_of(std::string(7, '\0')).what(), HasSubstr("7 bytes are too few"));
  EXPECT_THAT(error_of(with_length(0, "")).what(), HasSubstr("does not start with '{'"));
  EXPECT_THAT(error_of(with_length(3, "{}")).what(),
              HasSubstr("header length 3 goes beyond the end of the file"));
  EXPECT_THAT(error_of(with_length(100'000'000, "{}")).what(), HasSubstr("goes beyond the end"));
  EXPECT_THAT(error_of(with_length(100'000'001, "{}")).what(),
              HasSubstr("above the format's bound of 100000000 bytes"));
  EXPECT_THAT(error_of(with_length(~std::uint64_t{0}, "{}")).what(), HasSubstr("above the format's bound"));
  // A pickle or a zip taken for safetensors.
  EXPECT_EQ(error_of("PK\x03\x04 and so on and on").code(), ErrorCode::kFormat);
}

TEST(Safetensors, NestingBombs) {
  const std::string opens(1 << 20, '[');
  for (const std::string& inner :
       {opens, opens + std::string(opens.size(), ']'), std::string(1 << 20, '{')}) {
    EXPECT_EQ(error_of(file_of("{\"a\":" + inner + "}", 0)).code(), ErrorCode::kFormat);
    EXPECT_EQ(error_of(file_of("{\"a\":{\"shape\":" + inner + "}}", 0)).code(), ErrorCode::kFormat);
  }
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of(file_of(objects + "1" + std::string(100'000, '}'), 0)).code(), ErrorCode::kFormat);
}

std::string small_file() {
  return file_of(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                 R"("b":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}})",
                 19);
}

TEST(Safetensors, TruncatedAtAnyByte) {
  const std::string whole = small_file();
  ASSERT_EQ(parse(whole)->tensors().size(), 2U);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A heap copy of the exact size, so that the address sanitizer sees a read beyond it.
    const std::string part = whole.substr(0, size);
    EXPECT_EQ(error_of(part).code(), ErrorCode::kFormat) << size;
  }
}

TEST(Safetensors, AnyFlippedBitLoadsOrIsAnError) {
  const std::string whole = small_file();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      const auto checkpoint = parse(damaged);
      for (const auto& [name, view] : checkpoint->tensors()) {
        EXPECT_LE(view.data + view.bytes(),
                  reinterpret_cast<const std::byte*>(damaged.data()) + damaged.size());
      }
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kFormat || error.code() == ErrorCode::kUnsupported)
          << error.what();
    }
  }
}

TEST(Safetensors, OpensFiles) {
  const TestFolder folder;
  const std::string path = folder.file("model.safetensors");
  write_file_atomically(path, small_file());
  const auto checkpoint = open_safetensors(path);
  EXPECT_EQ(checkpoint->path(), path);
  const TensorView& b = checkpoint->tensors().at("b");
  EXPECT_EQ(element(b, 2), 18);
  checkpoint->release(b);
  EXPECT_EQ(element(b, 2), 18);

  EXPECT_THROW(open_safetensors(folder.file("absent")), Error);
  EXPECT_THROW(open_safetensors(folder.file("")), Error);  // the folder
  write_file_atomically(path, "");
  EXPECT_THROW(open_safetensors(path), Error);
}

TEST(Safetensors, SharedGoldens) {
  const auto shared = shared_folder();
  if (!shared) GTEST_SKIP() << kNoShared;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*shared + "/golden")) {
    if (entry.path().extension() != ".safetensors") continue;
    SCOPED_TRACE(entry.path().string());
    const auto checkpoint = open_safetensors(entry.path().string());
    std::size_t bytes = 0;
    for (const auto& [name, view] : checkpoint->tensors()) bytes += view.bytes();
    EXPECT_GT(checkpoint->tensors().size(), 0U);
    EXPECT_LT(bytes, std::filesystem::file_size(entry.path()));
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(Safetensors, GoldenTruncatedAtPages) {
  const auto path = shared_file("golden/hamer/geometry.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto whole = MappedFile::open(*path);
  for (std::size_t size = 0; size < whole.bytes().size(); size += 4096) {
    EXPECT_THROW(parse_safetensors(whole.bytes().first(size), "cut"), Error) << size;
  }
}

}  // namespace
}  // namespace sinew

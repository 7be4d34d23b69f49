#include "io/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/memory_checkpoint.h"
#include "io/printable.h"
#include "io/text_table.h"

namespace sinew {
namespace {

using ::testing::HasSubstr;

constexpr float kData[24] = {};

MemoryCheckpoint sample() {
  MemoryCheckpoint out("model.st");
  out.add("blocks.0.weight", Shape{4, 6}, std::vector<double>(24), DType::kBF16);
  out.add("blocks.1.weight", Shape{2000, 300}, std::vector<double>(600'000), DType::kBF16);
  out.add("steps", Shape{}, {7}, DType::kI64);
  out.add_view("view", TensorView(DType::kF32, Shape{3, 2}, Strides{1, 3}, kData));
  out.set("format", "pt");
  return out;
}

TEST(Inspect, Summary) {
  const auto checkpoint = sample();
  const InspectReport report = inspect_checkpoint(checkpoint);
  EXPECT_EQ(report.path, "model.st");
  EXPECT_EQ(report.format, "memory");
  EXPECT_EQ(report.tensors_in_file, 4U);
  ASSERT_EQ(report.tensors.size(), 4U);
  EXPECT_EQ(report.tensors[0].name, "blocks.0.weight");
  EXPECT_EQ(report.tensors[0].bytes, 48U);
  EXPECT_FALSE(report.tensors[0].strided);
  EXPECT_TRUE(report.tensors[3].strided);
  EXPECT_EQ(report.by_dtype.size(), 3U);
  EXPECT_EQ(report.by_dtype.at(DType::kBF16).tensors, 2);
  EXPECT_EQ(report.by_dtype.at(DType::kBF16).parameters, 600'024);
  EXPECT_EQ(report.by_dtype.at(DType::kBF16).bytes, 1'200'048U);
  EXPECT_EQ(report.total.tensors, 4);
  EXPECT_EQ(report.total.parameters, 600'031);
  EXPECT_EQ(report.total.bytes, 1'200'080U);
}

TEST(Inspect, Filter) {
  const auto checkpoint = sample();
  EXPECT_EQ(inspect_checkpoint(checkpoint, "*.weight").tensors.size(), 2U);
  EXPECT_EQ(inspect_checkpoint(checkpoint, "blocks.[1-9].*").tensors.size(), 1U);
  EXPECT_EQ(inspect_checkpoint(checkpoint, "blocks").tensors.size(), 0U);  // whole names
  const InspectReport none = inspect_checkpoint(checkpoint, "nothing*");
  EXPECT_EQ(none.total.tensors, 0);
  EXPECT_THAT(to_text(none), HasSubstr("(0 of 4 tensors match 'nothing*')"));
}

TEST(Inspect, Text) {
  const auto checkpoint = sample();
  EXPECT_EQ(to_text(inspect_checkpoint(checkpoint)),
            "model.st: memory\n"
            "metadata format: pt\n"
            "tensor           dtype  shape         bytes\n"
            "blocks.0.weight  bf16   [4,6]            48\n"
            "blocks.1.weight  bf16   [2000,300]  1200000\n"
            "steps            i64    []                8\n"
            "view             f32    [3,2]            24  strided\n"
            "bf16: 2 tensors, 600024 parameters, 1200048 bytes (1.2 MB)\n"
            "f32: 1 tensors, 6 parameters, 24 bytes (24 B)\n"
            "i64: 1 tensors, 1 parameters, 8 bytes (8 B)\n"
            "total: 4 tensors, 600031 parameters, 1200080 bytes (1.2 MB)\n");
}

TEST(Inspect, Json) {
  auto checkpoint = sample();
  checkpoint.add("bad\xff", Shape{1}, {1});
  const auto json = nlohmann::json::parse(to_json(inspect_checkpoint(checkpoint, "[bv]*")));
  EXPECT_EQ(json["path"], "model.st");
  EXPECT_EQ(json["metadata"]["format"], "pt");
  EXPECT_EQ(json["tensors_in_file"], 5);
  EXPECT_EQ(json["tensors"].size(), 4U);
  EXPECT_EQ(json["tensors"][3]["shape"], nlohmann::json::parse("[3,2]"));
  EXPECT_EQ(json["tensors"][3]["strided"], true);
  EXPECT_EQ(json["by_dtype"]["bf16"]["parameters"], 600'024);
  EXPECT_EQ(json["total"]["tensors"], 4);
}

TEST(Inspect, HostileNamesStayOnOneLine) {
  MemoryCheckpoint checkpoint("m");
  checkpoint.add("a\n\x1b[2J\x7f", Shape{1}, {1});
  EXPECT_THAT(to_text(inspect_checkpoint(checkpoint)), HasSubstr("a\\x0a\\x1b[2J\\x7f  f32"));
}

TEST(Printable, CutsAtWholeCharacters) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable("abc\u00e9\u00e9", 4), "abc...");
  EXPECT_EQ(printable("abc\u00e9\u00e9", 5), "abc\u00e9...");
  EXPECT_EQ(printable(std::string(10, '\x80'), 4), "\x80...");  // no UTF-8 at all: some of it
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(TextTable, AlignsByCodePoint) {
  EXPECT_EQ(
      render_table({{"n"}, {"value", true}, {"x"}}, {{"\u00e9\u00e9\u00e9", "1", "a"}, {"b", "123456", ""}}),
      "n     value  x\n"
      "\u00e9\u00e9\u00e9       1  a\n"
      "b    123456\n");
}

}  // namespace
}  // namespace sinew

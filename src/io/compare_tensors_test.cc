#include "io/compare_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/memory_checkpoint.h"
#include "io/safetensors.h"

namespace sinew {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// "name: a_name ~ b_name", with "(a)" behind it when A's is the reference.
std::vector<std::string> pairs_of(const CompareReport& report) {
  std::vector<std::string> out;
  out.reserve(report.rows.size());
  for (const CompareRow& row : report.rows) {
    out.push_back(
        fmt::format("{}: {} ~ {}{}", row.name, row.a_name, row.b_name, row.reference_is_b ? "" : " (a)"));
  }
  return out;
}

/// A checkpoint of one-element tensors with these names.
MemoryCheckpoint names(const std::string& path, std::initializer_list<const char*> list) {
  MemoryCheckpoint out(path);
  for (const char* name : list) out.add(name, Shape{1}, {1});
  return out;
}

std::vector<double> counting(std::int64_t size) {
  std::vector<double> out(static_cast<std::size_t>(size));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Compare, EqualFilesPass) {
  MemoryCheckpoint a("a.st");
  a.add("x", Shape{2, 2}, {1, 2, 3, 4}).add("y", Shape{}, {5}, DType::kI64).add("empty", Shape{0}, {});
  const CompareReport report = compare_checkpoints(a, a);
  EXPECT_TRUE(report.passed);
  EXPECT_THAT(pairs_of(report), ElementsAre("empty: empty ~ empty", "x: x ~ x", "y: y ~ y"));
  EXPECT_THAT(report.only_in_a, IsEmpty());
  EXPECT_EQ(report.rows[1].metrics.correlation, 1);
}

TEST(Compare, ToleranceIsRelativeToTheLargestMagnitude) {
  MemoryCheckpoint a("a");
  MemoryCheckpoint b("b");
  a.add("x", Shape{3}, {0.5, 0, -100}, DType::kF64);
  b.add("x", Shape{3}, {0, 0, -100}, DType::kF64);
  EXPECT_FALSE(compare_checkpoints(a, b).passed);
  EXPECT_TRUE(compare_checkpoints(a, b, {.rtol = 0.005}).passed);  // 0.5 = 0.005 * 100, exactly the bound
  EXPECT_FALSE(compare_checkpoints(a, b, {.rtol = 0.0049}).passed);
  EXPECT_TRUE(compare_checkpoints(a, b, {.atol = 0.5}).passed);
  EXPECT_TRUE(compare_checkpoints(a, b, {.rtol = 0.0025, .atol = 0.25}).passed);
  const CompareReport failed = compare_checkpoints(a, b, {.rtol = 0.001});
  EXPECT_EQ(failed.rows[0].tolerance, 0.1);
  EXPECT_THAT(failed.rows[0].note, HasSubstr("0.5 is above 0.1"));
}

TEST(Compare, NonFiniteDifferencesFail) {
  const double nan = std::nan("");
  MemoryCheckpoint a("a");
  MemoryCheckpoint b("b");
  a.add("nan", Shape{2}, {1, nan}).add("infinity", Shape{2}, {1, HUGE_VAL}).add("both", Shape{1}, {nan});
  b.add("nan", Shape{2}, {1, 2}).add("infinity", Shape{2}, {1, HUGE_VAL}).add("both", Shape{1}, {nan});
  const CompareReport report = compare_checkpoints(a, b, {.rtol = 1e9, .atol = 1e9});
  EXPECT_FALSE(report.passed);
  EXPECT_FALSE(report.rows[0].passed);
  EXPECT_TRUE(report.rows[1].passed);
  EXPECT_FALSE(report.rows[2].passed);
  EXPECT_THAT(report.rows[2].note, HasSubstr("1 elements differ by an infinity or a NaN"));
}

TEST(Compare, OneSidedTensors) {
  const auto a = names("a", {"x", "only_a"});
  const auto b = names("b", {"x", "only_b", "f64.only_b"});
  const CompareReport report = compare_checkpoints(a, b);
  EXPECT_TRUE(report.passed);
  EXPECT_THAT(report.only_in_a, ElementsAre("only_a"));
  EXPECT_THAT(report.only_in_b, ElementsAre("f64.only_b", "only_b"));
  EXPECT_FALSE(compare_checkpoints(a, b, {.strict = true}).passed);
  EXPECT_TRUE(compare_checkpoints(a, a, {.strict = true}).passed);
}

TEST(Compare, NothingInCommon) {
  try {
    compare_checkpoints(names("a.st", {"x"}), names("b.st", {"y", "z"}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_STREQ(error.what(), "a.st (1 tensors) and b.st (2 tensors) have no tensor in common");
  }
  EXPECT_THROW(compare_checkpoints(names("a", {"x"}), names("b", {"x"}), {.rtol = -1}), Error);
  EXPECT_THROW(compare_checkpoints(names("a", {"x"}), names("b", {"x"}), {.atol = std::nan("")}), Error);
}

TEST(Compare, TwinInB) {
  const auto a = names("a", {"x", "y"});
  const auto b = names("b", {"x", "f64.x", "y"});
  const CompareReport report = compare_checkpoints(a, b, {.strict = true});
  EXPECT_THAT(pairs_of(report), ElementsAre("x: x ~ f64.x", "y: y ~ y"));
  EXPECT_TRUE(report.passed);  // plain x of B was superseded, not left over
}

TEST(Compare, TwinInA) {
  const auto a = names("a", {"x", "f64.x"});
  const auto b = names("b", {"x"});
  const CompareReport report = compare_checkpoints(a, b, {.strict = true});
  EXPECT_THAT(pairs_of(report), ElementsAre("x: f64.x ~ x (a)"));
  EXPECT_TRUE(report.passed);
}

TEST(Compare, TwinsOnBothSidesAreComparedWithTheirLike) {
  const auto a = names("a", {"x", "f64.x"});
  const CompareReport report = compare_checkpoints(a, a, {.strict = true});
  EXPECT_THAT(pairs_of(report), ElementsAre("x: f64.x ~ f64.x", "x: x ~ x"));
  EXPECT_TRUE(report.passed);
}

TEST(Compare, TwinWithoutItsPlainTensor) {
  EXPECT_THAT(pairs_of(compare_checkpoints(names("a", {"x"}), names("b", {"f64.x"}))),
              ElementsAre("x: x ~ f64.x"));
  EXPECT_THAT(pairs_of(compare_checkpoints(names("a", {"f64.x"}), names("b", {"x"}))),
              ElementsAre("x: f64.x ~ x (a)"));
  // f64x. is another name altogether.
  EXPECT_THROW(compare_checkpoints(names("a", {"x"}), names("b", {"f64x.x"})), Error);
}

TEST(Compare, ReferenceOfTwinInAGivesTheScale) {
  MemoryCheckpoint a("a");
  MemoryCheckpoint b("b");
  a.add("f64.x", Shape{2}, {10, 0}, DType::kF64);
  b.add("x", Shape{2}, {11, 0});
  const CompareReport report = compare_checkpoints(a, b, {.rtol = 0.1});
  EXPECT_TRUE(report.passed);
  EXPECT_EQ(report.rows[0].metrics.max_reference, 10);
  EXPECT_EQ(report.rows[0].metrics.relative_l2, 0.1);
}

TEST(Compare, ShapesUpToAxesOfOne) {
  MemoryCheckpoint a("a");
  MemoryCheckpoint b("b");
  a.add("x", Shape{1, 3, 1, 2}, counting(6))
      .add("t", Shape{2, 3}, counting(6))
      .add("n", Shape{6}, counting(6));
  b.add("x", Shape{3, 2}, counting(6)).add("t", Shape{3, 2}, counting(6)).add("n", Shape{7}, counting(7));
  const CompareReport report = compare_checkpoints(a, b);
  EXPECT_FALSE(report.passed);
  EXPECT_THAT(report.rows[0].note, HasSubstr("shape mismatch: [6] against [7]"));
  EXPECT_THAT(report.rows[1].note, HasSubstr("shape mismatch: [2,3] against [3,2]"));
  EXPECT_TRUE(report.rows[2].passed);
}

/// A holds x [1,8,2] = 0..15; the golden holds `stored` rows of it.
CompareReport compare_rows(const std::string& name, const Shape& shape, const std::vector<double>& stored,
                           const char* metadata, const Shape& full = Shape{1, 8, 2}) {
  MemoryCheckpoint a("a");
  MemoryCheckpoint b("golden.st");
  a.add("x", full, counting(full.count()));
  b.add(name, shape, stored);
  if (metadata != nullptr) b.set("rows", metadata);
  return compare_checkpoints(a, b, {.strict = true});
}

TEST(CompareRows, ListedByMetadata) {
  for (const char* name : {"x.rows", "f64.x.rows"}) {
    const CompareReport report = compare_rows(name, Shape{1, 2, 2}, {2, 3, 14, 15}, "1,7");
    EXPECT_THAT(pairs_of(report), ElementsAre(fmt::format("x: x ~ {}", name)));
    EXPECT_TRUE(report.passed) << report.rows[0].note;
    EXPECT_EQ(report.rows[0].metrics.count, 4);
  }
  EXPECT_TRUE(compare_rows("x.rows", Shape{2, 2}, {14, 15, 0, 1}, "7,0").passed);
  EXPECT_TRUE(compare_rows("x.rows", Shape{1, 2, 2}, {2, 3, 14, 15}, "1,7", Shape{8, 2}).passed);
  EXPECT_TRUE(
      compare_rows("x.rows", Shape{2, 1, 2}, {2, 3, 10, 11}, "1", Shape{2, 4, 2}).passed);  // a batch of two
  EXPECT_FALSE(compare_rows("x.rows", Shape{1, 2, 2}, {2, 3, 14, 15}, "1,6").passed);
}

TEST(CompareRows, DefaultRows) {
  const Shape full{1, 192, 2};
  EXPECT_TRUE(compare_rows("x.rows", Shape{1, 3, 2}, {0, 1, 190, 191, 382, 383}, nullptr, full).passed);
  const CompareReport four = compare_rows("x.rows", Shape{1, 4, 2}, counting(8), nullptr, full);
  EXPECT_FALSE(four.passed);
  EXPECT_THAT(four.rows[0].note, HasSubstr("4 rows, but golden.st has no metadata 'rows'"));
}

TEST(CompareRows, ThatDoNotFit) {
  const auto note = [](const Shape& shape, const char* metadata, const Shape& full = Shape{1, 8, 2}) {
    const CompareReport report = compare_rows("x.rows", shape, counting(shape.count()), metadata, full);
    EXPECT_FALSE(report.passed);
    return report.rows[0].note;
  };
  EXPECT_THAT(note(Shape{1, 2, 2}, "1,7,3"), HasSubstr("2 rows, but metadata 'rows' lists 3"));
  EXPECT_THAT(note(Shape{1, 2, 2}, "1,8"), HasSubstr("row 8 is not among the 8"));
  EXPECT_THAT(note(Shape{1, 2, 3}, "1,7"), HasSubstr("[1,2,3] are no rows of [1,8,2]"));
  EXPECT_THAT(note(Shape{2, 2, 2}, "1,7"), HasSubstr("are no rows of"));
  EXPECT_THAT(note(Shape{2}, "1,7"), HasSubstr("two axes"));
  EXPECT_THAT(note(Shape{2, 2}, "1,7", Shape{16}), HasSubstr("two axes"));
}

TEST(CompareRows, BadMetadata) {
  for (const char* text :
       {"", ",", "1,", ",1", "1,,2", "1, 2", "-1,2", "a", "1.5", "1;2", "99999999999999999999"}) {
    try {
      compare_rows("x.rows", Shape{1, 2, 2}, counting(4), text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFormat) << text;
      EXPECT_THAT(error.what(), AllOf(HasSubstr("golden.st"), HasSubstr("metadata 'rows'")));
    }
  }
}

TEST(CompareRows, PairingWithTwins) {
  // Rows in both files are compared as they are; the f64 twin of rows supersedes the plain ones.
  EXPECT_THAT(pairs_of(compare_checkpoints(names("a", {"x.rows"}), names("b", {"x.rows"}))),
              ElementsAre("x.rows: x.rows ~ x.rows"));
  MemoryCheckpoint a("a");
  MemoryCheckpoint b("b");
  a.add("x", Shape{1, 4, 1}, counting(4));
  b.add("x.rows", Shape{1, 1, 1}, {2}).add("f64.x.rows", Shape{1, 1, 1}, {2}).set("rows", "2");
  EXPECT_THAT(pairs_of(compare_checkpoints(a, b, {.strict = true})), ElementsAre("x: x ~ f64.x.rows"));
  EXPECT_THAT(pairs_of(compare_checkpoints(b, a, {.strict = true})), ElementsAre("x: f64.x.rows ~ x (a)"));
  EXPECT_TRUE(compare_checkpoints(b, a, {.strict = true}).passed);
}

TEST(CompareReport, Text) {
  MemoryCheckpoint a("a.st");
  MemoryCheckpoint b("b.st");
  a.add("x", Shape{2}, {1, 2}).add("long.name", Shape{2}, {1, 2}).add("only\x1b", Shape{1}, {1});
  b.add("x", Shape{2}, {1, 4}).add("long.name", Shape{2}, {1, 2}, DType::kBF16).add("z", Shape{1}, {1});
  const std::string text = to_text(compare_checkpoints(a, b, {.atol = 0.5, .strict = true}));
  EXPECT_EQ(
      text,
      "a: a.st\n"
      "b: b.st\n"
      "tensor     dtype     shape  count   max|a-b|     rel l2          pcc   max|ref|  nonfinite  verdict\n"
      "long.name  f32~bf16  [2]        2  0.000e+00  0.000e+00  1.000000000  2.000e+00          0  ok\n"
      "x          f32       [2]        2  2.000e+00  4.851e-01  1.000000000  4.000e+00          0  FAILED: 2 "
      "is above 0.5\n"
      "only in a.st (1):\n"
      "  only\\x1b\n"
      "only in b.st (1):\n"
      "  z\n"
      "FAILED: 1 of 2 tensors within atol 0.5 + rtol 0 * max|ref|; 2 on one side only (strict)\n");
  EXPECT_THAT(to_text(compare_checkpoints(a, a)),
              AllOf(HasSubstr("\nok: 3 of 3 tensors"), Not(HasSubstr("only in"))));
}

TEST(CompareReport, Json) {
  MemoryCheckpoint a("a.st");
  MemoryCheckpoint b("b.st");
  a.add("x", Shape{2}, {1, 2}).add("zero", Shape{1}, {1}).add("bad\xff", Shape{1}, {1});
  b.add("x", Shape{2, 1}, {1, 4}, DType::kF64).add("zero", Shape{1}, {0});
  const auto json = nlohmann::json::parse(to_json(compare_checkpoints(a, b, {.rtol = 0.5})));
  EXPECT_EQ(json["a"], "a.st");
  EXPECT_EQ(json["rtol"], 0.5);
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["only_in_a"].size(), 1U);
  ASSERT_EQ(json["tensors"].size(), 2U);
  const auto& x = json["tensors"][0];
  EXPECT_EQ(x["name"], "x");
  EXPECT_EQ(x["a_shape"], nlohmann::json::parse("[2]"));
  EXPECT_EQ(x["b_shape"], nlohmann::json::parse("[2,1]"));
  EXPECT_EQ(x["b_dtype"], "f64");
  EXPECT_EQ(x["max_abs_difference"], 2);
  EXPECT_EQ(x["passed"], true);
  EXPECT_TRUE(json["tensors"][1]["relative_l2"].is_null());  // infinity
}

TEST(Compare, GoldenWithItselfAndAcross) {
  const auto path = shared_file("golden/hamer/io_full.safetensors");
  const auto path_b = shared_file("golden/hamer/io_full_b.safetensors");
  if (!path || !path_b) GTEST_SKIP() << kNoShared;
  const auto golden = open_safetensors(*path);
  EXPECT_TRUE(compare_checkpoints(*golden, *golden, {.strict = true}).passed);
  EXPECT_FALSE(compare_checkpoints(*golden, *open_safetensors(*path_b)).passed);
}

TEST(Compare, GoldenTwins) {
  // In io.safetensors f32 results of the original lie beside their f64 twins: a dump without twins against
  // the file.
  const auto path = shared_file("golden/hamer/io.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto golden = open_safetensors(*path);
  MemoryCheckpoint dump("dump");
  for (const auto& [name, view] : golden->tensors()) {
    if (!name.starts_with("f64.")) dump.add_view(name, view);
  }
  const CompareReport report = compare_checkpoints(dump, *golden, {.rtol = 1e-4, .strict = true});
  EXPECT_TRUE(report.passed) << to_text(report);
  int twins = 0;
  for (const CompareRow& row : report.rows) twins += row.a_name != row.b_name ? 1 : 0;
  EXPECT_GT(twins, 5);
}

}  // namespace
}  // namespace sinew

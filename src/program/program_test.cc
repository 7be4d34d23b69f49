#include "program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "program/elementwise.h"
#include "program/linear.h"

namespace sinew {
namespace {

using testing::HasSubstr;

/// Runs fn and returns the message of the Error it throws; empty when it throws none.
template <typename Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Add add(ValueId a, ValueId b, ValueId out) {
  Add op;
  op.a = a;
  op.b = b;
  op.out = out;
  return op;
}

TEST(ProgramBuilder, BuildsAndPrints) {
  ProgramBuilder builder("sum");
  const ValueId x = builder.input("x", DType::kF32, {2, 3});
  const ValueId b = builder.weight("b", DType::kF32, {1, 3});
  const ValueId y = builder.output("y", DType::kF32, {2, 3});
  builder.add(add(x, b, y));
  const Program program = builder.finish();
  EXPECT_EQ(program.to_string(), "program sum\n  y:f32[2,3] = add(x, b)\n");
  EXPECT_EQ(program.find("y"), y);
  EXPECT_FALSE(program.find("z"));
  EXPECT_EQ(program.with_role(Role::kWeight), std::vector{b});
  EXPECT_EQ(program.flops(), 6);
}

TEST(ProgramBuilder, RefusesMisuse) {
  ProgramBuilder builder("p");
  const ValueId x = builder.input("x", DType::kF32, {2, 3});
  const ValueId t = builder.output("t", DType::kF32, {2, 3});
  const ValueId y = builder.output("y", DType::kF32, {2, 3});
  EXPECT_THAT(error_of([&] { builder.local("x", DType::kF32, {1}); }), HasSubstr("two values are named x"));
  EXPECT_THAT(error_of([&] { builder.local("empty", DType::kF32, {0, 3}); }), HasSubstr("empty is empty"));
  EXPECT_THAT(error_of([&] { builder.add(add(t, x, y)); }), HasSubstr("reads t before it is written"));
  EXPECT_THAT(error_of([&] { builder.add(add(x, ValueId{}, y)); }), HasSubstr("lacks an operand"));
  EXPECT_THAT(error_of([&] { builder.add(add(x, x, ValueId{})); }), HasSubstr("lacks an output"));
  builder.add(add(x, x, t));
  EXPECT_THAT(error_of([&] { builder.add(add(x, x, t)); }), HasSubstr("writes t, which already has a value"));
  EXPECT_THAT(error_of([&] { builder.add(add(x, x, x)); }), HasSubstr("writes x"));
  EXPECT_THAT(error_of([&] { builder.finish(); }), HasSubstr("y is never written"));
}

TEST(ProgramBuilder, RefusesValuesThatNobodyReads) {
  ProgramBuilder locals("p");
  const ValueId x = locals.input("x", DType::kF32, {1, 1});
  locals.add(add(x, x, locals.local("t", DType::kF32, {1, 1})));
  EXPECT_THAT(error_of([&] { locals.finish(); }), HasSubstr("t is never read"));

  ProgramBuilder weights("p");
  weights.weight("w", DType::kF32, {1, 1});
  EXPECT_THAT(error_of([&] { weights.finish(); }), HasSubstr("w is never read"));
}

TEST(ProgramBuilder, SharedWeightsMustAgree) {
  ProgramBuilder builder("p");
  const ValueId w = builder.shared_weight("w", DType::kF32, {2, 2});
  EXPECT_EQ(builder.shared_weight("w", DType::kF32, {2, 2}), w);
  EXPECT_THAT(error_of([&] { builder.shared_weight("w", DType::kBF16, {2, 2}); }),
              HasSubstr("declared twice"));
  EXPECT_THAT(error_of([&] { builder.shared_weight("w", DType::kF32, {4}); }), HasSubstr("declared twice"));
}

TEST(ProgramBuilder, KeepTurnsALocalIntoAnOutput) {
  ProgramBuilder builder("p");
  const ValueId x = builder.input("x", DType::kF32, {1, 1});
  const ValueId t = builder.local("t", DType::kF32, {1, 1});
  builder.add(add(x, x, t));
  builder.keep(t);
  EXPECT_EQ(builder.finish().with_role(Role::kOutput), std::vector{t});
}

}  // namespace
}  // namespace sinew

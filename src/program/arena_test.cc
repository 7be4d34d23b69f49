#include "program/arena.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "program/columns.h"

namespace sinew {
namespace {

/// A random straight-line program: each op joins two or three earlier values.
Program random_program(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  };
  ProgramBuilder builder("random");
  std::vector<ValueId> values = {builder.input("in", DType::kF32, {1, 7})};
  std::vector<bool> read = {true};
  const std::size_t ops = 3 + pick(40);
  for (std::size_t i = 0; i < ops; ++i) {
    ConcatColumns op;
    std::int64_t columns = 0;
    const std::size_t parts = 1 + pick(3);
    for (std::size_t p = 0; p < parts; ++p) {
      // Mostly recent values, so that lifetimes are short and memory is worth reusing.
      const std::size_t from =
          values.size() - 1 - std::min(values.size() - 1, pick(pick(10) == 0 ? values.size() : 3));
      if (builder.value(values[from]).shape[1] + columns > 4000) continue;
      op.parts.push_back(values[from]);
      columns += builder.value(values[from]).shape[1];
      read[from] = true;
    }
    if (op.parts.empty()) continue;
    op.out = builder.local(fmt::format("v{}", i), DType::kF32, {1, columns});
    builder.add(op);
    values.push_back(op.out);
    read.push_back(false);
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (!read[v]) builder.keep(values[v]);
  }
  return builder.finish();
}

TEST(Arena, ValuesAliveTogetherNeverOverlap) {
  std::size_t reused = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Program program = random_program(seed);
    const ArenaPlan plan = plan_arena(program);
    const auto values = program.values();
    std::size_t total = 0;
    for (std::size_t a = 0; a < values.size(); ++a) {
      const std::size_t a_bytes = static_cast<std::size_t>(values[a].shape.count()) * 4;
      total += a_bytes;
      EXPECT_EQ(plan.offset[a] % ArenaPlan::kAlignment, 0U);
      EXPECT_LE(plan.offset[a] + a_bytes, plan.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        const Lifetime la = plan.lifetime[a];
        const Lifetime lb = plan.lifetime[b];
        if (la.first > lb.last || lb.first > la.last) continue;
        const std::size_t b_bytes = static_cast<std::size_t>(values[b].shape.count()) * 4;
        const bool apart =
            plan.offset[a] + a_bytes <= plan.offset[b] || plan.offset[b] + b_bytes <= plan.offset[a];
        EXPECT_TRUE(apart) << "seed " << seed << ": " << values[a].name << " and " << values[b].name;
      }
    }
    if (plan.bytes < total) ++reused;
  }
  EXPECT_GT(reused, 150U);  // otherwise nothing was planned, only laid out
}

TEST(Arena, LifetimesCoverReadersInputsAndOutputs) {
  ProgramBuilder builder("chain");
  ValueId at = builder.input("in", DType::kF32, {1, 16});
  for (int i = 0; i < 6; ++i) {
    ConcatColumns op;
    op.parts = {at};
    op.out = i == 5 ? builder.output("out", DType::kF32, {1, 16})
                    : builder.local(fmt::format("t{}", i), DType::kF32, {1, 16});
    builder.add(op);
    at = op.out;
  }
  const Program program = builder.finish();
  const ArenaPlan plan = plan_arena(program);
  const auto life = [&](const char* name) {
    return plan.lifetime[static_cast<std::size_t>(program.find(name).index)];
  };
  EXPECT_EQ(life("in").first, 0);
  EXPECT_EQ(life("in").last, 5);
  EXPECT_EQ(life("out").first, 0);
  EXPECT_EQ(life("t2").first, 2);
  EXPECT_EQ(life("t2").last, 3);
  // Input, output and two locals in turn: four lines of 64 bytes.
  EXPECT_EQ(plan.bytes, 4 * 64U);
}

}  // namespace
}  // namespace sinew

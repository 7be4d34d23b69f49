#include "plan/chain.h"

#include <gmock/gmock.h>

#include <array>

#include "plan/transforms_test_support.h"

namespace sinew::transforms {
namespace {

using testing::ElementsAre;

Step times(double factor) {
  return {"times " + std::to_string(static_cast<int>(factor)), [factor](Tensor tensor) {
            for (double& value : tensor.as<double>()) value *= factor;
            return tensor;
          }};
}
Step refuse() {
  return {"refuse", [](const Tensor& tensor) -> Tensor {
            throw fail(ErrorCode::kMismatch, "{} is not wanted", to_string(tensor.shape()));
          }};
}
Chain sum(std::vector<Chain> parts) {
  return combined(std::move(parts), "sum", [](const Operands& operands) {
    Tensor out(DType::kF64, Shape{1});
    for (const Tensor& operand : operands) {
      for (const double value : operand.as<double>()) out.as<double>()[0] += value;
    }
    return out;
  });
}

TEST(Chain, SourceIsWidened) {
  Given given;
  given.add("w", {2, 2}, {1, -2, 0.5, 3}, DType::kBF16);
  const Chain chain = source("w");
  const Tensor made = chain(given.sources());
  EXPECT_EQ(made.dtype(), DType::kF64);
  EXPECT_EQ(made.shape(), (Shape{2, 2}));
  EXPECT_THAT(numbers(made), ElementsAre(1, -2, 0.5, 3));
  EXPECT_THAT(chain.sources(), ElementsAre("w"));
  EXPECT_EQ(chain.name(), "");
  EXPECT_EQ(Transform(chain).name(), "as it is");
}

TEST(Chain, StepsFollowEachOtherAndTheirNamesToo) {
  Given given;
  given.add("w", {3}, {1, 2, 3});
  const Chain chain = source("w") | times(2) | times(5);
  EXPECT_EQ(chain.name(), "times 2, times 5");
  EXPECT_THAT(numbers(chain(given.sources())), ElementsAre(10, 20, 30));
  EXPECT_THAT(numbers(chain(given.sources())), ElementsAre(10, 20, 30)) << "a chain can be run again";
}

TEST(Chain, IsTheTransformOfAPlanEntry) {
  Given given;
  given.add("w", {2}, {1, 2});
  const Chain chain = source("w") | times(3);
  Plan plan;
  plan.add({"tripled", "head", DType::kBF16, {2}, chain.sources(), chain});
  const PlanEntry& entry = plan.entries().at("tripled");
  EXPECT_THAT(entry.sources, ElementsAre("w"));
  EXPECT_EQ(entry.transform.name(), "times 3");
  PlanWeights weights(plan, given.sources());
  EXPECT_EQ(element(weights.load("tripled", DType::kBF16, {2}), 1), 6);
}

TEST(Chain, CombinedNamesSourcesAndStepsOnce) {
  Given given;
  given.add("a", {1}, {1}).add("b", {2}, {10, 100});
  const Chain chain =
      sum({source("a") | times(2), source("b") | times(2), source("a"), source("b") | times(3)});
  EXPECT_THAT(chain.sources(), ElementsAre("a", "b"));
  EXPECT_EQ(chain.name(), "times 2 / times 3, sum");
  EXPECT_THAT(numbers(chain(given.sources())), ElementsAre(2 + 220 + 1 + 330));
  EXPECT_EQ(sum({source("a")}).name(), "sum");
}

TEST(Chain, PartOfASourceIsNamedAsAStep) {
  Given given;
  given.add("w", {2}, {4, 7});
  const Chain second = source_part("w", "the second", [](const TensorView& view) {
    const std::array<double, 1> value = {element(view, 1)};
    return Tensor::of<double>({1}, value);
  });
  EXPECT_EQ(second.name(), "the second");
  EXPECT_THAT(numbers(second(given.sources())), ElementsAre(7));
}

TEST(Chain, ConstantsReadNothing) {
  const Chain chain = constant("channel deviation", {2}, {0.25, 4}) | times(2);
  EXPECT_TRUE(chain.sources().empty());
  EXPECT_EQ(chain.name(), "channel deviation, times 2");
  EXPECT_THAT(numbers(chain(Sources())), ElementsAre(0.5, 8));
}

TEST(Chain, ErrorsNameTensorAndStepOnce) {
  Given given;
  given.add("blocks.0.w", {2}, {1, 2}).add("b", {1}, {1}).add("c", {1}, {1}).add("d", {1}, {1});
  const auto error = [&](const Chain& chain) { return error_of([&] { chain(given.sources()); }); };
  EXPECT_EQ(error(source("blocks.0.w") | times(2) | refuse() | times(2)),
            "mismatch: blocks.0.w: refuse: [2] is not wanted");
  EXPECT_EQ(error(source("missing") | times(2)), "mismatch: the checkpoint has no tensor missing");
  EXPECT_EQ(error(sum({source("b"), source("blocks.0.w") | refuse()})),
            "mismatch: blocks.0.w: refuse: [2] is not wanted");
  EXPECT_EQ(error(sum({source("b"), source("c")}) | refuse()), "mismatch: b + c: refuse: [1] is not wanted");
  const Chain many = sum({source("blocks.0.w"), source("b"), source("c"), source("d"), source("b")});
  EXPECT_EQ(error(many | refuse()), "mismatch: blocks.0.w + b + c + 1 more: refuse: [1] is not wanted");
  EXPECT_EQ(error(constant("deviation", {1}, {1}) | refuse()),
            "mismatch: deviation: refuse: [1] is not wanted");
  EXPECT_EQ(error(source_part("b", "part",
                              [](const TensorView&) -> Tensor { throw fail(ErrorCode::kMismatch, "no"); })),
            "mismatch: b: part: no");
}

}  // namespace
}  // namespace sinew::transforms

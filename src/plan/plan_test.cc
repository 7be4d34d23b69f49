#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/policy.h"

namespace sinew {
namespace {

/// Two tensors in memory; counts how often pages are let go.
class TwoTensors final : public Checkpoint {
 public:
  TwoTensors() : Checkpoint("two") {
    const std::array<float, 6> values = {1, 2, 3, 4, 5, 6};
    a_ = Tensor::of<float>({2, 3}, values);
    tensors_.emplace("a", a_.view());
    TensorView transposed = a_.view();
    transposed.shape = {3, 2};
    transposed.strides = {1, 3};
    tensors_.emplace("at", transposed);
  }
  std::string_view format() const override { return "memory"; }
  void release(const TensorView&) const override { ++released; }
  mutable int released = 0;

 private:
  Tensor a_;
};

class PlanTest : public testing::Test {
 protected:
  PlanTest() { sources_.add_all(checkpoint_); }
  std::string error_of(const std::string& name, DType dtype, const Shape& shape) {
    PlanWeights weights(plan_, sources_);
    try {
      weights.load(name, dtype, shape);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  std::shared_ptr<TwoTensors> checkpoint_ = std::make_shared<TwoTensors>();
  Sources sources_;
  Plan plan_;
};

TEST_F(PlanTest, TensorsThatAreRightAlreadyAreUsedInPlace) {
  plan_.add({"w", "c", DType::kF32, {6}, {"a"}, {}});
  PlanWeights weights(plan_, sources_);
  const TensorView view = weights.load("w", DType::kF32, {6});
  EXPECT_EQ(view.data, checkpoint_->get("a").data);
  EXPECT_EQ(view.shape, (Shape{6}));
  weights.release("w");
  EXPECT_EQ(checkpoint_->released, 1);
}

TEST_F(PlanTest, StridedAndOtherDtypesAreMade) {
  plan_.add({"t", "c", DType::kF32, {3, 2}, {"at"}, {}});
  plan_.add({"narrow", "c", DType::kBF16, {2, 3}, {"a"}, {}});
  PlanWeights weights(plan_, sources_);
  EXPECT_THAT(weights.load("t", DType::kF32, {3, 2}).as<float>(), testing::ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(element(weights.load("narrow", DType::kBF16, {2, 3}), 5), 6);
}

TEST_F(PlanTest, TransformsRunInDoubleAndRoundOnce) {
  const auto thirds = [](const Sources& sources) {
    Tensor out = sources.f64("a");
    for (double& v : out.as<double>()) v /= 3;
    return out;
  };
  plan_.add({"thirds", "c", DType::kF32, {2, 3}, {"a"}, {"thirds", thirds}});
  PlanWeights weights(plan_, sources_);
  const TensorView view = weights.load("thirds", DType::kF32, {2, 3});
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(view.as<float>()[i], static_cast<float>((static_cast<double>(i) + 1) / 3));
  EXPECT_EQ(weights.load("thirds", DType::kF32, {2, 3}).data, view.data);  // made once
}

TEST_F(PlanTest, DisagreementsAreNamed) {
  plan_.add({"w", "c", DType::kF32, {2, 3}, {"a"}, {}});
  plan_.add({"lost", "c", DType::kF32, {2, 3}, {"b"}, {}});
  plan_.add({"wrong", "c", DType::kF32, {2, 2}, {"a"}, {"all of a", [](const Sources& sources) {
                                                          return sources.f64("a");
                                                        }}});
  EXPECT_THAT(error_of("nothing", DType::kF32, {1}), testing::HasSubstr("the plan has no tensor nothing"));
  EXPECT_THAT(error_of("w", DType::kBF16, {2, 3}),
              testing::HasSubstr("w is f32[2,3], the program wants bf16[2,3]"));
  EXPECT_THAT(error_of("lost", DType::kF32, {2, 3}), testing::HasSubstr("no tensor b"));
  EXPECT_THAT(error_of("wrong", DType::kF32, {2, 2}),
              testing::HasSubstr("the transform made [2,3], the plan says [2,2]"));
}

TEST_F(PlanTest, CountsBytesWithoutReadingWeights) {
  plan_.add({"w", "c", DType::kF32, {2, 3}, {"a"}, {}});
  plan_.add({"w", "c", DType::kF32, {2, 3}, {"a"}, {}});  // the same tensor, kept once
  plan_.add({"n", "c", DType::kBF16, {100}, {"missing"}, {}});
  EXPECT_EQ(plan_.entries().size(), 2U);
  EXPECT_EQ(plan_.bytes(), 24U + 200U);
}

TEST(Sources, FirstNameWins) {
  const auto checkpoint = std::make_shared<TwoTensors>();
  Sources sources;
  sources.add_all(checkpoint);
  sources.add("a", checkpoint->get("at"), checkpoint);
  sources.add("b", checkpoint->get("at"), checkpoint);
  EXPECT_EQ(sources.get("a").shape, (Shape{2, 3}));
  EXPECT_EQ(sources.get("b").shape, (Shape{3, 2}));
  EXPECT_EQ(sources.find("c"), nullptr);
  EXPECT_THROW(sources.get("c"), Error);
}

TEST(PolicyWords, RoundTrip) {
  for (const Policy policy : {Policy::kF64, Policy::kF32, Policy::kBF16})
    EXPECT_EQ(parse_policy(to_string(policy)), policy);
  EXPECT_FALSE(parse_policy("fp16"));
  EXPECT_FALSE(parse_policy(""));
  EXPECT_EQ(product_dtype(Policy::kBF16), DType::kBF16);
  EXPECT_EQ(stream_dtype(Policy::kBF16), DType::kF32);
}

}  // namespace
}  // namespace sinew

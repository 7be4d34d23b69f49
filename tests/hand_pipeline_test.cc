// The hand pipeline over real backends and a real, tiny checkpoint.
#include "hand/pipeline.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli_support.h"
#include "runtime/runtime.h"

namespace sinew::cli_test {
namespace {

/// A pipeline with the backend that its session runs on.
struct Opened {
  HamerRuntime runtime;
  HandPipeline pipeline;

  explicit Opened(const RuntimeOptions& options, const std::string& model = tiny_model())
      : runtime(open_hamer(model, options)), pipeline(std::move(runtime.session), runtime.config, {}) {}
  HandResult run(const Image& frame, const HandBox& box) { return pipeline.run(frame, box); }
};
Opened open(const RuntimeOptions& options) { return Opened(options); }

RuntimeOptions cpu() {
  RuntimeOptions options;
  options.policy = Policy::kF32;
  options.machine.threads = 1;
  return options;
}

/// 60 wide: the square has 160 pixels, an even number, so that its mirror image lies on the pixel grid too.
constexpr HandBox kBox = {40, 30, 100, 95, true};

TEST(HandPipelineOnBackends, EveryPathGivesTheSameHand) {
  const Image frame = test_frame();
  RuntimeOptions reference;
  reference.backend = "reference";
  const HandResult truth = open(reference).run(frame, kBox);
  const auto expect_same = [&](const HandResult& result, double bar, const char* what) {
    for (std::size_t i = 0; i < truth.rotmats.size(); ++i)
      EXPECT_NEAR(result.rotmats[i], truth.rotmats[i], bar) << what << i;
    for (std::size_t i = 0; i < truth.betas.size(); ++i)
      EXPECT_NEAR(result.betas[i], truth.betas[i], bar) << what << i;
    for (std::size_t i = 0; i < truth.cam.size(); ++i)
      EXPECT_NEAR(result.cam[i], truth.cam[i], bar) << what << i;
  };
  // The bar for f32 against f64: 2e-5 on out157. u8 folding adds the fold's own rounding (spec
  // hamer 7.3).
  expect_same(open(cpu()).run(frame, kBox), 2e-5, "fused f32 ");
  RuntimeOptions plain = cpu();
  plain.form = hamer::Form::kPlain;
  expect_same(open(plain).run(frame, kBox), 2e-5, "plain f32 ");
  RuntimeOptions bytes = cpu();
  bytes.u8_input = true;
  expect_same(open(bytes).run(frame, kBox), 2e-4, "u8 f32 ");
  reference.u8_input = true;
  expect_same(open(reference).run(frame, kBox), 2e-5, "u8 f64 ");
}

TEST(HandPipelineOnBackends, LeftHandIsTheMirroredRightHand) {
  const Image frame = test_frame();
  auto hands = open(cpu());
  const HandResult left = hands.run(frame, {kBox.x1, kBox.y1, kBox.x2, kBox.y2, false});
  const HandResult right = hands.run(mirrored(frame), {160 - kBox.x2, kBox.y1, 160 - kBox.x1, kBox.y2, true});
  EXPECT_EQ(left.rotmats, right.rotmats);
  EXPECT_EQ(left.betas, right.betas);
  EXPECT_EQ(left.cam, right.cam);
  EXPECT_EQ(left.cam_t_full[0], -right.cam_t_full[0]);
}

/// Rotation matrices are rotations: rows and columns orthonormal, determinant 1. The network's float
/// arithmetic leaves a few units in the last place.
TEST(HandPipelineOnBackends, RotationsAreRotations) {
  const HandResult result = open(cpu()).run(test_frame(), kBox);
  for (std::size_t joint = 0; joint < 16; ++joint) {
    const double* r = &result.rotmats[9 * joint];
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < 3; ++b) {
        const double product = r[a] * r[b] + r[3 + a] * r[3 + b] + r[6 + a] * r[6 + b];
        EXPECT_NEAR(product, a == b ? 1 : 0, 1e-6) << "joint " << joint;
      }
    }
    const double determinant = r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
                               r[2] * (r[3] * r[7] - r[4] * r[6]);
    EXPECT_NEAR(determinant, 1, 1e-6) << "joint " << joint;
  }
}

TEST(HandPipelineOnBackends, ASessionMayOutliveItsBackend) {
  std::unique_ptr<HandPipeline> hands;
  {
    HamerRuntime runtime = open_hamer(tiny_model(), cpu());
    hands = std::make_unique<HandPipeline>(std::move(runtime.session), runtime.config, HandOptions{});
  }
  EXPECT_EQ(hands->run(test_frame(), kBox).rotmats, open(cpu()).run(test_frame(), kBox).rotmats);
}

TEST(HandPipelineOnBackends, RunsAreIndependentAndBitEqual) {
  auto hands = open(cpu());
  const HandResult first = hands.run(test_frame(), kBox);
  hands.run(test_frame(90, 90, 9), {0, 0, 90, 90, false});
  const HandResult again = hands.run(test_frame(), kBox);
  EXPECT_EQ(first.rotmats, again.rotmats);
  EXPECT_EQ(first.cam, again.cam);
  EXPECT_EQ(first.joints_2d, again.joints_2d);
}

TEST(HandPipelineOnBackends, ADamagedWeightIsAnErrorAndNotANumber) {
  const TestFolder folder;
  Damage damage;
  damage.poisoned = "backbone.last_norm.bias";
  write_tiny(folder.file("nan.safetensors"), damage);
  Opened hands(cpu(), folder.file("nan.safetensors"));
  EXPECT_THROW(hands.run(test_frame(), kBox), Error);
}

}  // namespace
}  // namespace sinew::cli_test

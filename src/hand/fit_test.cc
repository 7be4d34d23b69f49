#include "hand/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/test_assets.h"
#include "base/test_paths.h"
#include "hand/fit_kinematics.h"
#include "hand/fit_start.h"
#include "hand/fit_test_support.h"
#include "hand/glb_hand.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

using testing::HasSubstr;

constexpr Intrinsics kWebcam = {600, 610, 330, 230};
constexpr Intrinsics kOriginals = {12500, 12500, 320, 240};  // assumed_camera() of 640 x 480

void expect_sound(const HandFit& fit, const Skeleton& skeleton) {
  EXPECT_EQ(beyond_limits(fit.angles), 0);
  EXPECT_LT(beyond_limits(hand_angles(skeleton, fit.pose.rotations)), 1e-12) << "read back from the matrices";
  EXPECT_GE(fit.pose.scale, kMinHandScale);
  EXPECT_LE(fit.pose.scale, kMaxHandScale);
  EXPECT_TRUE(std::isfinite(fit.cost));
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    EXPECT_GT(fit.joints[i][2], 0) << "before the camera";
    EXPECT_TRUE(std::isfinite(fit.projected[i][0]) && std::isfinite(fit.projected[i][1]));
  }
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const double* m = &fit.pose.rotations[9 * j];
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) {
        const double product =
            m[3 * r] * m[3 * c] + m[3 * r + 1] * m[3 * c + 1] + m[3 * r + 2] * m[3 * c + 2];
        EXPECT_NEAR(product, r == c ? 1 : 0, 1e-12);
      }
    }
  }
}

/// With next to no prior, what was put in comes out. The prior's part of the cost at the truth is all the fit
/// may leave: 45 angles at most 5 of their deviations off (half of 45 x 25 / 1e8), that is 8 mm x sqrt(2
/// x 5.6e-6) = 27 um over all residuals together.
TEST(Fit, PerfectLandmarksAreRecovered) {
  FitOptions options;
  options.prior_sigma = 1e4;
  options.max_iterations = 200;
  TestDice dice(11);
  const FitKinematics hand(builtin_skeleton());
  for (const Intrinsics& camera : {kWebcam, kOriginals}) {
    for (int trial = 0; trial < 25; ++trial) {
      const FitState truth = random_state(dice, camera.fx / 1200, 0.9);
      const HandKeypoints points = hand.points(truth);
      const HandFit fit = fit_hand(builtin_skeleton(), target_of(points, camera), nullptr, options);
      expect_sound(fit, builtin_skeleton());
      EXPECT_LT(shape_error(fit.joints, points), 27e-6) << trial;
      EXPECT_LT(fit.error_px, 0.02) << trial << ": 2 % of 300 pixels x the same root";
      EXPECT_NEAR(fit.pose.scale, truth.scale, 1e-3) << trial;
    }
  }
}

/// With noise as the fit expects it: the least cost cannot lie above the truth's own (one part in a thousand
/// for ending the descent early), and by the triangle inequality the shape is off by no more than both
/// residuals together. On average over many hands it must beat its own landmarks, whose mean distance from
/// the truth is 1.6 deviations.
TEST(Fit, NoiseIsNotFollowed) {
  const FitOptions expected;
  TestDice dice(12);
  const FitKinematics hand(builtin_skeleton());
  double fitted = 0, seen = 0;
  constexpr int kTrials = 60;
  for (int trial = 0; trial < kTrials; ++trial) {
    const FitState truth = random_state(dice, 0.5, 0.6);
    const HandKeypoints points = hand.points(truth);
    FitTarget target = target_of(points, kWebcam);
    add_noise(target, dice);
    const HandFit fit = fit_hand(builtin_skeleton(), target);
    expect_sound(fit, builtin_skeleton());
    const double at_truth = fit_cost(builtin_skeleton(), target, pose_of(hand, truth));
    EXPECT_LT(fit.cost, 1.001 * at_truth) << trial;
    EXPECT_NEAR(fit_cost(builtin_skeleton(), target, fit.pose), fit.cost, 1e-9 * fit.cost);
    // sum of 21 squared distances <= (sqrt(2 cost) + sqrt(2 cost at truth))^2 sigma^2; mean <= root mean
    // square
    const double bound =
        expected.metre_sigma * (std::sqrt(2 * fit.cost) + std::sqrt(2 * at_truth)) / std::sqrt(21.0);
    EXPECT_LT(shape_error(fit.joints, points), bound) << trial;
    fitted += shape_error(fit.joints, points) / kTrials;
    seen += shape_error(target.metres, points) / kTrials;
  }
  EXPECT_NEAR(seen, 1.6 * expected.metre_sigma, 0.2 * expected.metre_sigma);
  EXPECT_LT(fitted, 0.4 * seen);  // 0.30 here: 21 landmarks of 5 numbers each, and what a hand can do at all
}

/// At the end no number of the pose can be moved within its box so that the cost falls by more than what ends
/// the descent (1e-5 of it, with room for the steps that a slow end would still take).
TEST(Fit, TheEndIsAMinimum) {
  TestDice dice(13);
  const FitKinematics hand(builtin_skeleton());
  for (int trial = 0; trial < 10; ++trial) {
    FitTarget target = target_of(hand.points(random_state(dice, 0.5)), kWebcam);
    add_noise(target, dice);
    const HandFit fit = fit_hand(builtin_skeleton(), target);
    const FitState state = state_of(hand, fit.pose);
    for (std::size_t n = 0; n < kFitNumbers; ++n) {
      for (const double by : {-0.02, -0.001, 0.001, 0.02}) {
        FitStep step{};
        step[n] = n == 3 || n == 4 ? by / 10 : by;  // the wrist's direction: 2 mm at half a metre
        const HandPose pose = pose_of(hand, moved(state, step));  // fit_cost() keeps it in its limits
        EXPECT_GT(fit_cost(builtin_skeleton(), target, pose), (1 - 1e-4) * fit.cost) << n << " by " << by;
      }
    }
  }
}

TEST(Fit, AWarmStartIsShortAndEndsAtTheSamePlace) {
  TestDice dice(14);
  const FitKinematics hand(builtin_skeleton());
  int cold = 0, again = 0, next = 0;
  constexpr int kTrials = 20;
  for (int trial = 0; trial < kTrials; ++trial) {
    const FitState truth = random_state(dice, 0.5, 0.6);
    FitTarget target = target_of(hand.points(truth), kWebcam);
    add_noise(target, dice, 0.5);
    const HandFit first = fit_hand(builtin_skeleton(), target);
    const HandFit second = fit_hand(builtin_skeleton(), target, &first.pose);
    EXPECT_LE(second.cost, first.cost * (1 + 1e-12));
    EXPECT_LT(shape_error(second.joints, first.joints), 1e-3);
    // The next frame: a few degrees and millimetres on.
    FitStep step{};
    for (std::size_t n = 0; n < kFitNumbers; ++n)
      step[n] = (n == 3 || n == 4 ? 0.005 : 0.05) * dice.between(-1, 1);
    FitState moved_on = moved(truth, step);
    moved_on.angles = within_limits(moved_on.angles);
    FitTarget later = target_of(hand.points(moved_on), kWebcam);
    add_noise(later, dice, 0.5);
    next += fit_hand(builtin_skeleton(), later, &first.pose).iterations;
    cold += first.iterations;
    again += second.iterations;
  }
  EXPECT_LE(again, 2 * kTrials);
  EXPECT_LE(next, cold);
  EXPECT_LE(cold, 10 * kTrials);
}

TEST(Fit, TheSameTwice) {
  TestDice dice(15);
  FitTarget target = target_of(FitKinematics(builtin_skeleton()).points(random_state(dice, 0.5)), kWebcam);
  add_noise(target, dice);
  const HandFit a = fit_hand(builtin_skeleton(), target), b = fit_hand(builtin_skeleton(), target);
  EXPECT_EQ(a.pose.rotations, b.pose.rotations);
  EXPECT_EQ(a.pose.translation, b.pose.translation);
  EXPECT_EQ(a.iterations, b.iterations);
}

/// Landmarks that no hand has: the fit stays finite, before the camera and within every limit.
TEST(Fit, HostileLandmarksGiveASoundHand) {
  TestDice dice(16);
  for (int trial = 0; trial < 200; ++trial) {
    FitTarget target;
    target.camera = trial % 3 == 0 ? Intrinsics{1, 2, 0, 0} : trial % 3 == 1 ? kWebcam : kOriginals;
    const double pixels = std::pow(10, dice.between(-3, 5)), metres = std::pow(10, dice.between(-6, 0.9));
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      for (double& x : target.pixels[i]) x = pixels * dice.between(-1, 1);
      for (double& x : target.metres[i]) x = metres * dice.between(-1, 1);
    }
    expect_sound(fit_hand(builtin_skeleton(), target), builtin_skeleton());
  }
}

TEST(Fit, LandmarksOnALineOrInASpotGiveASoundHand) {
  for (const double size : {1e-3, 1.0, 100.0}) {
    FitTarget target;
    target.camera = kWebcam;
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      const auto k = static_cast<double>(i);
      target.pixels[i] = {200 + size * k, 100 + 2 * size * k};
      target.metres[i] = {1e-3 * size * k, 0, 0};
    }
    expect_sound(fit_hand(builtin_skeleton(), target), builtin_skeleton());
    for (std::size_t i = 1; i < kHandKeypoints; ++i) {  // all but the wrist at one place
      target.pixels[i] = target.pixels[1];
      target.metres[i] = target.metres[1];
    }
    expect_sound(fit_hand(builtin_skeleton(), target), builtin_skeleton());
  }
}

std::string error_with(const std::function<void(FitTarget&, HandPose&)>& change) {
  TestDice dice(17);
  const FitKinematics hand(builtin_skeleton());
  const FitState truth = random_state(dice, 0.5);
  FitTarget target = target_of(hand.points(truth), kWebcam);
  HandPose start = pose_of(hand, truth);
  change(target, start);
  try {
    fit_hand(builtin_skeleton(), target, &start);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    return error.what();
  }
  return "accepted";
}

TEST(Fit, SenselessTargetsAndStartsAreErrors) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  using T = FitTarget;
  using P = HandPose;
  EXPECT_EQ(error_with([](T&, P&) {}), "accepted");
  EXPECT_THAT(error_with([](T& t, P&) { t.pixels[3][1] = kNan; }),
              HasSubstr("pixel coordinate of landmark 3 is nan"));
  EXPECT_THAT(error_with([](T& t, P&) { t.pixels[20][0] = -kInf; }), HasSubstr("landmark 20 is -inf"));
  EXPECT_THAT(error_with([](T& t, P&) { t.metres[7][2] = kInf; }),
              HasSubstr("world coordinate of landmark 7"));
  EXPECT_THAT(error_with([](T& t, P&) { t.pixels[0][0] = 1e9; }), HasSubstr("within +-1000000"));
  EXPECT_THAT(error_with([](T& t, P&) { t.metres[0][0] = 300; }), HasSubstr("within +-10"));
  EXPECT_THAT(error_with([](T& t, P&) { t.pixels.fill({5, 5}); }),
              HasSubstr("all 21 landmarks lie at one place"));
  EXPECT_THAT(error_with([](T& t, P&) { t.metres.fill({}); }),
              HasSubstr("all 21 landmarks lie at one place"));
  EXPECT_THAT(error_with([](T& t, P&) { t.camera.fx = 0; }), HasSubstr("focal length is 0"));
  EXPECT_THAT(error_with([](T& t, P&) { t.camera.fy = -600; }), HasSubstr("focal length is -600"));
  EXPECT_THAT(error_with([](T& t, P&) { t.camera.cx = kNan; }), HasSubstr("centre is (nan"));
  EXPECT_THAT(error_with([](T&, P& p) { p.rotations[30] = kNan; }),
              HasSubstr("start.rotations[3][3] is nan"));
  EXPECT_THAT(error_with([](T&, P& p) { p.rotations.fill(0); }),
              HasSubstr("start.rotations[0] is not a rotation"));
  EXPECT_THAT(error_with([](T&, P& p) {
                for (std::size_t i = 0; i < 9; ++i) p.rotations[i] = i % 4 == 0 ? -1 : 0;
              }),
              HasSubstr("start.rotations[0] is not a rotation"));
  EXPECT_THAT(error_with([](T&, P& p) { p.scale = 0; }), HasSubstr("start.scale is 0"));
  EXPECT_THAT(error_with([](T&, P& p) { p.translation[2] = -1; }), HasSubstr("expected z > 0"));
  EXPECT_THAT(error_with([](T&, P& p) { p.translation[0] = kInf; }), HasSubstr("start.translation"));
}

/// shared/data/hands/synthetic_right_7.json: a hand of another mesh, so that its bones are not quite ours.
struct Synthetic {
  HandKeypoints metres;
  FitTarget target;
};

Synthetic synthetic(const std::string& path) {
  std::ifstream in(path);
  const nlohmann::json json = nlohmann::json::parse(in);
  Synthetic out;
  out.metres = json["joints_m"].get<HandKeypoints>();
  const double focal = json["camera"]["focal_px"];
  out.target = {json["joints_px"], out.metres, {focal, focal, json["camera"]["cx"], json["camera"]["cy"]}};
  return out;
}

TEST(Fit, TheSyntheticPicturesJointsAreMet) {
  const auto path = shared_file("data/hands/synthetic_right_7.json");
  const auto glb = asset_file("generic_hand_right.glb");
  if (!path) GTEST_SKIP() << kNoShared;
  if (!glb) GTEST_SKIP() << kNoAssets;
  const Skeleton generic = HandModel(load_glb_hand(*glb), "right.glb").skeleton({});
  for (const Skeleton& skeleton : {generic, builtin_skeleton()}) {
    Synthetic hand = synthetic(*path);
    TestDice dice(18);
    for (int trial = 0; trial < 20; ++trial) {
      if (trial > 0) {
        hand.target = synthetic(*path).target;
        add_noise(hand.target, dice);
      }
      const HandFit fit = fit_hand(skeleton, hand.target);
      expect_sound(fit, skeleton);
      // The bars of step 2: 4 % of the hand's size, 25 mm. Here not even turned or scaled to fit.
      EXPECT_LT(fit.error_px, 0.04 * hand_size(hand.target.pixels)) << trial;
      EXPECT_LT(shape_error(fit.joints, hand.metres), 0.025) << trial;
    }
  }
}

}  // namespace
}  // namespace sinew

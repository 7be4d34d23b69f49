#include "hand/fit_kinematics.h"

#include <gtest/gtest.h>

#include "hand/fit_start.h"
#include "hand/fit_test_support.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

TEST(FitKinematics, PointsAreTheSkeletonsInItsPose) {
  TestDice dice(1);
  const FitKinematics hand(builtin_skeleton());
  for (int trial = 0; trial < 20; ++trial) {
    const FitState state = random_state(dice, 0.5);
    const HandPose pose = pose_of(hand, state);
    const HandKeypoints posed = pose_skeleton(builtin_skeleton(), pose.rotations);
    const HandKeypoints points = hand.points(state);
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      Vec3 expected{};
      for (std::size_t k = 0; k < 3; ++k) expected[k] = pose.scale * posed[i][k] + pose.translation[k];
      EXPECT_LT(distance_between(points[i], expected), 1e-14) << i;
    }
  }
}

/// Central differences with h = 1e-5: their own error is h^2/6 of the third derivative (a lever of 0.2 m:
/// 3e-12) plus rounding of points at 1 m over 2h (1e-11).
TEST(FitKinematics, DerivativesAreThoseOfCentralDifferences) {
  constexpr double kStep = 1e-5, kBound = 1e-10;
  TestDice dice(2);
  const FitKinematics hand(builtin_skeleton());
  for (int trial = 0; trial < 10; ++trial) {
    const FitState state = random_state(dice, 0.8);
    std::array<PointDerivatives, kHandKeypoints> derivatives;
    const HandKeypoints points = hand.points(state, derivatives);
    EXPECT_EQ(points, hand.points(state));
    for (std::size_t n = 0; n < kFitNumbers; ++n) {
      FitStep step{};
      step[n] = kStep;
      const HandKeypoints after = hand.points(moved(state, step));
      step[n] = -kStep;
      const HandKeypoints before = hand.points(moved(state, step));
      for (std::size_t i = 0; i < kHandKeypoints; ++i) {
        Vec3 expected{};
        const int at = static_cast<int>(n) - derivatives[i].first;
        if (n < kFitGlobals) {
          expected = derivatives[i].globals[n];
        } else if (derivatives[i].first >= 0 && at >= 0 && at < static_cast<int>(kFitFinger)) {
          expected = derivatives[i].finger[static_cast<std::size_t>(at)];
        }
        for (std::size_t k = 0; k < 3; ++k) {
          EXPECT_NEAR((after[i][k] - before[i][k]) / (2 * kStep), expected[k], kBound)
              << "number " << n << " point " << i;
        }
      }
    }
  }
}

TEST(FitKinematics, ManyStepsLeaveARotation) {
  TestDice dice(4);
  FitState state = random_state(dice, 1);
  for (int i = 0; i < 10000; ++i) {
    state = moved(state, FitStep{dice.between(-0.5, 0.5), dice.between(-0.5, 0.5), dice.between(-0.5, 0.5)});
  }
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      double product = 0;
      for (std::size_t k = 0; k < 3; ++k) product += state.rotation[3 * r + k] * state.rotation[3 * c + k];
      EXPECT_NEAR(product, r == c ? 1 : 0, 1e-14);
    }
  }
}

TEST(FitKinematics, AStepInDepthKeepsTheWristsPixel) {
  TestDice dice(6);
  const FitState state = random_state(dice, 0.4);
  FitStep step{};
  step[5] = 0.3;
  const FitState farther = moved(state, step);
  EXPECT_NEAR(farther.wrist[0] / farther.wrist[2], state.wrist[0] / state.wrist[2], 1e-15);
  EXPECT_NEAR(farther.wrist[2], state.wrist[2] * std::exp(0.3), 1e-15);
}

/// A pose goes into the fit's numbers and comes out the same.
TEST(FitStart, PosesAndStatesAreInverse) {
  TestDice dice(7);
  const FitKinematics hand(builtin_skeleton());
  const HandPose pose = pose_of(hand, random_state(dice, 0.5));
  const HandPose back = pose_of(hand, state_of(hand, pose));
  for (std::size_t i = 0; i < pose.rotations.size(); ++i)
    EXPECT_NEAR(back.rotations[i], pose.rotations[i], 1e-12);
  EXPECT_LT(distance_between(back.translation, pose.translation), 1e-12);
  EXPECT_EQ(back.scale, pose.scale);
}

/// The first guess alone, of landmarks without error. A bone's direction does not show twist, which is taken
/// as none: 10 degrees at a knuckle move what comes after a bent joint by up to 45 mm sin 10 = 8 mm (12
/// points of 21), 40 at the thumb's base by up to 58 mm sin 40 = 37 mm (2 points), so 12 mm in the mean at
/// most.
TEST(FitStart, TheFirstGuessIsNearWhenLandmarksArePerfect) {
  TestDice dice(8);
  const FitKinematics hand(builtin_skeleton());
  for (int trial = 0; trial < 50; ++trial) {
    const FitState truth = random_state(dice, 0.6);
    const HandKeypoints points = hand.points(truth);
    const FitState guess = first_guess(hand, target_of(points, {600, 600, 320, 240}));
    EXPECT_EQ(beyond_limits(guess.angles), 0);
    EXPECT_LT(shape_error(hand.points(guess), points), 0.012) << trial;
    EXPECT_LT(distance_between(guess.wrist, truth.wrist), 0.05) << trial;
  }
}

}  // namespace
}  // namespace sinew

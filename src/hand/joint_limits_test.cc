#include "hand/joint_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "base/test_assets.h"
#include "hand/fit_test_support.h"
#include "hand/glb_hand.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

TestRotations bent(const Skeleton& skeleton, const HandAngles& angles) {
  TestRotations pose = identity_pose();
  const JointFrames frames = joint_frames(skeleton);
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const auto own = joint_rotation(frames[j], angles[j]);
    std::copy(own.begin(), own.end(), pose.begin() + static_cast<std::ptrdiff_t>(9 * (j + 1)));
  }
  return pose;
}

TEST(JointLimits, FramesAreRightHandedAndFollowTheBones) {
  for (const JointFrame& frame : joint_frames(builtin_skeleton())) {
    EXPECT_NEAR(dot(frame.bone, frame.bone), 1, 1e-12);
    EXPECT_NEAR(dot(frame.bend, frame.bend), 1, 1e-12);
    EXPECT_NEAR(dot(frame.bone, frame.bend), 0, 1e-12);
    const Vec3& a = frame.bone;
    const Vec3& b = frame.bend;
    const Vec3 cross = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    EXPECT_LT(distance_between(cross, frame.hinge), 1e-12);
  }
  const JointFrames frames = joint_frames(builtin_skeleton());
  const Skeleton& s = builtin_skeleton();
  EXPECT_NEAR(dot(frames[1].bone, {-1, 0, 0}), 1, 0.01) << "the index finger points along -x";
  EXPECT_GT(frames[1].hinge[2], 0.99) << "and bends about z";
  EXPECT_NEAR(distance_between(s.tips[0], s.joints[15]) * frames[14].bone[2], s.tips[0][2] - s.joints[15][2],
              1e-12);
}

TEST(JointLimits, BonesWithoutLengthHaveFramesToo) {
  const Skeleton nothing{};
  for (const JointFrame& frame : joint_frames(nothing)) {
    EXPECT_NEAR(dot(frame.bone, frame.bone), 1, 1e-12);
    EXPECT_NEAR(dot(frame.hinge, frame.hinge), 1, 1e-12);
  }
}

TEST(JointLimits, AnglesAndRotationsAreInverse) {
  TestDice dice(3);
  const JointFrames frames = joint_frames(builtin_skeleton());
  for (int trial = 0; trial < 200; ++trial) {
    const JointFrame& frame = frames[static_cast<std::size_t>(trial) % kFingerJoints];
    const JointAngles angles = {dice.between(-3, 3), dice.between(-1.5, 1.5), dice.between(-3, 3)};
    const auto rotation = joint_rotation(frame, angles);
    const JointAngles back = joint_angles(frame, rotation);
    EXPECT_NEAR(back.flexion, angles.flexion, 1e-12);
    EXPECT_NEAR(back.abduction, angles.abduction, 1e-12);
    EXPECT_NEAR(back.twist, angles.twist, 1e-12);
  }
}

TEST(JointLimits, FlexionAloneIsATurnAboutTheHinge) {
  const JointFrame frame = joint_frames(builtin_skeleton())[14];
  TestRotations expected = identity_pose();
  set_rotation(expected, 0, frame.hinge, 0.7);
  const auto rotation = joint_rotation(frame, {0.7, 0, 0});
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(rotation[i], expected[i], 1e-12);
}

/// Flexion of all fingers brings every tip to the palm's side (-y), abduction to the little finger's (-z).
TEST(JointLimits, SignsAreAnatomys) {
  const Skeleton& skeleton = builtin_skeleton();
  const HandKeypoints flat = pose_skeleton(skeleton, identity_pose());
  HandAngles angles{};
  for (std::size_t j = 0; j < 12; ++j) angles[j].flexion = 60 * kDegree;
  const HandKeypoints fist = pose_skeleton(skeleton, bent(skeleton, angles));
  for (const std::size_t tip : {8U, 12U, 16U, 20U}) EXPECT_LT(fist[tip][1], flat[tip][1] - 0.02) << tip;
  angles = {};
  for (std::size_t j = 0; j < 12; j += 3) angles[j].abduction = 20 * kDegree;
  const HandKeypoints aside = pose_skeleton(skeleton, bent(skeleton, angles));
  for (const std::size_t tip : {8U, 12U, 16U, 20U}) EXPECT_LT(aside[tip][2], flat[tip][2] - 0.02) << tip;
}

/// The thumb's own axes: flexed, its tip crosses the palm and stays before it; abducted the other way it
/// leaves the palm's plane.
TEST(JointLimits, TheThumbBendsAcrossThePalm) {
  const auto path = asset_file("generic_hand_right.glb");
  const Skeleton skeleton =
      path ? HandModel(load_glb_hand(*path), "right.glb").skeleton({}) : builtin_skeleton();
  const Vec3 flat = pose_skeleton(skeleton, identity_pose())[4];
  HandAngles angles{};
  angles[12].flexion = 30 * kDegree;
  angles[13].flexion = 40 * kDegree;
  angles[14].flexion = 60 * kDegree;
  const HandKeypoints crossed = pose_skeleton(skeleton, bent(skeleton, angles));
  EXPECT_LT(crossed[4][2], crossed[5][2]) << "past the index finger's knuckle";
  EXPECT_LT(crossed[4][1], crossed[5][1]) << "on the palm's side";
  EXPECT_GT(crossed[4][1], -0.06) << "but not far before it";
  angles = {};
  angles[12].abduction = -50 * kDegree;
  const Vec3 before = pose_skeleton(skeleton, bent(skeleton, angles))[4];
  EXPECT_LT(before[1], flat[1] - 0.04) << "towards the palm's side";
}

TEST(JointLimits, AHandLiesWithinThemWhenFlatAndNotBentBack) {
  EXPECT_EQ(beyond_limits(HandAngles{}), 0);
  HandAngles angles{};
  angles[1].flexion = -30 * kDegree;  // index finger's middle joint bent back; its limit is -5
  EXPECT_NEAR(beyond_limits(angles), 25 * kDegree, 1e-12);
  const HandAngles moved_in = within_limits(angles);
  EXPECT_EQ(beyond_limits(moved_in), 0);
  EXPECT_NEAR(moved_in[1].flexion, -5 * kDegree, 1e-12);
  EXPECT_EQ(moved_in[0].flexion, 0);
  for (const JointRange& range : joint_limits()) {
    EXPECT_LT(range.low.flexion, range.high.flexion);
    EXPECT_LT(range.low.abduction, 0);
    EXPECT_GT(range.high.abduction, 0);
    EXPECT_LT(range.low.twist, 0);
    EXPECT_GT(range.high.twist, 0);
  }
}

TEST(JointLimits, AnglesOfAWholePoseAreReadBack) {
  TestDice dice(5);
  const FitState state = random_state(dice, 1);
  const FitKinematics hand(builtin_skeleton());
  const HandAngles angles = hand_angles(builtin_skeleton(), hand.rotations(state));
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    EXPECT_NEAR(angles[j].flexion, state.angles[j].flexion, 1e-12);
    EXPECT_NEAR(angles[j].abduction, state.angles[j].abduction, 1e-12);
    EXPECT_NEAR(angles[j].twist, state.angles[j].twist, 1e-12);
  }
}

}  // namespace
}  // namespace sinew

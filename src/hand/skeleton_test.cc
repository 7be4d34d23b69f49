#include "hand/skeleton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace sinew {
namespace {

using Rotations = std::array<double, 9 * kHandJoints>;

Rotations identity() {
  Rotations out{};
  for (std::size_t j = 0; j < kHandJoints; ++j) out[9 * j] = out[9 * j + 4] = out[9 * j + 8] = 1;
  return out;
}

/// A rotation that leaves no axis alone: about z, then about x.
std::array<double, 9> turn(double a, double b) {
  const double ca = std::cos(a), sa = std::sin(a), cb = std::cos(b), sb = std::sin(b);
  return {ca, -sa, 0, cb * sa, cb * ca, -sb, sb * sa, sb * ca, cb};
}

Vec3 turned_by(const std::array<double, 9>& r, const Vec3& p) {
  return {r[0] * p[0] + r[1] * p[1] + r[2] * p[2], r[3] * p[0] + r[4] * p[1] + r[5] * p[2],
          r[6] * p[0] + r[7] * p[1] + r[8] * p[2]};
}

double distance(const Vec3& a, const Vec3& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

void set(Rotations& rotations, std::size_t joint, const std::array<double, 9>& r) {
  std::copy(r.begin(), r.end(), rotations.begin() + static_cast<std::ptrdiff_t>(9 * joint));
}

/// The rest position of an OpenPose key point.
Vec3 rest(std::size_t keypoint) {
  const auto from = static_cast<std::size_t>(kOpenPoseFromMano[keypoint]);
  const Skeleton& skeleton = builtin_skeleton();
  return from < kHandJoints ? skeleton.joints[from] : skeleton.tips[from - kHandJoints];
}

/// Whether a joint (MANO order) lies above a key point of the tree, itself included for tips only.
bool moves(std::size_t joint, std::size_t keypoint) {
  auto from = static_cast<std::size_t>(kOpenPoseFromMano[keypoint]);
  if (from >= kHandJoints) {
    from = static_cast<std::size_t>(Skeleton::kTipJoints[from - kHandJoints]);
    if (from == joint) return true;
  }
  for (int up = kHandParents[from]; up >= 0; up = kHandParents[static_cast<std::size_t>(up)]) {
    if (static_cast<std::size_t>(up) == joint) return true;
  }
  return false;
}

TEST(Skeleton, TreeIsManos) {
  // Spec hamer 5.2, written out once more.
  const std::array<int, 16> parents = {-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11, 0, 13, 14};
  EXPECT_EQ(kHandParents, parents);
  const std::array<int, 21> openpose = {0, 13, 14, 15, 16, 1,  2, 3, 17, 4, 5,
                                        6, 18, 10, 11, 12, 19, 7, 8, 9,  20};
  EXPECT_EQ(kOpenPoseFromMano, openpose);
  EXPECT_EQ(std::set<int>(openpose.begin(), openpose.end()).size(), 21U) << "a permutation";
  // Tips hang on the last joint of their finger: thumb, index, middle, ring, pinky.
  const std::array<int, 5> tip_joints = {15, 3, 6, 12, 9};
  EXPECT_EQ(Skeleton::kTipJoints, tip_joints);
}

TEST(Skeleton, OpenPoseParentsAreTheTreesOwn) {
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const int from = kOpenPoseFromMano[i];
    const int mano_parent = from >= kHandJoints
                                ? Skeleton::kTipJoints[static_cast<std::size_t>(from - kHandJoints)]
                                : kHandParents[static_cast<std::size_t>(from)];
    if (mano_parent < 0) {
      EXPECT_EQ(kOpenPoseParents[i], -1);
      continue;
    }
    ASSERT_GE(kOpenPoseParents[i], 0) << i;
    EXPECT_EQ(kOpenPoseFromMano[static_cast<std::size_t>(kOpenPoseParents[i])], mano_parent) << i;
  }
}

TEST(Skeleton, IdentityKeepsTheRestPose) {
  const HandKeypoints posed = pose_skeleton(builtin_skeleton(), identity());
  for (std::size_t i = 0; i < kHandKeypoints; ++i) EXPECT_LT(distance(posed[i], rest(i)), 1e-15) << i;
}

TEST(Skeleton, OneJointMovesItsDescendantsOnly) {
  for (std::size_t joint = 1; joint < kHandJoints; ++joint) {
    Rotations rotations = identity();
    set(rotations, joint, turn(0.4, 0.3));
    const HandKeypoints posed = pose_skeleton(builtin_skeleton(), rotations);
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      const double moved = distance(posed[i], rest(i));
      if (moves(joint, i)) {
        EXPECT_GT(moved, 1e-3) << "joint " << joint << " key point " << i;
      } else {
        EXPECT_LT(moved, 1e-15) << "joint " << joint << " key point " << i;
      }
    }
  }
}

TEST(Skeleton, RootTurnsTheWholeHandAboutTheWrist) {
  const auto r = turn(1.1, -2.3);
  Rotations rotations = identity();
  set(rotations, 0, r);
  const HandKeypoints posed = pose_skeleton(builtin_skeleton(), rotations);
  const Vec3 wrist = rest(0);
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec3 at = rest(i);
    const Vec3 turned = turned_by(r, {at[0] - wrist[0], at[1] - wrist[1], at[2] - wrist[2]});
    EXPECT_LT(distance(posed[i], {turned[0] + wrist[0], turned[1] + wrist[1], turned[2] + wrist[2]}), 1e-15)
        << i;
  }
}

/// Along a finger the rotations multiply: G_j = G_parent R_j, t_j = t_parent + G_parent (J_j - J_parent).
TEST(Skeleton, RotationsMultiplyDownAFinger) {
  Rotations rotations = identity();
  const auto wrist = turn(0.3, 0.2), first = turn(-0.5, 0.1), second = turn(0.7, -0.4),
             third = turn(0.2, 0.9);
  set(rotations, 0, wrist);
  set(rotations, 1, first);
  set(rotations, 2, second);
  set(rotations, 3, third);
  const HandKeypoints posed = pose_skeleton(builtin_skeleton(), rotations);
  const Skeleton& s = builtin_skeleton();
  const auto step = [](const Vec3& a, const Vec3& b) { return Vec3{b[0] - a[0], b[1] - a[1], b[2] - a[2]}; };
  // From the tip inwards: p = R3 (tip - J3), then p = R2 (J3 - J2 + p), ...
  Vec3 p = turned_by(third, step(s.joints[3], s.tips[1]));
  const auto out = [&](const std::array<double, 9>& r, std::size_t from, std::size_t to) {
    const Vec3 bone = step(s.joints[from], s.joints[to]);
    p = turned_by(r, {bone[0] + p[0], bone[1] + p[1], bone[2] + p[2]});
  };
  out(second, 2, 3);
  out(first, 1, 2);
  out(wrist, 0, 1);
  EXPECT_LT(distance(posed[8], {s.joints[0][0] + p[0], s.joints[0][1] + p[1], s.joints[0][2] + p[2]}), 1e-15);
}

TEST(Skeleton, BonesKeepTheirLengthInEveryPose) {
  Rotations rotations = identity();
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const double a = 0.37 * static_cast<double>(j);
    set(rotations, j, turn(a, 1 - a));
  }
  const HandKeypoints posed = pose_skeleton(builtin_skeleton(), rotations);
  for (std::size_t i = 1; i < kHandKeypoints; ++i) {
    const auto parent = static_cast<std::size_t>(kOpenPoseParents[i]);
    EXPECT_NEAR(distance(posed[i], posed[parent]), distance(rest(i), rest(parent)), 1e-15) << i;
  }
}

/// A plausible adult right hand in MANO's axes; bounds from hand anthropometry (length 160 to 210 mm, breadth
/// of the knuckles 55 to 80 mm between joint centres, phalanges 14 to 52 mm).
TEST(Skeleton, BuiltinHandIsAnAdultRightHand) {
  EXPECT_GT(distance(rest(0), rest(12)), 0.160);
  EXPECT_LT(distance(rest(0), rest(12)), 0.210);
  EXPECT_GT(distance(rest(5), rest(17)), 0.055);
  EXPECT_LT(distance(rest(5), rest(17)), 0.080);
  for (std::size_t finger = 1; finger < kHandKeypoints; finger += 4) {
    for (std::size_t i = finger; i < finger + 3; ++i) {
      const double bone = distance(rest(i), rest(i + 1));
      EXPECT_GT(bone, 0.014) << i;
      EXPECT_LT(bone, 0.052) << i;
    }
    if (finger == 1) continue;
    EXPECT_LT(rest(finger + 3)[0], rest(finger)[0]) << "fingers point along -x";
    EXPECT_GT(distance(rest(finger), rest(finger + 1)), distance(rest(finger + 1), rest(finger + 2)))
        << "the first phalanx is the longest";
  }
  EXPECT_GT(rest(4)[2], rest(8)[2]) << "the thumb is on the +z side";
  EXPECT_LT(rest(4)[1], rest(8)[1]) << "and in front of the palm, which looks along -y";
  for (std::size_t finger = 5; finger < 17; finger += 4) EXPECT_GT(rest(finger)[2], rest(finger + 4)[2]);
}

}  // namespace
}  // namespace sinew

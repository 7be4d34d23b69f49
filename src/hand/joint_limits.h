// How far each joint of a hand turns: its axes, its limits, its angles.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "hand/skeleton.h"

namespace sinew {

/// The joints of the fingers: MANO's 1 to 15, the wrist has no limits here.
inline constexpr std::size_t kFingerJoints = kHandJoints - 1;

/// Radians, all zero in the flat hand. A joint's rotation is Rz(flexion) Ry(abduction) Rx(twist) in its
/// frame: flexion about an axis that the bone above carries, twist about the bone below, as the ISB
/// recommends (Wu et al., J. Biomech. 38, 2005). Its singularity, 90 degrees of abduction, lies far beyond
/// every limit.
struct JointAngles {
  double flexion = 0;    // positive towards the palm; of the thumb, across the palm
  double abduction = 0;  // positive towards the little finger; of the thumb, towards the back of the hand
  double twist = 0;      // positive about the bone's direction
};
using HandAngles = std::array<JointAngles, kFingerJoints>;

/// A joint's axes in the flat hand: unit, right-handed.
struct JointFrame {
  Vec3 bone;   // x, along the bone that the joint moves: the axis of twist
  Vec3 bend;   // y, where flexion moves that bone: the axis of abduction
  Vec3 hinge;  // z, the axis of flexion
};
using JointFrames = std::array<JointFrame, kFingerJoints>;

/// From the skeleton's bones. A bone without length counts as one along -x.
JointFrames joint_frames(const Skeleton& skeleton);

struct JointRange {
  JointAngles low, high;
};

/// Of joints 1 to 15. Flexion and extension are the norms of the American Academy of Orthopaedic Surgeons
/// (Joint Motion, 1965: fingers 90/45, 100/0, 90/0; thumb 15/20 and abduction 70, 50/0, 80/20), widened where
/// other sources measure more (joint_limits.cc says which); rotation out of the hinge's plane is what soft
/// joints give way.
const std::array<JointRange, kFingerJoints>& joint_limits();

/// Row-major 3x3 of a joint in the template's axes.
std::array<double, 9> joint_rotation(const JointFrame& frame, const JointAngles& angles);
/// The inverse: angles of a rotation matrix (nine numbers), abduction within +-90 degrees.
JointAngles joint_angles(const JointFrame& frame, std::span<const double> rotation);
/// Of all joints of a pose, 144 numbers as HandModel::pose() takes them.
HandAngles hand_angles(const Skeleton& skeleton, std::span<const double> rotations);

/// Each angle moved to the nearest one within its limits.
HandAngles within_limits(const HandAngles& angles);
/// Radians by which the worst angle lies outside its limits; 0 when none does.
double beyond_limits(const HandAngles& angles);

}  // namespace sinew

// The hand's joints: a tree of 16 rotations, 21 key points.
#pragma once

#include <array>
#include <span>

#include "hand/camera.h"

namespace sinew {

inline constexpr int kHandJoints = 16;
inline constexpr int kHandKeypoints = 21;
/// Parents in MANO order: wrist; index 1-3; middle; pinky; ring; thumb (spec hamer 5.2).
inline constexpr std::array<int, kHandJoints> kHandParents = {-1, 0, 1, 2,  0,  4, 5,  0,
                                                              7,  8, 0, 10, 11, 0, 13, 14};
/// OpenPose order from the 16 joints and the tips (16 thumb, 17 index, 18 middle, 19 ring, 20 pinky).
inline constexpr std::array<int, kHandKeypoints> kOpenPoseFromMano = {0, 13, 14, 15, 16, 1,  2, 3, 17, 4, 5,
                                                                      6, 18, 10, 11, 12, 19, 7, 8, 9,  20};
/// Parent of each OpenPose key point; -1 for the wrist. What a skeleton picture connects.
inline constexpr std::array<int, kHandKeypoints> kOpenPoseParents = {-1, 0,  1, 2,  3,  0,  5, 6,  7,  0, 9,
                                                                     10, 11, 0, 13, 14, 15, 0, 17, 18, 19};

using HandKeypoints = std::array<Vec3, kHandKeypoints>;

/// Rest positions in metres: joints in MANO order, then where the five tips are.
struct Skeleton {
  std::array<Vec3, kHandJoints> joints;
  std::array<Vec3, 5> tips;  // thumb, index, middle, ring, pinky
  static constexpr std::array<int, 5> kTipJoints = {15, 3, 6, 12, 9};
};

/// A generic adult right hand, flat, in MANO's axes (fingers along -x, thumb towards +z, palm towards -y), so
/// that the network's rotations mean the same. Ours, in steps of a millimetre; not MANO's data, and blind to
/// betas: joints are right in pose, approximate in size.
const Skeleton& builtin_skeleton();

/// Forward kinematics with 16 row-major rotation matrices (144 numbers): key points in OpenPose order,
/// metres, the root's rotation about the wrist joint.
HandKeypoints pose_skeleton(const Skeleton& skeleton, std::span<const double> rotations);

}  // namespace sinew

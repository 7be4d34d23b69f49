// A posed hand in the camera, and how each key point moves with each number of the pose.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "hand/joint_limits.h"
#include "hand/skeleton.h"

namespace sinew {

/// The numbers of a step, in this order: rotation vector of the whole hand about its wrist (3, radians, the
/// camera's axes), the wrist's direction x/z and y/z (2), logarithm of its depth (1), of the scale (1), then
/// flexion, abduction and twist of joints 1 to 15.
inline constexpr std::size_t kFitGlobals = 7;
inline constexpr std::size_t kFitFinger = 9;  // of one finger's three joints
inline constexpr std::size_t kFitNumbers = kFitGlobals + 3 * kFingerJoints;
using FitStep = std::array<double, kFitNumbers>;

/// Direction and depth rather than x, y and z of the wrist: a step in depth then moves along the line of
/// sight, and the same numbers serve a webcam at half a metre and the original's camera at fifty.
struct FitState {
  std::array<double, 9> rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // row-major, of the whole hand
  Vec3 wrist = {0, 0, 1};                                        // metres in the camera, z > 0
  double scale = 1;
  HandAngles angles{};
};

/// The state after a step: rotation <- exp(step) rotation, re-orthonormalised; the rest adds or multiplies.
FitState moved(const FitState& state, const FitStep& step);

/// Derivatives of one key point. Of the fingers' numbers only those of its own finger are not zero.
struct PointDerivatives {
  std::array<Vec3, kFitGlobals> globals{};
  std::array<Vec3, kFitFinger> finger{};
  int first = -1;  // place of `finger` in the step; -1 for the wrist, which no finger moves
};

class FitKinematics {
 public:
  explicit FitKinematics(const Skeleton& skeleton);

  const Skeleton& skeleton() const { return skeleton_; }
  const JointFrames& frames() const { return frames_; }
  /// Key points in OpenPose order, metres in the camera.
  HandKeypoints points(const FitState& state) const;
  /// The same with their derivatives by the step, at step zero.
  HandKeypoints points(const FitState& state, std::array<PointDerivatives, kHandKeypoints>& out) const;
  /// What HandModel::pose() takes: 16 row-major matrices.
  std::array<double, 9 * kHandJoints> rotations(const FitState& state) const;

 private:
  Skeleton skeleton_;
  JointFrames frames_;
};

}  // namespace sinew

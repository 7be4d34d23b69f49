// Landmarks to pose: inverse kinematics of a hand under a pinhole camera.
#pragma once

#include <array>

#include "hand/camera.h"
#include "hand/joint_limits.h"
#include "hand/skeleton.h"

namespace sinew {

/// What a right hand is fitted to; of a left hand give the mirror image.
struct FitTarget {
  std::array<Vec2, kHandKeypoints> pixels{};  // in the picture of `camera`, OpenPose order
  std::array<Vec3, kHandKeypoints>
      metres{};  // about any origin, in the camera's axes: x right, y down, z away
  Intrinsics camera;
};

/// The pose of a right hand: what HandModel::pose() takes, and where and how large it is.
struct HandPose {
  std::array<double, 9 * kHandJoints> rotations{};  // 16 row-major matrices, absolute to the flat template
  Vec3 translation{};  // metres: a point p of the posed, scaled model stands at p + translation
  double scale = 1;    // of the model, within kMinHandScale and kMaxHandScale
};

inline constexpr double kMinHandScale = 0.5, kMaxHandScale = 2;

/// How far to trust what: standard deviations. The defaults come from the 12 pictures of shared/data/hands:
/// mean 2D error 1.9 % of the hand's size, and on the synthetic one 8.4 mm from the true joints (similarity
/// aligned; 14.9 from the wrist). Trusting pixels more (0.010 and 0.010) gives 1.4 %, 9.4 and 22.3 mm: the
/// model's palm is not the photographed one, and the fit tilts the hand to hide it. Trusting them less (0.030
/// and 0.006) gives 2.4 %, 7.8 and 12.2 mm.
struct FitOptions {
  double pixel_sigma = 0.02;   // of a landmark, as part of the hand's size in the picture
  double metre_sigma = 0.008;  // of a world landmark, metres on each axis
  double prior_sigma = 1;      // of the pose and scale prior, in units of its own deviations
  int max_iterations = 60;
};

struct HandFit {
  HandPose pose;
  HandAngles angles{};                           // of joints 1 to 15, each within its limits
  HandKeypoints joints{};                        // metres in the camera, translation included
  std::array<Vec2, kHandKeypoints> projected{};  // pixels
  double error_px = 0;                           // mean distance of projected from target pixels
  double cost = 0;                               // half the sum of squares that was minimised
  int iterations = 0;                            // steps tried
};

/// Fits `skeleton` (rest joints and tips in MANO's axes) by Levenberg-Marquardt with an analytic Jacobian
/// over global rotation, translation, scale and the angles of 15 joints, within joint_limits(), under a pose
/// prior. Deterministic, and without allocation. `start` (the last frame's pose) replaces the own first
/// guess. Throws Error (kMismatch) for a target or start that is not finite, landmarks that all coincide or
/// lie absurdly far away, a camera without focal length, a start behind the camera.
HandFit fit_hand(const Skeleton& skeleton, const FitTarget& target, const HandPose* start = nullptr,
                 const FitOptions& options = {});

/// The larger side of the landmarks' bounding box: what errors in pixels are measured by.
double hand_size(const std::array<Vec2, kHandKeypoints>& pixels);

/// The cost of `pose` with angles moved within their limits; what fit_hand() minimises. Infinite for a hand
/// that is not before the camera. Throws as fit_hand().
double fit_cost(const Skeleton& skeleton, const FitTarget& target, const HandPose& pose,
                const FitOptions& options = {});

}  // namespace sinew

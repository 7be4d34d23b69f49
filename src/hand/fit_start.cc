#include "hand/fit_start.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace sinew {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using RowMatrix3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

Eigen::Map<const Vector3d> in(const Vec3& v) { return Eigen::Map<const Vector3d>(v.data()); }

/// The key points that the palm holds together: wrist and knuckles. Not the thumb's base, which moves.
constexpr std::array<std::size_t, 5> kPalm = {0, 5, 9, 13, 17};
/// Nearer than this the picture of a hand is no hand's.
constexpr double kNearest = 0.02;

/// The rotation that lays `from` on `to` best (Kabsch); of points on a line, one of many.
Matrix3d rotation_between(const HandKeypoints& from, const HandKeypoints& to) {
  Vector3d from_mean = Vector3d::Zero(), to_mean = Vector3d::Zero();
  for (const std::size_t i : kPalm) {
    from_mean += in(from[i]) / kPalm.size();
    to_mean += in(to[i]) / kPalm.size();
  }
  Matrix3d product = Matrix3d::Zero();
  for (const std::size_t i : kPalm) product += (in(to[i]) - to_mean) * (in(from[i]) - from_mean).transpose();
  const double size = product.cwiseAbs().maxCoeff();
  if (!(size > 0)) return Matrix3d::Identity();
  const Eigen::JacobiSVD<Matrix3d> svd(product / size, Eigen::ComputeFullU | Eigen::ComputeFullV);
  Vector3d signs = Vector3d::Ones();
  if ((svd.matrixU() * svd.matrixV().transpose()).determinant() < 0) signs[2] = -1;
  return svd.matrixU() * signs.asDiagonal() * svd.matrixV().transpose();
}

/// Flexion and abduction that turn a joint's bone towards `direction`, in the joint's frame. Twist stays 0.
JointAngles towards(const Vector3d& direction) {
  JointAngles out;
  out.flexion = std::atan2(direction.y(), direction.x());
  // A joint bends by more than half a turn the one way only: what reads as -150 degrees is 210.
  if (out.flexion < -2 * std::numbers::pi / 3) out.flexion += 2 * std::numbers::pi;
  out.abduction = -std::atan2(direction.z(), std::hypot(direction.x(), direction.y()));
  return out;
}

/// Joint by joint outwards: a bone's direction in the frame that the joints before it (already within their
/// limits) have made.
void point_fingers(const FitKinematics& hand, const HandKeypoints& metres, FitState& state) {
  constexpr std::array<std::size_t, 5> kFirstPoint = {5, 9, 17, 13, 1};
  for (std::size_t f = 0; f < 5; ++f) {
    RowMatrix3 world = Eigen::Map<const RowMatrix3>(state.rotation.data());
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t j = 3 * f + i, point = kFirstPoint[f] + i;
      const JointFrame& frame = hand.frames()[j];
      const Vector3d bone = world.transpose() * (in(metres[point + 1]) - in(metres[point]));
      HandAngles all = state.angles;
      all[j] = towards({bone.dot(in(frame.bone)), bone.dot(in(frame.bend)), bone.dot(in(frame.hinge))});
      state.angles = within_limits(all);
      const auto own = joint_rotation(frame, state.angles[j]);
      world = (world * Eigen::Map<const RowMatrix3>(own.data())).eval();
    }
  }
}

/// Mean distance from the mean: a size that one bad landmark does not make.
double spread(const HandKeypoints& points) {
  Vector3d mean = Vector3d::Zero();
  for (const Vec3& p : points) mean += in(p) / kHandKeypoints;
  double sum = 0;
  for (const Vec3& p : points) sum += (in(p)-mean).norm() / kHandKeypoints;
  return sum;
}

/// The offset t for which points + t project nearest to the pixels, from the linear equations
/// t_x - u t_z = u z - x of u = (x + t_x) / (z + t_z); from sizes alone where these have no sensible answer.
Vector3d offset_of(const HandKeypoints& points, const FitTarget& target) {
  const Intrinsics& camera = target.camera;
  Matrix3d normal = Matrix3d::Zero();
  Vector3d right = Vector3d::Zero(), ray = Vector3d::Zero(), mean = Vector3d::Zero();
  double nearest = points[0][2];
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vector3d p = in(points[i]);
    const double u = (target.pixels[i][0] - camera.cx) / camera.fx;
    const double v = (target.pixels[i][1] - camera.cy) / camera.fy;
    const Vector3d row_u(1, 0, -u), row_v(0, 1, -v);
    normal += row_u * row_u.transpose() + row_v * row_v.transpose();
    right += row_u * (u * p.z() - p.x()) + row_v * (v * p.z() - p.y());
    ray += Vector3d(u, v, 1) / kHandKeypoints;
    mean += p / kHandKeypoints;
    nearest = std::min(nearest, p.z());
  }
  Vector3d solved = normal.ldlt().solve(right);
  if (solved.allFinite() && solved.z() + nearest > kNearest) return solved;
  const double focal = std::sqrt(camera.fx * camera.fy);
  const double depth =
      std::max(focal * spread(points) * 3 / hand_size(target.pixels), mean.z() - nearest + kNearest);
  return ray * depth - mean;
}

}  // namespace

FitState first_guess(const FitKinematics& hand, const FitTarget& target) {
  FitState state;
  Eigen::Map<RowMatrix3>(state.rotation.data()) = rotation_between(hand.points(state), target.metres);
  point_fingers(hand, target.metres, state);
  state.scale = std::clamp(spread(target.metres) / std::max(spread(hand.points(state)), 1e-6), 0.7, 1 / 0.7);
  const HandKeypoints points = hand.points(state);  // with the wrist at (0, 0, 1)
  const Vector3d wrist = in(state.wrist) + offset_of(points, target);
  state.wrist = {wrist[0], wrist[1], wrist[2]};
  double nearest = wrist[2];
  for (const Vec3& p : hand.points(state)) nearest = std::min(nearest, p[2]);
  if (!(nearest > 0)) state.wrist[2] += kNearest - nearest;
  return state;
}

FitState state_of(const FitKinematics& hand, const HandPose& pose) {
  FitState state;
  for (std::size_t i = 0; i < pose.rotations.size(); ++i) {
    if (std::abs(pose.rotations[i]) <= 2) continue;  // false for NaN too
    throw fail(ErrorCode::kMismatch, "start.rotations[{}][{}] is {}, expected rotation matrices", i / 9,
               i % 9, pose.rotations[i]);
  }
  const Eigen::Map<const RowMatrix3> root(pose.rotations.data());
  if ((root * root.transpose() - Matrix3d::Identity()).cwiseAbs().maxCoeff() > 1e-3 ||
      root.determinant() < 0) {
    throw fail(ErrorCode::kMismatch, "start.rotations[0] is not a rotation matrix");
  }
  if (!(pose.scale > 0) || !std::isfinite(pose.scale)) {
    throw fail(ErrorCode::kMismatch, "start.scale is {}, expected a positive number", pose.scale);
  }
  std::copy(pose.rotations.begin(), pose.rotations.begin() + 9, state.rotation.begin());
  state.angles = within_limits(hand_angles(hand.skeleton(), pose.rotations));
  state.scale = std::clamp(pose.scale, kMinHandScale, kMaxHandScale);
  for (std::size_t k = 0; k < 3; ++k) {
    state.wrist[k] = pose.translation[k] + pose.scale * hand.skeleton().joints[0][k];
  }
  if (!std::isfinite(state.wrist[0]) || !std::isfinite(state.wrist[1]) || !(state.wrist[2] > 0) ||
      !std::isfinite(state.wrist[2])) {
    throw fail(ErrorCode::kMismatch, "start.translation puts the wrist at ({}, {}, {}), expected z > 0",
               state.wrist[0], state.wrist[1], state.wrist[2]);
  }
  return state;
}

HandPose pose_of(const FitKinematics& hand, const FitState& state) {
  HandPose pose;
  pose.rotations = hand.rotations(state);
  pose.scale = state.scale;
  for (std::size_t k = 0; k < 3; ++k) {
    pose.translation[k] = state.wrist[k] - state.scale * hand.skeleton().joints[0][k];
  }
  return pose;
}

}  // namespace sinew

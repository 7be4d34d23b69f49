#include "hand/joint_limits.h"

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace sinew {
namespace {

using Eigen::Vector3d;
using RowMatrix3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

constexpr std::size_t kThumb = 12;  // the first of the thumb's three
/// Where a thumb bends that lies flat beside the hand: across the palm and a little before it. Measured on
/// the generic hand of glb_hand.h: normal to the widest direction of the thumb's cross-section, which is that
/// of its nail, (-0.50, -0.28, -0.82) at the last bone and (-0.52, -0.19, -0.83) at the one before. The same
/// measure finds +z +-15 degrees as the hinge of the fingers' last joints.
const Vector3d kThumbBends(-0.5, -0.24, -0.83);
const Vector3d kFingerHinge(0, 0, 1);

Vector3d vector(const Vec3& v) { return {v[0], v[1], v[2]}; }
Vec3 array(const Vector3d& v) { return {v[0], v[1], v[2]}; }

Vector3d unit_or(const Vector3d& v, const Vector3d& otherwise) {
  const double length = v.norm();
  return length > 1e-9 && std::isfinite(length) ? Vector3d(v / length) : otherwise;
}

/// What joint j (MANO's numbers) moves first: the next joint of its finger, or its tip.
Vector3d bone_of(const Skeleton& skeleton, std::size_t j) {
  const Vector3d from = vector(skeleton.joints[j]);
  for (std::size_t t = 0; t < Skeleton::kTipJoints.size(); ++t) {
    if (static_cast<std::size_t>(Skeleton::kTipJoints[t]) == j) return vector(skeleton.tips[t]) - from;
  }
  return vector(skeleton.joints[j + 1]) - from;
}

RowMatrix3 axes(const JointFrame& frame) {
  RowMatrix3 out;
  out.col(0) = vector(frame.bone);
  out.col(1) = vector(frame.bend);
  out.col(2) = vector(frame.hinge);
  return out;
}

constexpr JointAngles degrees(double flexion, double abduction, double twist) {
  constexpr double kUnit = std::numbers::pi / 180;
  return {flexion * kUnit, abduction * kUnit, twist * kUnit};
}

/// Runs f(value, low, high) over the 45 angles.
template <typename F>
void each_angle(HandAngles& angles, F&& f) {
  const auto& limits = joint_limits();
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    f(angles[j].flexion, limits[j].low.flexion, limits[j].high.flexion);
    f(angles[j].abduction, limits[j].low.abduction, limits[j].high.abduction);
    f(angles[j].twist, limits[j].low.twist, limits[j].high.twist);
  }
}

}  // namespace

JointFrames joint_frames(const Skeleton& skeleton) {
  JointFrames out;
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const Vector3d bone = unit_or(bone_of(skeleton, j + 1), -Vector3d::UnitX());
    const Vector3d bends = j >= kThumb ? kThumbBends : kFingerHinge.cross(bone);
    // A bone along its own bending direction is none of a hand; any normal will do.
    const Vector3d bend = unit_or(bends - bends.dot(bone) * bone, bone.unitOrthogonal());
    out[j] = {array(bone), array(bend), array(bone.cross(bend))};
  }
  return out;
}

const std::array<JointRange, kFingerJoints>& joint_limits() {
  // Knuckles: 45 of extension and 20 of abduction are the Academy's; Kapandji (The Physiology of the Joints,
  // vol. 1) has up to 30 sideways, most at the little and index finger, and some axial turn that goes with
  // it.
  constexpr JointRange kKnuckle = {degrees(-45, -25, -10), degrees(90, 25, 10)};
  constexpr JointRange kLittleKnuckle = {degrees(-45, -30, -15), degrees(95, 30, 15)};
  // Lin, Wu and Huang (Modeling the Constraints of Human Hand Motion, 2000) have 110 at the middle joint.
  constexpr JointRange kMiddle = {degrees(-5, -5, -5), degrees(110, 5, 5)};
  constexpr JointRange kLast = {degrees(-10, -5, -5), degrees(90, 5, 5)};
  // The flat template's thumb stands 38 degrees off the index finger: 15 of flexion beyond it are 53 from
  // here, and 60 of radial abduction (Eaton's reference values, e-hand.com) 22 the other way. 70 before the
  // palm are 62 from its 8. Opposition turns the pulp towards the fingers by about 40 (Kapandji).
  constexpr JointRange kThumbBase = {degrees(-22, -62, -40), degrees(53, 15, 15)};
  constexpr JointRange kThumbMiddle = {degrees(-10, -15, -10), degrees(55, 15, 10)};  // 10/55: Eaton
  constexpr JointRange kThumbLast = {degrees(-20, -5, -5), degrees(80, 5, 5)};
  static constexpr std::array<JointRange, kFingerJoints> kLimits = {
      kKnuckle,       kMiddle,      kLast,  // index
      kKnuckle,       kMiddle,      kLast,  // middle
      kLittleKnuckle, kMiddle,      kLast,  // pinky
      kKnuckle,       kMiddle,      kLast,  // ring
      kThumbBase,     kThumbMiddle, kThumbLast};
  return kLimits;
}

std::array<double, 9> joint_rotation(const JointFrame& frame, const JointAngles& angles) {
  const double cf = std::cos(angles.flexion), sf = std::sin(angles.flexion);
  const double ca = std::cos(angles.abduction), sa = std::sin(angles.abduction);
  const double ct = std::cos(angles.twist), st = std::sin(angles.twist);
  RowMatrix3 turn;                                                  // Rz Ry Rx
  turn << cf * ca, cf * sa * st - sf * ct, cf * sa * ct + sf * st,  //
      sf * ca, sf * sa * st + cf * ct, sf * sa * ct - cf * st,      //
      -sa, ca * st, ca * ct;
  const RowMatrix3 basis = axes(frame);
  std::array<double, 9> out{};
  Eigen::Map<RowMatrix3>(out.data()) = basis * turn * basis.transpose();
  return out;
}

JointAngles joint_angles(const JointFrame& frame, std::span<const double> rotation) {
  assert(rotation.size() == 9);
  const RowMatrix3 basis = axes(frame);
  const RowMatrix3 turn = basis.transpose() * Eigen::Map<const RowMatrix3>(rotation.data()) * basis;
  return {std::atan2(turn(1, 0), turn(0, 0)), std::atan2(-turn(2, 0), std::hypot(turn(2, 1), turn(2, 2))),
          std::atan2(turn(2, 1), turn(2, 2))};
}

HandAngles hand_angles(const Skeleton& skeleton, std::span<const double> rotations) {
  assert(rotations.size() == std::size_t{9} * kHandJoints);
  const JointFrames frames = joint_frames(skeleton);
  HandAngles out;
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    out[j] = joint_angles(frames[j], rotations.subspan(9 * (j + 1), 9));
  }
  return out;
}

HandAngles within_limits(const HandAngles& angles) {
  HandAngles out = angles;
  each_angle(out, [](double& value, double low, double high) { value = std::clamp(value, low, high); });
  return out;
}

double beyond_limits(const HandAngles& angles) {
  HandAngles all = angles;
  double worst = 0;
  each_angle(all, [&](double value, double low, double high) {
    worst = std::max({worst, low - value, value - high});
  });
  return worst;
}

}  // namespace sinew

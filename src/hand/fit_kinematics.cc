#include "hand/fit_kinematics.h"

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

namespace sinew {
namespace {

using Eigen::Vector3d;
using RowMatrix3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

Eigen::Map<const Vector3d> in(const Vec3& v) { return Eigen::Map<const Vector3d>(v.data()); }
Vec3 out(const Vector3d& v) { return {v[0], v[1], v[2]}; }

/// Finger f (index, middle, pinky, ring, thumb) owns joints 1 + 3f to 3 + 3f and these OpenPose points.
constexpr std::size_t kFingers = 5;
constexpr std::array<std::size_t, kFingers> kFirstPoint = {5, 9, 17, 13, 1};
constexpr std::array<std::size_t, kFingers> kTip = {1, 2, 4, 3, 0};  // its place in Skeleton::tips

struct Chain {
  std::array<Vector3d, 4> at;                   // three joints and the tip, metres in the camera
  std::array<std::array<Vector3d, 3>, 3> axes;  // of flexion, abduction, twist of each joint, in the camera
};

/// The bone vectors of a finger in the template: wrist to knuckle, ..., last joint to tip.
std::array<Vector3d, 4> bones(const Skeleton& skeleton, std::size_t finger) {
  const std::size_t first = 1 + 3 * finger;
  std::array<Vector3d, 4> result;
  Vector3d before = in(skeleton.joints[0]);
  for (std::size_t i = 0; i < 4; ++i) {
    const Vector3d next = in(i < 3 ? skeleton.joints[first + i] : skeleton.tips[kTip[finger]]);
    result[i] = next - before;
    before = next;
  }
  return result;
}

Chain pose_finger(const Skeleton& skeleton, const JointFrames& frames, const FitState& state,
                  std::size_t finger) {
  Chain chain;
  RowMatrix3 world = Eigen::Map<const RowMatrix3>(state.rotation.data());
  Vector3d at = in(state.wrist);
  const auto parts = bones(skeleton, finger);
  for (std::size_t i = 0; i < 4; ++i) {
    at += state.scale * (world * parts[i]);
    chain.at[i] = at;
    if (i == 3) break;
    const std::size_t j = 3 * finger + i;
    const JointFrame& frame = frames[j];
    const JointAngles& angles = state.angles[j];
    // Rz Ry Rx: flexion about the hinge of the bone above, abduction about what flexion made of `bend`, twist
    // about the bone as it lies in the end.
    const double cf = std::cos(angles.flexion), sf = std::sin(angles.flexion);
    const Vector3d bend = cf * in(frame.bend) - sf * in(frame.bone);
    chain.axes[i][0] = world * in(frame.hinge);
    chain.axes[i][1] = world * bend;
    const std::array<double, 9> own = joint_rotation(frame, angles);
    world = (world * Eigen::Map<const RowMatrix3>(own.data())).eval();
    chain.axes[i][2] = world * in(frame.bone);
  }
  return chain;
}

}  // namespace

FitState moved(const FitState& state, const FitStep& step) {
  FitState result = state;
  const Eigen::Map<const Vector3d> turn(step.data());
  const double angle = turn.norm();
  if (angle > 0) {
    const Eigen::Quaterniond by(Eigen::AngleAxisd(angle, turn / angle));
    const Eigen::Matrix3d old = Eigen::Map<const RowMatrix3>(state.rotation.data());
    // Through a unit quaternion, so that errors do not add up over the frames of a video.
    Eigen::Map<RowMatrix3>(result.rotation.data()) =
        (by * Eigen::Quaterniond(old)).normalized().toRotationMatrix();
  }
  const double depth = state.wrist[2] * std::exp(step[5]);
  result.wrist = {(state.wrist[0] / state.wrist[2] + step[3]) * depth,
                  (state.wrist[1] / state.wrist[2] + step[4]) * depth, depth};
  result.scale = state.scale * std::exp(step[6]);
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const double* own = &step[kFitGlobals + 3 * j];
    result.angles[j].flexion += own[0];
    result.angles[j].abduction += own[1];
    result.angles[j].twist += own[2];
  }
  return result;
}

FitKinematics::FitKinematics(const Skeleton& skeleton)
    : skeleton_(skeleton), frames_(joint_frames(skeleton)) {}

HandKeypoints FitKinematics::points(const FitState& state) const {
  HandKeypoints result;
  result[0] = state.wrist;
  for (std::size_t f = 0; f < kFingers; ++f) {
    const Chain chain = pose_finger(skeleton_, frames_, state, f);
    for (std::size_t i = 0; i < 4; ++i) result[kFirstPoint[f] + i] = out(chain.at[i]);
  }
  return result;
}

HandKeypoints FitKinematics::points(const FitState& state,
                                    std::array<PointDerivatives, kHandKeypoints>& derivatives) const {
  HandKeypoints result;
  result[0] = state.wrist;
  derivatives[0].first = -1;
  derivatives[0].finger = {};
  for (std::size_t f = 0; f < kFingers; ++f) {
    const Chain chain = pose_finger(skeleton_, frames_, state, f);
    for (std::size_t i = 0; i < 4; ++i) {
      result[kFirstPoint[f] + i] = out(chain.at[i]);
      PointDerivatives& own = derivatives[kFirstPoint[f] + i];
      own.first = static_cast<int>(kFitGlobals + kFitFinger * f);
      own.finger = {};
      for (std::size_t j = 0; j < i; ++j) {  // a joint moves what comes after it
        const Vector3d arm = chain.at[i] - chain.at[j];
        for (std::size_t k = 0; k < 3; ++k) own.finger[3 * j + k] = out(chain.axes[j][k].cross(arm));
      }
    }
  }
  const double depth = state.wrist[2];
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec3 arm = {result[i][0] - state.wrist[0], result[i][1] - state.wrist[1],
                      result[i][2] - state.wrist[2]};
    derivatives[i].globals = {{{0, -arm[2], arm[1]},
                               {arm[2], 0, -arm[0]},
                               {-arm[1], arm[0], 0},
                               {depth, 0, 0},
                               {0, depth, 0},
                               state.wrist,
                               arm}};
  }
  return result;
}

std::array<double, 9 * kHandJoints> FitKinematics::rotations(const FitState& state) const {
  std::array<double, 9 * kHandJoints> result{};
  std::copy(state.rotation.begin(), state.rotation.end(), result.begin());
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const auto own = joint_rotation(frames_[j], state.angles[j]);
    std::copy(own.begin(), own.end(), result.begin() + static_cast<std::ptrdiff_t>(9 * (j + 1)));
  }
  return result;
}

}  // namespace sinew

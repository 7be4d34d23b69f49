// Poses and small hands for tests.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hand/hand_model.h"
#include "hand/skeleton.h"
#include "io/test_glb.h"

namespace sinew {

using TestRotations = std::array<double, kHandRotationNumbers>;

inline TestRotations identity_pose() {
  TestRotations out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i % 9 % 4 == 0 ? 1 : 0;
  return out;
}

inline double distance_between(const Vec3& a, const Vec3& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// Turns by `angle` radians about a unit axis (Rodrigues).
inline void set_rotation(TestRotations& pose, std::size_t joint, const Vec3& axis, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  const std::array<double, 9> skew = {0, -axis[2], axis[1], axis[2], 0, -axis[0], -axis[1], axis[0], 0};
  for (std::size_t i = 0; i < 9; ++i) {
    pose[9 * joint + i] = (i % 4 == 0 ? c : 0) + s * skew[i] + (1 - c) * axis[i / 3] * axis[i % 3];
  }
}

/// Every joint turned a little, each otherwise.
inline TestRotations crooked_pose() {
  TestRotations out = identity_pose();
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const auto k = static_cast<double>(j);
    const double a = 0.7 * k, b = 0.3 + k;
    set_rotation(out, j, {std::cos(a) * std::cos(b), std::sin(a) * std::cos(b), std::sin(b)}, 0.1 * k - 0.7);
  }
  return out;
}

/// A model that is its skeleton: a vertex at each joint and tip, moved by its joint alone.
inline HandModelData skeleton_model() {
  const Skeleton& skeleton = builtin_skeleton();
  HandModelData data;
  data.name = "skeleton";
  for (std::size_t v = 0; v < kHandKeypoints; ++v) {
    const bool is_tip = v >= kHandJoints;
    data.v_template.push_back(is_tip ? skeleton.tips[v - kHandJoints] : skeleton.joints[v]);
    const std::size_t owner = is_tip ? static_cast<std::size_t>(Skeleton::kTipJoints[v - kHandJoints]) : v;
    for (std::size_t j = 0; j < kHandJoints; ++j) data.weights.push_back(j == owner ? 1 : 0);
  }
  data.rest_joints.assign(skeleton.joints.begin(), skeleton.joints.end());
  data.faces = {{0, 1, 2}, {18, 19, 20}};
  data.tips = {16, 17, 18, 19, 20};
  std::copy(kHandParents.begin(), kHandParents.end(), data.parents.begin());
  return data;
}

/// MANO's axes to those of the WebXR hand; the map is its own inverse.
inline std::array<float, 3> to_webxr_axes(const Vec3& p) {
  return {static_cast<float>(p[1]), static_cast<float>(p[0]), static_cast<float>(-p[2])};
}

/// builtin_skeleton() as a WebXR hand: a vertex at each joint and tip, and one of them twice.
inline TestGlb skeleton_glb() {
  const std::array<std::string, 5> fingers = {"index-finger", "middle-finger", "pinky-finger", "ring-finger",
                                              "thumb"};
  const std::array<std::size_t, 5> tips = {1, 2, 4, 3, 0};
  const Skeleton& skeleton = builtin_skeleton();
  std::vector<TestGlbJoint> joints = {{"wrist", to_webxr_axes(skeleton.joints[0])}};
  std::vector<TestGlbVertex> vertices = {{joints[0].at, {}, {1, 0, 0, 0}}};
  const auto add = [&](const std::string& name, const Vec3& at, std::size_t owner) {
    joints.push_back({name, to_webxr_axes(at)});
    vertices.push_back({to_webxr_axes(at), {static_cast<std::uint8_t>(owner), 0, 0, 0}, {1, 0, 0, 0}});
  };
  for (std::size_t f = 0; f < 5; ++f) {
    const bool thumb = f == 4;
    const std::array<std::string, 3> bones = {thumb ? "-metacarpal" : "-phalanx-proximal",
                                              thumb ? "-phalanx-proximal" : "-phalanx-intermediate",
                                              "-phalanx-distal"};
    for (std::size_t b = 0; b < 3; ++b)
      add(fingers[f] + bones[b], skeleton.joints[1 + 3 * f + b], joints.size());
    add(fingers[f] + "-tip", skeleton.tips[tips[f]], joints.size() - 1);
  }
  vertices.push_back(vertices[0]);
  return {joints, vertices, {0, 1, 2, 21, 2, 3, 0, 21, 5}};
}

}  // namespace sinew

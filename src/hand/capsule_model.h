// A hand model with a mesh that tests make themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hand/hand_model.h"
#include "hand/mesh_test_support.h"
#include "hand/pipeline.h"
#include "hand/test_hands.h"

namespace sinew {

/// builtin_skeleton() in 20 capsules (1600 faces), flat, each moved by one joint.
inline HandModelData capsule_model() {
  const Skeleton& skeleton = builtin_skeleton();
  const HandKeypoints points = pose_skeleton(skeleton, identity_pose());
  HandModelData data;
  data.name = "capsules";
  for (std::size_t k = 1; k < kHandKeypoints; ++k) {
    const auto parent = static_cast<std::size_t>(kOpenPoseParents[k]);
    const std::size_t along = (k - 1) % 4;  // of the finger, from its root
    const double from = along == 0 ? 0.017 : 0.0105 - 0.001 * static_cast<double>(along);
    const Mesh capsule =
        capsule_mesh(points[parent], points[k], from, along == 0 ? 0.0125 : from - 0.001, 8, 3);
    const auto base = static_cast<std::uint32_t>(data.v_template.size());
    if (k % 4 == 0) data.tips[k / 4 - 1] = base;
    const auto owner = static_cast<std::size_t>(kOpenPoseFromMano[parent]);
    for (const Vec3f& v : capsule.vertices) {
      data.v_template.push_back({v[0], v[1], v[2]});
      for (std::size_t j = 0; j < kHandJoints; ++j) data.weights.push_back(j == owner ? 1 : 0);
    }
    for (const Face& f : capsule.faces) data.faces.push_back({f[0] + base, f[1] + base, f[2] + base});
  }
  data.rest_joints.assign(skeleton.joints.begin(), skeleton.joints.end());
  std::copy(kHandParents.begin(), kHandParents.end(), data.parents.begin());
  return data;
}

/// The model in the open pose of a palm towards the camera, as a result of a frame of 320 x 240.
inline HandResult capsule_result(const HandModel& model, bool is_right) {
  HandResult result;
  result.box = {100, 50, 220, 210, is_right};
  result.geometry = {160, 128, 256};
  result.frame_width = 320;
  result.frame_height = 240;
  result.camera = {480, 480, 160, 120};    // centred
  result.cam_t_full = {-0.09, 0.10, 0.5};  // the wrist stays where it was at rest
  TestRotations rotations = identity_pose();
  const std::array<double, 9> towards_camera = {0, 0, 1, 1, 0, 0, 0, 1, 0};
  std::copy(towards_camera.begin(), towards_camera.end(), rotations.begin());
  PosedHand posed = model.pose(rotations, {});
  result.vertices = std::move(posed.vertices);
  result.joints_3d = posed.keypoints;
  if (!is_right) {
    for (Vec3& p : result.vertices) p[0] = -p[0];
    for (Vec3& p : result.joints_3d) p[0] = -p[0];
    result.cam_t_full[0] = -result.cam_t_full[0];
  }
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    result.joints_2d[i] = project(result.joints_3d[i], result.cam_t_full, result.camera);
  }
  return result;
}

inline Image mirrored_image(const Image& image) {
  Image out(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      std::copy_n(image.pixel(x, y), 3, out.pixel(image.width - 1 - x, y));
    }
  }
  return out;
}

}  // namespace sinew

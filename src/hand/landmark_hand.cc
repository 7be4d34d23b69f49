#include "hand/landmark_hand.h"

#include <cmath>
#include <utility>

#include "hand/camera.h"
#include "hand/fit.h"
#include "models/hamer/config.h"

namespace sinew {
namespace {

/// The smallest turn that takes the optical axis to the line of sight (u, v, 1), row-major.
std::array<double, 9> towards_ray(double u, double v) {
  const double length = std::sqrt(u * u + v * v + 1);
  const double x = u / length, y = v / length, z = 1 / length, k = 1 / (1 + z);
  return {1 - k * x * x, -k * x * y, x, -k * x * y, 1 - k * y * y, y, -x, -y, z};
}

/// The landmark network sees a crop and knows nothing of where it was cut: its world landmarks are turned as
/// if the hand stood on the optical axis. Turned with the line of sight to the hand's middle they are in the
/// camera's own axes. That is a tenth of a degree with the original's camera, 30 degrees at the border of a
/// wide angle.
void turn_to_camera(FitTarget& target) {
  Vec2 middle{};
  for (const Vec2& p : target.pixels) {
    middle[0] += p[0] / kHandKeypoints;
    middle[1] += p[1] / kHandKeypoints;
  }
  const Intrinsics& camera = target.camera;
  const auto turn = towards_ray((middle[0] - camera.cx) / camera.fx, (middle[1] - camera.cy) / camera.fy);
  for (Vec3& p : target.metres) {
    const Vec3 from = p;
    for (std::size_t r = 0; r < 3; ++r)
      p[r] = turn[3 * r] * from[0] + turn[3 * r + 1] * from[1] + turn[3 * r + 2] * from[2];
  }
}

/// What the fit sees: a right hand. A left one is mirrored about the vertical plane through the optical axis.
FitTarget target_of(const FoundHand& found, const Intrinsics& camera) {
  FitTarget target = {found.landmarks, found.world, camera};
  if (!found.box.is_right) {
    for (Vec2& p : target.pixels) p[0] = 2 * camera.cx - p[0];
    for (Vec3& p : target.metres) p[0] = -p[0];
  }
  turn_to_camera(target);
  return target;
}

double side_of(const HandResult& result) { return result.box.is_right ? 1 : -1; }

/// Where the last frame's hand was, as a right hand.
HandPose pose_of(const HandResult& last) {
  HandPose pose;
  pose.rotations = last.rotmats;
  pose.scale = last.scale;
  pose.translation = {side_of(last) * last.cam_t_full[0], last.cam_t_full[1], last.cam_t_full[2]};
  return pose;
}

/// Joints and vertices of the model in its pose and size, of the side that the hand is of.
void place(const HandModel* model, HandResult& result) {
  if (model != nullptr) {
    PosedHand hand = model->pose(result.rotmats, result.betas);
    result.joints_3d = hand.keypoints;
    result.vertices = std::move(hand.vertices);
  } else {
    result.joints_3d = pose_skeleton(builtin_skeleton(), result.rotmats);
  }
  const double side = side_of(result);
  const auto own = [&](Vec3& p) {
    p = {side * result.scale * p[0], result.scale * p[1], result.scale * p[2]};
  };
  for (Vec3& joint : result.joints_3d) own(joint);
  for (Vec3& vertex : result.vertices) own(vertex);
}

}  // namespace

HandResult pose_landmarks(const FoundHand& found, const LandmarkHandOptions& options,
                          const HandResult* last) {
  HandResult result;
  result.box = found.box;
  result.found = found;
  result.geometry = crop_geometry(found.box, options.rescale);
  result.frame_width = options.frame_width;
  result.frame_height = options.frame_height;
  result.camera = options.camera.value_or(
      assumed_camera(hamer::Config{}.focal_length, options.frame_width, options.frame_height));
  const bool go_on = last != nullptr && last->box.is_right == found.box.is_right;
  const HandPose start = go_on ? pose_of(*last) : HandPose{};
  const HandFit fit = fit_hand(options.model != nullptr ? options.model->skeleton({}) : builtin_skeleton(),
                               target_of(found, result.camera), go_on ? &start : nullptr);
  result.rotmats = fit.pose.rotations;
  result.scale = fit.pose.scale;
  const double side = side_of(result);
  result.cam_t_full = {side * fit.pose.translation[0], fit.pose.translation[1], fit.pose.translation[2]};
  place(options.model.get(), result);
  result.cam = crop_camera(result.cam_t_full, result.geometry, result.camera);
  result.cam[1] *= side;
  double error = 0;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    result.joints_2d[i] = project(result.joints_3d[i], result.cam_t_full, result.camera);
    error += std::hypot(result.joints_2d[i][0] - found.landmarks[i][0],
                        result.joints_2d[i][1] - found.landmarks[i][1]);
  }
  result.fit_error_px = error / kHandKeypoints;
  return result;
}

}  // namespace sinew

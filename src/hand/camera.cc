#include "hand/camera.h"

#include <algorithm>
#include <cmath>

namespace sinew {
namespace {

constexpr double kGuard = 1e-9;  // of the original, against a scale of zero
constexpr double kReferenceSide = 256;

/// One focal length for both axes; exactly theirs when they agree.
double mean_focal(const Intrinsics& camera) {
  return camera.fx == camera.fy ? camera.fx : std::sqrt(camera.fx * camera.fy);
}

}  // namespace

double scaled_focal_length(double focal, double width, double height) {
  return focal / kReferenceSide * std::max(width, height);
}

Intrinsics assumed_camera(double focal, int width, int height) {
  const double focal_px = scaled_focal_length(focal, width, height);
  return {focal_px, focal_px, width / 2.0, height / 2.0};
}

Vec3 full_frame_translation(const Vec3& cam, const CropGeometry& crop, const Intrinsics& camera) {
  const double side = crop.box_size * cam[0] + kGuard;
  const double focal = mean_focal(camera);
  return {2 * (crop.center_x - camera.cx) * (focal / camera.fx) / side + cam[1],
          2 * (crop.center_y - camera.cy) * (focal / camera.fy) / side + cam[2], 2 * focal / side};
}

Vec3 crop_camera(const Vec3& translation, const CropGeometry& crop, const Intrinsics& camera) {
  const double focal = mean_focal(camera);
  const double side = 2 * focal / translation[2];
  return {(side - kGuard) / crop.box_size,
          translation[0] - 2 * (crop.center_x - camera.cx) * (focal / camera.fx) / side,
          translation[1] - 2 * (crop.center_y - camera.cy) * (focal / camera.fy) / side};
}

Vec2 project(const Vec3& point, const Vec3& translation, const Intrinsics& camera) {
  const double z = point[2] + translation[2];
  return {camera.fx * (point[0] + translation[0]) / z + camera.cx,
          camera.fy * (point[1] + translation[1]) / z + camera.cy};
}

}  // namespace sinew

#include "hand/camera.h"

#include <algorithm>

namespace sinew {
namespace {

constexpr double kGuard = 1e-9;  // of the original, against a scale of zero
constexpr double kReferenceSide = 256;

}  // namespace

double scaled_focal_length(double focal, double width, double height) {
  return focal / kReferenceSide * std::max(width, height);
}

Vec3 full_frame_translation(const Vec3& cam, const FrameGeometry& frame, double focal_px) {
  const double side = frame.box_size * cam[0] + kGuard;
  return {2 * (frame.center_x - frame.width / 2) / side + cam[1],
          2 * (frame.center_y - frame.height / 2) / side + cam[2], 2 * focal_px / side};
}

Vec2 project(const Vec3& point, const Vec3& translation, double focal_px, const FrameGeometry& frame) {
  const double z = point[2] + translation[2];
  return {focal_px * (point[0] + translation[0]) / z + frame.width / 2,
          focal_px * (point[1] + translation[1]) / z + frame.height / 2};
}

}  // namespace sinew

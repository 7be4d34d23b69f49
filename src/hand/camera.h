// From the crop's weak perspective to a camera of the whole frame (spec hamer 5.4).
#pragma once

#include <array>

namespace sinew {

using Vec3 = std::array<double, 3>;
using Vec2 = std::array<double, 2>;

/// The frame that a crop was cut from.
struct FrameGeometry {
  double width = 0, height = 0;       // pixels
  double center_x = 0, center_y = 0;  // of the crop, pixels
  double box_size = 0;                // side of the crop's square, pixels
};

/// The original's "scaled focal length" in pixels: focal/256 * max(width, height), `focal` given at 256
/// pixels (5000).
double scaled_focal_length(double focal, double width, double height);

/// Translation in metres that puts the hand before a camera of `focal_px` pixels centred on the frame; x
/// right, y down, z away. `cam` is s, tx, ty with tx already mirrored for left hands.
Vec3 full_frame_translation(const Vec3& cam, const FrameGeometry& frame, double focal_px);

/// Pixel of a point in metres under that camera.
Vec2 project(const Vec3& point, const Vec3& translation, double focal_px, const FrameGeometry& frame);

}  // namespace sinew

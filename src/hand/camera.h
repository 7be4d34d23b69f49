// From the crop's weak perspective to a camera of the whole frame (spec hamer 5.4).
#pragma once

#include <array>

#include "image/crop.h"

namespace sinew {

using Vec3 = std::array<double, 3>;
using Vec2 = std::array<double, 2>;

/// A pinhole camera in pixels: a point (x, y, z), z > 0, is seen at (fx x/z + cx, fy y/z + cy).
struct Intrinsics {
  double fx = 0, fy = 0, cx = 0, cy = 0;
};

/// The original's "scaled focal length" in pixels: focal/256 * max(width, height), `focal` given at 256
/// pixels (5000).
double scaled_focal_length(double focal, double width, double height);

/// The camera that the original assumes when it knows none: that focal length, centred on the frame.
Intrinsics assumed_camera(double focal, int width, int height);

/// Translation in metres that puts the hand of a crop before `camera`; x right, y down, z away. `cam` is s,
/// tx, ty with tx already mirrored for left hands. The crop's square spans 2/s metres at the hand's depth;
/// with pixels that are not square their geometric mean decides.
Vec3 full_frame_translation(const Vec3& cam, const CropGeometry& crop, const Intrinsics& camera);
/// The way back: the cam of a hand at `translation`.
Vec3 crop_camera(const Vec3& translation, const CropGeometry& crop, const Intrinsics& camera);

/// Pixel of a point in metres under that camera.
Vec2 project(const Vec3& point, const Vec3& translation, const Intrinsics& camera);

}  // namespace sinew

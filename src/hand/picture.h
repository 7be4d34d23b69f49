// A hand picture drawn by the project itself, so that the demo and the tests need no photo.
#pragma once

#include <cstdint>
#include <optional>

#include "hand/skeleton.h"
#include "tensor/image.h"

namespace sinew {

struct HandPicture {
  Image image;
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;         // box of the hand, pixels
  std::array<Vec2, kHandKeypoints> joints_2d{};  // of the drawn hand, OpenPose order
  HandKeypoints joints_3d{};                     // metres, in the camera's axes: x right, y down, z away
  std::optional<Intrinsics> camera;              // under which they are joints_2d; none: parallel projection
  bool is_right = true;
};

/// Throws Error (kUsage) unless both sides are 64 to 4096 pixels.
void check_picture_size(int width, int height);

/// A right hand, palm towards the camera (so its thumb points to the right of the picture), fingers up and a
/// little bent by `seed`: tapered capsules blended into one another, skin with creases and blush under two
/// lights, before a soft background. Deterministic. width and height from 64 to 4096 pixels (kUsage).
HandPicture draw_hand_picture(int width, int height, std::uint64_t seed);

}  // namespace sinew

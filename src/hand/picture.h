// A hand picture drawn by the project itself, so that the demo and the tests need no photo.
#pragma once

#include <cstdint>

#include "hand/skeleton.h"
#include "tensor/image.h"

namespace sinew {

struct HandPicture {
  Image image;
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;         // box of the hand, pixels
  std::array<Vec2, kHandKeypoints> joints_2d{};  // of the drawn hand, OpenPose order
};

/// A right hand, palm towards the camera (so its thumb points to the right of the picture), fingers up and a
/// little bent by `seed`: tapered capsules blended into one another, skin with creases and blush under two
/// lights, before a soft background. Deterministic. width and height from 64 to 4096 pixels (kUsage).
HandPicture draw_hand_picture(int width, int height, std::uint64_t seed);

}  // namespace sinew

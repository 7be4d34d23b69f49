// Square pieces of a frame, at any angle, as small networks take them: size x size RGB in 0..1.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/image.h"

namespace sinew {

/// A square of a frame. Pixels, x right, y down, continuous: pixel (0, 0) covers 0..1 in both. Turned by
/// `angle` radians, clockwise as seen: at pi/2 the square's own up is the frame's right.
struct FrameSquare {
  double center_x = 0, center_y = 0;
  double side = 0;
  double angle = 0;
};

/// Where the square's own point (u, v), 0..1 each from its upper left corner, lies in the frame.
std::array<double, 2> frame_point(const FrameSquare& square, double u, double v);

/// What lies outside the frame: black, blended into the edge, or the frame's nearest pixel.
enum class Border : std::uint8_t { kBlack, kReplicate };

/// Finite, with a side above 0 and no number beyond a million pixels: what sample_square() takes.
bool in_reach(const FrameSquare& square);

/// Bilinear samples at the middles of the square's size x size cells: writes 3*size*size floats, interleaved,
/// 0..1. Cells of two pixels and more are first averaged over k x k pixels, k = floor(side/size): unlike
/// MediaPipe, which samples points at any scale. The square may lie beside the frame in part or altogether.
/// Asserts in_reach(square), a frame with pixels and 1 <= size <= 1024.
void sample_square(const Image& frame, const FrameSquare& square, int size, Border border, float* out);

}  // namespace sinew

// The reference port's crop (spec hamer 3.2): an integer square of the frame, grey outside, Pillow BILINEAR
// to 256 x 256 of which the network sees 192 columns. The padded square is never built: padding is a share of
// each filter's weights.
#include <cmath>

#include "base/error.h"
#include "image/crop.h"
#include "image/resample.h"

namespace sinew {

Crop crop_pillow_square(const Image& frame, int x0, int y0, int side, const std::uint8_t pad[3],
                        bool is_right, bool full_square) {
  check_frame(frame);
  if (side < 1 || side > kMaxSquareSide) {
    throw fail(ErrorCode::kLimit, "crop: a square of {} pixels, expected 1 to {}", side, kMaxSquareSide);
  }
  Crop out;
  out.columns = full_square ? kCropSide : kCropColumns;
  out.u8.resize(std::size_t{3} * out.rows * out.columns);
  // The centre columns: side/8 is exact in float32, and both boxes give the same scale side/256 and the same
  // centres.
  const auto extent = static_cast<float>(side);
  const float left = full_square ? 0.0F : extent / 8;
  AxisFilter columns = triangle_filter(side, left, extent - left, out.columns);
  AxisFilter rows = triangle_filter(side, 0.0F, extent, out.rows);
  place_in_frame(columns, x0, frame.width);
  place_in_frame(rows, y0, frame.height);
  if (!is_right) mirror_outputs(columns);
  resample(frame, columns, rows, pad, out.u8.data());
  return out;
}

Crop crop_pillow(const Image& frame, const CropGeometry& geometry, bool is_right, bool full_square) {
  // Half up, as the project's definition says; a square under half a pixel becomes one pixel.
  const double side = std::max(1.0, std::floor(geometry.box_size + 0.5));
  const double x0 = std::floor(geometry.center_x - side / 2 + 0.5);
  const double y0 = std::floor(geometry.center_y - side / 2 + 0.5);
  constexpr double kFarthest = 1 << 30;
  if (!(side <= kMaxSquareSide) || !(std::abs(x0) <= kFarthest) || !(std::abs(y0) <= kFarthest)) {
    throw fail(ErrorCode::kLimit,
               "crop: a square of {} pixels around ({}, {}), at most {} pixels are supported",
               geometry.box_size, geometry.center_x, geometry.center_y, kMaxSquareSide);
  }
  return crop_pillow_square(frame, static_cast<int>(x0), static_cast<int>(y0), static_cast<int>(side),
                            kGreyPad, is_right, full_square);
}

}  // namespace sinew

#include "image/resize.h"

#include "base/error.h"
#include "image/resample.h"

namespace sinew {
namespace {

constexpr int kMaxSide = 65536;  // of the result: bounds its memory and the filters' before they are taken

void check(const Image& source, int width, int height, const ResizeBox& box) {
  if (source.width < 1 || source.height < 1) {
    throw fail(ErrorCode::kUsage, "resize: the source has {} x {} pixels", source.width, source.height);
  }
  if (width < 1 || height < 1) {
    throw fail(ErrorCode::kUsage, "resize: to {} x {} pixels, expected at least 1 x 1", width, height);
  }
  if (width > kMaxSide || height > kMaxSide) {
    throw fail(ErrorCode::kLimit, "resize: to {} x {} pixels, at most {} per side", width, height, kMaxSide);
  }
  const auto x0 = static_cast<float>(box.x0);
  const auto y0 = static_cast<float>(box.y0);
  const auto x1 = static_cast<float>(box.x1);
  const auto y1 = static_cast<float>(box.y1);
  const bool inside = x0 >= 0 && y0 >= 0 && x1 <= static_cast<float>(source.width) &&
                      y1 <= static_cast<float>(source.height) && x0 <= x1 && y0 <= y1;  // false for NaN
  if (!inside) {
    throw fail(ErrorCode::kUsage,
               "resize: the box x {} to {}, y {} to {} does not lie inside the source of {} x {} pixels",
               box.x0, box.x1, box.y0, box.y1, source.width, source.height);
  }
}

}  // namespace

// Pillow skips a pass that would change nothing and copies when neither is needed. The filter then has one
// weight of exactly 2^22 per output, (2^21 + 2^22 p) >> 22 = p, so that no case needs to be told apart.
Image resize_bilinear(const Image& source, int width, int height, const ResizeBox& box) {
  check(source, width, height, box);
  const auto columns =
      triangle_filter(source.width, static_cast<float>(box.x0), static_cast<float>(box.x1), width);
  const auto rows =
      triangle_filter(source.height, static_cast<float>(box.y0), static_cast<float>(box.y1), height);
  constexpr std::uint8_t kNoPad[3] = {0, 0, 0};
  Image out(width, height);
  resample(source, columns, rows, kNoPad, out.rgb.data());
  return out;
}

Image resize_bilinear(const Image& source, int width, int height) {
  return resize_bilinear(source, width, height,
                         {0, 0, static_cast<double>(source.width), static_cast<double>(source.height)});
}

}  // namespace sinew

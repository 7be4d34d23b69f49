// Pillow's BILINEAR resize, bit for bit (spec hamer 4).
#pragma once

#include "tensor/image.h"

namespace sinew {

struct ResizeBox {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;  // source pixels; rounded to float32 on entry, as Pillow does
};

/// `Image.resize((width, height), BILINEAR, box)` of Pillow 9.4: horizontal pass, then vertical (later
/// versions start with the vertical one when a picture more than 100 times as high as wide gets lower).
/// Throws Error: kUsage (a negative origin, a box beyond the image, a negative extent, NaN, no source pixels,
/// an output below one pixel), kLimit (an output side above 65536).
Image resize_bilinear(const Image& source, int width, int height, const ResizeBox& box);
Image resize_bilinear(const Image& source, int width, int height);

}  // namespace sinew

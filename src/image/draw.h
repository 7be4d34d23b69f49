// Drawing on pictures: anti-aliased lines, discs, boxes.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/image.h"

namespace sinew {

using Colour = std::array<std::uint8_t, 3>;

/// Anti-aliased by coverage (distance to the shape), clipped to the image; coordinates are pixel centres.
/// Non-finite coordinates draw nothing. `opacity` 0..1.
void draw_line(Image& image, double x0, double y0, double x1, double y1, double width, const Colour& colour,
               double opacity = 1);
void draw_disc(Image& image, double x, double y, double radius, const Colour& colour, double opacity = 1);
void draw_box(Image& image, double x0, double y0, double x1, double y1, double width, const Colour& colour,
              double opacity = 1);

}  // namespace sinew

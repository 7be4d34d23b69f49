// 8-bit RGB images, the form in which pictures enter and leave sinew.
#pragma once

#include <cstdint>
#include <vector>

namespace sinew {

/// Interleaved RGB, row 0 on top, no padding between rows: pixel (x,y) starts at 3*(y*width + x).
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;

  Image() = default;
  Image(int w, int h) : width(w), height(h), rgb(static_cast<std::size_t>(w) * h * 3) {}
  std::uint8_t* pixel(int x, int y) { return &rgb[3 * (static_cast<std::size_t>(y) * width + x)]; }
  const std::uint8_t* pixel(int x, int y) const {
    return &rgb[3 * (static_cast<std::size_t>(y) * width + x)];
  }
};

}  // namespace sinew

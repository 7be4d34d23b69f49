#include "image/square.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sinew {
namespace {

constexpr int kMaxSize = 1024;
constexpr int kMaxBlock = 256;  // 255 * 257 is the largest sum of a column in 16 bits

/// Position of cell (i, j) in a picture: (x0 + i dx - j dy, y0 + i dy + j dx), 0 the middle of the first
/// pixel.
struct Grid {
  double x0, y0, dx, dy;
};

Grid grid_of(const FrameSquare& square, int size) {
  const double cell = square.side / size;
  const auto first = frame_point(square, 0.5 / size, 0.5 / size);
  return {first[0] - 0.5, first[1] - 0.5, cell * std::cos(square.angle), cell * std::sin(square.angle)};
}

/// Blocks of k x k pixels, first..end-1 of each axis of the frame.
struct Blocks {
  int k = 1;
  int x_first = 0, x_end = 0, y_first = 0, y_end = 0;
};

/// The blocks of one axis that samples between `low` and `high` read.
void cover(double low, double high, int k, int extent, int& first, int& end) {
  const int count = (extent + k - 1) / k;
  const double limit = count;
  first = static_cast<int>(std::clamp(std::floor((low - 1) / k) - 1, 0.0, limit - 1));
  end = static_cast<int>(std::clamp(std::floor((high + 1) / k) + 3, first + 1.0, limit));
}

Blocks needed_blocks(const Image& frame, const Grid& grid, int size, int k) {
  const double last = size - 1;
  const auto range = [&](double origin, double a, double b) {
    return std::array<double, 2>{origin + std::min(a, 0.0) * last + std::min(b, 0.0) * last,
                                 origin + std::max(a, 0.0) * last + std::max(b, 0.0) * last};
  };
  const auto x = range(grid.x0, grid.dx, -grid.dy);
  const auto y = range(grid.y0, grid.dy, grid.dx);
  Blocks blocks;
  blocks.k = k;
  cover(x[0], x[1], k, frame.width, blocks.x_first, blocks.x_end);
  cover(y[0], y[1], k, frame.height, blocks.y_first, blocks.y_end);
  return blocks;
}

/// sums[i] += row[i], in steps of a fixed width that compilers make vectors of even at -O2.
void add_row(const std::uint8_t* row, std::size_t count, std::uint16_t* sums) {
  constexpr std::size_t kStep = 32;
  std::size_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    for (std::size_t j = 0; j < kStep; ++j) {
      sums[i + j] = static_cast<std::uint16_t>(sums[i + j] + row[i + j]);
    }
  }
  for (; i < count; ++i) sums[i] = static_cast<std::uint16_t>(sums[i] + row[i]);
}

/// The means of blocks, rounded; those at the frame's right and lower edge have fewer pixels.
Image block_means(const Image& frame, const Blocks& blocks) {
  Image out(blocks.x_end - blocks.x_first, blocks.y_end - blocks.y_first);
  const int k = blocks.k;
  const int x_begin = blocks.x_first * k;
  const int x_end = std::min(blocks.x_end * k, frame.width);
  std::vector<std::uint16_t> sums(std::size_t{3} * (x_end - x_begin));
  for (int by = 0; by < out.height; ++by) {
    const int y_begin = (blocks.y_first + by) * k;
    const int y_end = std::min(y_begin + k, frame.height);
    std::fill(sums.begin(), sums.end(), std::uint16_t{0});
    for (int y = y_begin; y < y_end; ++y) add_row(frame.pixel(x_begin, y), sums.size(), sums.data());
    const std::uint16_t* sum = sums.data();
    std::uint8_t* to = out.pixel(0, by);
    for (int bx = 0; bx < out.width; ++bx) {
      const int columns = std::min(k, x_end - x_begin - bx * k);
      std::uint32_t total[3] = {0, 0, 0};
      for (int i = 0; i < columns; ++i, sum += 3) {
        for (int c = 0; c < 3; ++c) total[c] += sum[c];
      }
      const auto count = static_cast<std::uint32_t>(columns * (y_end - y_begin));
      for (int c = 0; c < 3; ++c) *to++ = static_cast<std::uint8_t>((total[c] + count / 2) / count);
    }
  }
  return out;
}

/// One sample's place: the upper left of its four pixels, and the share of the others.
struct Places {
  int x[kMaxSize], y[kMaxSize];
  float right[kMaxSize], below[kMaxSize];
};

void place_row(const Grid& grid, int row, int size, const Image& image, Places& places) {
  const double x0 = grid.x0 - row * grid.dy;
  const double y0 = grid.y0 + row * grid.dx;
  for (int i = 0; i < size; ++i) {
    // Two pixels outside is as good as any distance, and fits an int.
    const double x = std::clamp(x0 + i * grid.dx, -2.0, image.width + 1.0);
    const double y = std::clamp(y0 + i * grid.dy, -2.0, image.height + 1.0);
    const int left = static_cast<int>(x + 2) - 2;  // floor, for x >= -2
    const int above = static_cast<int>(y + 2) - 2;
    places.x[i] = left;
    places.y[i] = above;
    places.right[i] = static_cast<float>(x - left);
    places.below[i] = static_cast<float>(y - above);
  }
}

void blend(const std::uint8_t* const taps[4], float right, float below, float* out) {
  constexpr float kUnit = 1.0F / 255;
  const float w11 = right * below * kUnit;
  const float w10 = below * kUnit - w11;
  const float w01 = right * kUnit - w11;
  const float w00 = kUnit - w01 - below * kUnit;
  for (int c = 0; c < 3; ++c) {
    out[c] = static_cast<float>(taps[0][c]) * w00 + static_cast<float>(taps[1][c]) * w01 +
             static_cast<float>(taps[2][c]) * w10 + static_cast<float>(taps[3][c]) * w11;
  }
}

const std::uint8_t* pixel_or_border(const Image& image, int x, int y, Border border) {
  static constexpr std::uint8_t kBlack[3] = {0, 0, 0};
  const bool inside = x >= 0 && y >= 0 && x < image.width && y < image.height;
  if (!inside && border == Border::kBlack) return kBlack;
  return image.pixel(std::clamp(x, 0, image.width - 1), std::clamp(y, 0, image.height - 1));
}

void sample(const Image& image, const Grid& grid, int size, Border border, float* out) {
  Places places;
  const std::size_t stride = std::size_t{3} * image.width;
  for (int row = 0; row < size; ++row) {
    place_row(grid, row, size, image, places);
    for (int i = 0; i < size; ++i, out += 3) {
      const int x = places.x[i], y = places.y[i];
      if (x >= 0 && y >= 0 && x + 1 < image.width && y + 1 < image.height) {
        const std::uint8_t* at = image.pixel(x, y);
        const std::uint8_t* const taps[4] = {at, at + 3, at + stride, at + stride + 3};
        blend(taps, places.right[i], places.below[i], out);
      } else {
        const std::uint8_t* const taps[4] = {
            pixel_or_border(image, x, y, border), pixel_or_border(image, x + 1, y, border),
            pixel_or_border(image, x, y + 1, border), pixel_or_border(image, x + 1, y + 1, border)};
        blend(taps, places.right[i], places.below[i], out);
      }
    }
  }
}

}  // namespace

std::array<double, 2> frame_point(const FrameSquare& square, double u, double v) {
  const double x = (u - 0.5) * square.side;
  const double y = (v - 0.5) * square.side;
  const double c = std::cos(square.angle), s = std::sin(square.angle);
  return {square.center_x + c * x - s * y, square.center_y + s * x + c * y};
}

bool in_reach(const FrameSquare& square) {
  constexpr double kFarthest = 1e6;
  // NaN fails every comparison.
  return std::abs(square.center_x) <= kFarthest && std::abs(square.center_y) <= kFarthest &&
         square.side > 0 && square.side <= kFarthest && std::abs(square.angle) <= kFarthest;
}

void sample_square(const Image& frame, const FrameSquare& square, int size, Border border, float* out) {
  assert(frame.width > 0 && frame.height > 0 && size >= 1 && size <= kMaxSize);
  assert(in_reach(square));
  const Grid grid = grid_of(square, size);
  const double cell = square.side / size;
  if (cell < 2) return sample(frame, grid, size, border, out);
  const Blocks blocks = needed_blocks(frame, grid, size, static_cast<int>(std::min<double>(cell, kMaxBlock)));
  const Image means = block_means(frame, blocks);
  const double k = blocks.k;
  const Grid coarse = {(grid.x0 + 0.5) / k - 0.5 - blocks.x_first, (grid.y0 + 0.5) / k - 0.5 - blocks.y_first,
                       grid.dx / k, grid.dy / k};
  sample(means, coarse, size, border, out);
}

}  // namespace sinew

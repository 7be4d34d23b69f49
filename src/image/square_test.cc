// Squares of a frame against their definition, computed pixel by pixel.
#include "image/square.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace sinew {
namespace {

constexpr double kRight = std::numbers::pi / 2;

Image noise(int width, int height) {
  Image frame(width, height);
  std::mt19937 random(11);
  for (auto& v : frame.rgb) v = static_cast<std::uint8_t>(random());
  return frame;
}

std::vector<float> sampled(const Image& frame, const FrameSquare& square, int size, Border border) {
  std::vector<float> out(std::size_t{3} * size * size, -1.0F);
  sample_square(frame, square, size, border, out.data());
  return out;
}

double pixel(const Image& frame, int x, int y, int channel, Border border) {
  const bool inside = x >= 0 && y >= 0 && x < frame.width && y < frame.height;
  if (!inside && border == Border::kBlack) return 0;
  return frame.pixel(std::clamp(x, 0, frame.width - 1), std::clamp(y, 0, frame.height - 1))[channel];
}

/// The definition for cells below two pixels.
double expected(const Image& frame, const FrameSquare& square, int size, int i, int j, int channel,
                Border border) {
  const auto at = frame_point(square, (i + 0.5) / size, (j + 0.5) / size);
  const double x = at[0] - 0.5, y = at[1] - 0.5;
  const int left = static_cast<int>(std::floor(x)), above = static_cast<int>(std::floor(y));
  const double fx = x - left, fy = y - above;
  const double upper = (1 - fx) * pixel(frame, left, above, channel, border) +
                       fx * pixel(frame, left + 1, above, channel, border);
  const double lower = (1 - fx) * pixel(frame, left, above + 1, channel, border) +
                       fx * pixel(frame, left + 1, above + 1, channel, border);
  return ((1 - fy) * upper + fy * lower) / 255;
}

TEST(FramePoint, TurnsClockwiseAsSeen) {
  const FrameSquare square = {100, 50, 20, kRight};
  const auto up = frame_point(square, 0.5, 0);  // the middle of the square's upper edge is the frame's right
  EXPECT_NEAR(up[0], 110, 1e-12);
  EXPECT_NEAR(up[1], 50, 1e-12);
  const auto corner = frame_point({100, 50, 20, 0}, 0, 1);
  EXPECT_EQ(corner[0], 90);
  EXPECT_EQ(corner[1], 60);
}

TEST(SampleSquare, IsTheFrameWhereCellsArePixels) {
  const Image frame = noise(40, 30);
  const auto out = sampled(frame, {15, 14, 8, 0}, 8, Border::kBlack);  // pixels 11..18 x 10..17
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 8; ++i) {
      for (int c = 0; c < 3; ++c)
        EXPECT_FLOAT_EQ(out[3 * (8 * j + i) + c], static_cast<float>(frame.pixel(11 + i, 10 + j)[c] / 255.0));
    }
  }
}

/// At any angle and scale below two, with both borders, inside, across the edge and beside the frame.
TEST(SampleSquare, IsBilinear) {
  const Image frame = noise(50, 37);
  for (const Border border : {Border::kBlack, Border::kReplicate}) {
    for (const FrameSquare& square :
         {FrameSquare{25, 18, 20, 0.3}, FrameSquare{3, 35, 41, 2.5}, FrameSquare{25, 18, 45, -1.2},
          FrameSquare{48, -2, 7, kRight}, FrameSquare{400, 300, 30, 1}, FrameSquare{25, 18, 0.01, 0.1}}) {
      const auto out = sampled(frame, square, 24, border);
      double worst = 0;
      for (int j = 0; j < 24; ++j) {
        for (int i = 0; i < 24; ++i) {
          for (int c = 0; c < 3; ++c) {
            const double e = expected(frame, square, 24, i, j, c, border);
            worst = std::max(worst, std::abs(e - double{out[3 * (24 * j + i) + c]}));
          }
        }
      }
      // Weights and sums in float32: a few units of 2^-24 of values up to 1, fractions of 2^-24 x 50 pixels.
      EXPECT_LT(worst, 1e-5) << square.center_x << " " << square.side << " " << square.angle;
    }
  }
}

/// Cells of whole blocks: their means, to the rounding to 8 bits.
TEST(SampleSquare, AveragesWhereCellsAreLarge) {
  const Image frame = noise(120, 90);
  for (const int k : {2, 3, 7}) {
    const int size = 10;
    // Corner on a multiple of k, so that cells and blocks agree.
    const double side = size * k;
    const auto out = sampled(frame, {k * 2 + side / 2, k + side / 2, side, 0}, size, Border::kBlack);
    for (int j = 0; j < size; ++j) {
      for (int i = 0; i < size; ++i) {
        double sum = 0;
        for (int y = 0; y < k; ++y) {
          for (int x = 0; x < k; ++x) sum += frame.pixel((2 + i) * k + x, (1 + j) * k + y)[1];
        }
        EXPECT_NEAR(out[3 * (size * j + i) + 1], sum / (k * k) / 255, 0.51 / 255)
            << k << " " << i << " " << j;
      }
    }
  }
}

/// A plane of brightness is what every filter leaves as it is: cells see the brightness of their middles.
TEST(SampleSquare, LargeTurnedCellsStayInPlace) {
  Image frame(1000, 800);
  for (int y = 0; y < frame.height; ++y) {
    for (int x = 0; x < frame.width; ++x) {
      frame.pixel(x, y)[0] = static_cast<std::uint8_t>(x / 4);
      frame.pixel(x, y)[1] = static_cast<std::uint8_t>(y / 4);
    }
  }
  const FrameSquare square = {510, 390, 470, 0.7};
  const int size = 64;  // cells of 7.3 pixels
  const auto out = sampled(frame, square, size, Border::kReplicate);
  for (int j = 0; j < size; j += 7) {
    for (int i = 0; i < size; i += 5) {
      const auto at = frame_point(square, (i + 0.5) / size, (j + 0.5) / size);
      // x/4 rounded down is half a step of 1/4... (x - 2)/4 on the mean; blocks of 7 keep half a unit.
      EXPECT_NEAR(255.0 * out[3 * (size * j + i)], (at[0] - 2) / 4, 0.8);
      EXPECT_NEAR(255.0 * out[3 * (size * j + i) + 1], (at[1] - 2) / 4, 0.8);
    }
  }
}

TEST(SampleSquare, ThePartialBlocksOfTheEdgeAreMeansOfWhatIsThere) {
  Image frame(10, 10);  // blocks of 4: the last has 2 pixels
  std::fill(frame.rgb.begin(), frame.rgb.end(), std::uint8_t{200});
  for (const Border border : {Border::kBlack, Border::kReplicate}) {
    const auto out = sampled(frame, {6, 6, 12, 0}, 3, border);
    EXPECT_FLOAT_EQ(out[0], 200.0F / 255);
    EXPECT_FLOAT_EQ(out[3 * 8], 200.0F / 255);
  }
}

TEST(SampleSquare, TinyFramesAndFarSquares) {
  Image frame(1, 1);
  frame.rgb = {10, 20, 30};
  for (const double side : {1e-3, 1.0, 192.0, 1e6}) {
    for (const double x : {-1e6, 0.5, 1e6}) {
      const auto replicated = sampled(frame, {x, 0.5, side, 0.4}, 16, Border::kReplicate);
      const auto black = sampled(frame, {x, 0.5, side, 0.4}, 16, Border::kBlack);
      for (std::size_t i = 0; i < replicated.size(); ++i) {
        EXPECT_NEAR(replicated[i], (10.0 + 10.0 * static_cast<double>(i % 3)) / 255, 1e-6);
        EXPECT_GE(black[i], 0);
        EXPECT_LE(black[i], replicated[i] + 1e-6F);
      }
    }
  }
}

TEST(SampleSquare, VeryWideFrames) {
  Image frame(16384, 2);
  std::fill(frame.rgb.begin(), frame.rgb.end(), std::uint8_t{100});
  const auto out = sampled(frame, {8192, 1, 16384, 0}, 192, Border::kBlack);  // cells of 85 pixels
  double sum = 0;
  for (const float v : out) sum += double{v};
  // Two rows of pixels make one row of blocks, which bilinear cells see in two rows at most.
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, 3 * 192 * 100.0 / 255 * 1.001);
}

TEST(InReach, RefusesWhatIsNotFiniteOrTooFar) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(in_reach({5, 5, 3, 1}));
  for (const double bad : {kNan, kInfinity, -kInfinity, 1e7, -1e7}) {
    EXPECT_FALSE(in_reach({bad, 5, 3, 1}));
    EXPECT_FALSE(in_reach({5, bad, 3, 1}));
    EXPECT_FALSE(in_reach({5, 5, bad, 1}));
    EXPECT_FALSE(in_reach({5, 5, 3, bad}));
  }
  EXPECT_FALSE(in_reach({5, 5, 0, 1}));
  EXPECT_FALSE(in_reach({5, 5, -1, 1}));
}

}  // namespace
}  // namespace sinew

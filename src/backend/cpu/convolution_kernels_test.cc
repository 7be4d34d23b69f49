// The convolution kernels of every table that this processor can run, against plain double-precision loops.
#include "backend/cpu/convolution_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/vector_kernels.h"

namespace sinew::cpu {
namespace {

constexpr double kUnit = 0x1p-24;  // half a unit in the last place of f32 near 1
constexpr Rectifier kRectifiers[] = {Rectifier::kNone, Rectifier::kRelu, Rectifier::kRelu6,
                                     Rectifier::kPRelu};

double rectified(Rectifier rectifier, double x, double slope) {
  if (rectifier == Rectifier::kPRelu) return x < 0 ? slope * x : x;
  if (rectifier != Rectifier::kNone && x < 0) return 0;
  return rectifier == Rectifier::kRelu6 && x > 6 ? 6 : x;
}

class ConvolutionKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this processor has no " << to_string(GetParam());
  }
  const VectorKernels& kernels() const { return vector_kernels(GetParam()); }

  /// Exactly `n` numbers: with a sanitizer, a read beyond them is an error.
  std::vector<float> random(std::int64_t n, float scale = 1) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<std::size_t>(n));
    for (float& v : out) v = scale * normal(random_);
    return out;
  }
  std::mt19937 random_{7};
};

TEST_P(ConvolutionKernelsTest, PixelProduct) {
  int turn = 0;
  for (const std::int64_t pixels : {1, 2, 3, 5, 7, 8, 11, 12, 13, 25, 49}) {
    for (const std::int64_t n : {1, 2, 3, 6, 8, 9, 15, 16, 17, 24, 33, 40, 48, 64, 108}) {
      // Windows of `segments` rows of `length` floats out of rows of `width`, one pixel `step` after the
      // other.
      const std::int64_t segments = 1 + turn % 3;
      const std::int64_t length = 1 + turn % 19;
      const std::int64_t step = 1 + turn % 4;
      const std::int64_t width = (pixels - 1) * step + length;
      const Rectifier rectifier = kRectifiers[turn % 4];
      const bool with_residual = turn % 3 != 0;
      ++turn;
      const auto x = random(segments * width);
      const auto w = random(n * segments * length);
      const auto bias = random(n);
      const auto slope = random(n, 0.25F);
      const auto residual = random(pixels * n);
      const Tensor packed = pack_panels({DType::kF32, {n, segments, length}, w.data()}, kernels().lanes);
      std::vector<float> out(static_cast<std::size_t>(pixels * n));
      PixelProduct p;
      p.x = x.data();
      p.pixel_stride = step;
      p.segment_stride = width;
      p.pixels = pixels;
      p.segments = segments;
      p.length = length;
      p.weight = packed.as<float>().data();
      p.n = n;
      p.last_panel = panels_for(n, kernels().lanes);
      p.finish = {bias.data(), slope.data(), rectifier};
      p.residual = with_residual ? residual.data() : nullptr;
      p.out = out.data();
      kernels().pixel_product(p);
      for (std::int64_t at = 0; at < pixels * n; ++at) {
        const std::int64_t row = at % n;
        double sum = bias[static_cast<std::size_t>(row)];
        if (with_residual) sum += residual[static_cast<std::size_t>(at)];
        double size = std::fabs(sum) + 4;
        for (std::int64_t k = 0; k < segments * length; ++k) {
          const std::int64_t from = k / length * width + at / n * step + k % length;
          const double term = static_cast<double>(x[static_cast<std::size_t>(from)]) *
                              w[static_cast<std::size_t>(row * segments * length + k)];
          sum += term;
          size += std::fabs(term);
        }
        // k products and sums, two more sums and the slope's product, which is below 1.25 in size.
        const double bound = 1.25 * (static_cast<double>(segments * length) + 4) * kUnit * size;
        ASSERT_NEAR(out[static_cast<std::size_t>(at)],
                    rectified(rectifier, sum, slope[static_cast<std::size_t>(row)]), bound)
            << pixels << " pixels, " << n << " rows of " << segments << " x " << length << ", element " << at;
      }
    }
  }
}

struct RowShape {
  std::int64_t columns, window_rows, window_columns, stride, pad_left, pad_right;
};

TEST_P(ConvolutionKernelsTest, DepthwiseRow) {
  const std::vector<RowShape> shapes = {{1, 3, 3, 1, 1, 1},  {2, 5, 5, 1, 2, 2},  {7, 5, 5, 1, 2, 2},
                                        {12, 5, 5, 2, 1, 2}, {13, 3, 3, 2, 1, 1}, {24, 3, 3, 1, 1, 1},
                                        {30, 5, 5, 1, 2, 2}, {31, 3, 3, 2, 0, 1}, {40, 5, 5, 2, 1, 2},
                                        {20, 2, 7, 3, 3, 2}, {33, 1, 1, 1, 0, 0}};
  int turn = 0;
  for (const RowShape& s : shapes) {
    for (const std::int64_t channels : {1, 3, 4, 7, 8, 12, 16, 17, 24, 31, 32, 144}) {
      const Rectifier rectifier = kRectifiers[turn % 4];
      const std::int64_t first_row = turn++ % s.window_rows;  // the rows above it lie outside
      const std::int64_t rows = s.window_rows - first_row;
      const std::int64_t out_columns =
          (s.columns + s.pad_left + s.pad_right - s.window_columns) / s.stride + 1;
      const auto x = random(rows * s.columns * channels);
      const auto w = random(s.window_rows * s.window_columns * channels);
      const auto bias = random(channels);
      const auto slope = random(channels, 0.25F);
      const Tensor packed = pack_channel_blocks(
          {DType::kF32, {s.window_rows, s.window_columns, channels}, w.data()}, kernels().lanes);
      std::vector<float> out(static_cast<std::size_t>(out_columns * channels));
      DepthwiseRow d;
      d.x = x.data();
      d.columns = s.columns;
      d.channels = channels;
      d.first_row = first_row;
      d.rows = rows;
      d.window_rows = s.window_rows;
      d.window_columns = s.window_columns;
      d.stride = s.stride;
      d.pad_left = s.pad_left;
      d.weight = packed.as<float>().data();
      d.finish = {bias.data(), slope.data(), rectifier};
      d.out_columns = out_columns;
      d.out = out.data();
      kernels().depthwise_row(d);
      for (std::int64_t at = 0; at < out_columns * channels; ++at) {
        const std::int64_t c = at % channels;
        double sum = bias[static_cast<std::size_t>(c)];
        double size = std::fabs(sum);
        for (std::int64_t tap = 0; tap < rows * s.window_columns; ++tap) {
          const std::int64_t column = at / channels * s.stride - s.pad_left + tap % s.window_columns;
          if (column < 0 || column >= s.columns) continue;
          const std::int64_t pixel = tap / s.window_columns * s.columns + column;
          const double term =
              static_cast<double>(x[static_cast<std::size_t>(pixel * channels + c)]) *
              w[static_cast<std::size_t>((first_row * s.window_columns + tap) * channels + c)];
          sum += term;
          size += std::fabs(term);
        }
        const double bound = 1.25 * (static_cast<double>(rows * s.window_columns) + 4) * kUnit * size;
        ASSERT_NEAR(out[static_cast<std::size_t>(at)],
                    rectified(rectifier, sum, slope[static_cast<std::size_t>(c)]), bound)
            << s.columns << " columns, window " << s.window_rows << "x" << s.window_columns << ", stride "
            << s.stride << ", " << channels << " channels, element " << at;
      }
    }
  }
}

/// How pixels are cut into calls, and so how many threads there are, must not change a bit.
TEST_P(ConvolutionKernelsTest, BitsDoNotDependOnTheCut) {
  for (const std::int64_t n : {5, 24, 64, 112}) {
    const std::int64_t pixels = 50;
    const std::int64_t k = 96;
    const auto x = random(pixels * k);
    const auto w = random(n * k);
    const auto bias = random(n);
    const Tensor packed = pack_panels({DType::kF32, {n, k}, w.data()}, kernels().lanes);
    std::vector<float> whole(static_cast<std::size_t>(pixels * n));
    std::vector<float> cut(whole.size());
    PixelProduct p;
    p.x = x.data();
    p.pixel_stride = p.length = k;
    p.pixels = pixels;
    p.weight = packed.as<float>().data();
    p.n = n;
    p.last_panel = panels_for(n, kernels().lanes);
    p.finish.bias = bias.data();
    p.out = whole.data();
    kernels().pixel_product(p);
    for (std::int64_t first = 0, count = 1; first < pixels; first += count, ++count) {
      PixelProduct part = p;
      part.x += first * k;
      part.out = cut.data() + first * n;
      part.pixels = std::min(count, pixels - first);
      kernels().pixel_product(part);
    }
    EXPECT_EQ(whole, cut) << n;
    std::ranges::fill(cut, 0.0F);
    for (PixelProduct part = p; part.first_panel < p.last_panel; ++part.first_panel) {
      part.last_panel = part.first_panel + 1;
      part.out = cut.data();
      kernels().pixel_product(part);
    }
    EXPECT_EQ(whole, cut) << n;
  }
}

TEST_P(ConvolutionKernelsTest, NotANumberStaysOne) {
  for (const Rectifier rectifier : kRectifiers) {
    const std::vector<float> x = {std::nanf("")};
    const std::vector<float> ones(32, 1.0F);
    const Tensor packed = pack_panels({DType::kF32, {32, 1}, ones.data()}, kernels().lanes);
    std::vector<float> out(32);
    PixelProduct p;
    p.x = x.data();
    p.pixels = p.length = p.pixel_stride = 1;
    p.weight = packed.as<float>().data();
    p.n = 32;
    p.last_panel = panels_for(32, kernels().lanes);
    p.finish = {ones.data(), ones.data(), rectifier};
    p.out = out.data();
    kernels().pixel_product(p);
    for (const float v : out) EXPECT_TRUE(std::isnan(v)) << to_string(rectifier);
  }
}

TEST(ConvolutionPacking, VectorsOverlapRatherThanReachBeyond) {
  EXPECT_EQ(vectors_for(24, 16), 2);
  EXPECT_EQ(vector_start(1, 24, 16), 8);
  EXPECT_EQ(vector_start(0, 6, 16), 0);
  EXPECT_EQ(panels_for(5, 16), 1);
  EXPECT_EQ(panels_for(48, 16), 1);
  EXPECT_EQ(panels_for(80, 16), 2);
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};  // [3, 2]
  const Tensor panels = pack_panels({DType::kF32, {3, 2}, w.data()}, 2);
  EXPECT_EQ(std::vector<float>(panels.as<float>().begin(), panels.as<float>().end()),
            (std::vector<float>{1, 3, 3, 5, 2, 4, 4, 6}));
  const Tensor blocks = pack_channel_blocks({DType::kF32, {2, 3}, w.data()}, 2);
  EXPECT_EQ(std::vector<float>(blocks.as<float>().begin(), blocks.as<float>().end()),
            (std::vector<float>{1, 2, 4, 5, 2, 3, 5, 6}));
  const Tensor narrow = pack_channel_blocks({DType::kF32, {2, 3}, w.data()}, 4);
  EXPECT_EQ(std::vector<float>(narrow.as<float>().begin(), narrow.as<float>().end()),
            (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0}));
}

INSTANTIATE_TEST_SUITE_P(Isa, ConvolutionKernelsTest,
                         testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512));

}  // namespace
}  // namespace sinew::cpu

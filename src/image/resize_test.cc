#include "image/resize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/cpu.h"
#include "base/error.h"
#include "base/test_paths.h"
#include "image/image_test_support.h"
#include "image/resample_kernels.h"
#include "io/safetensors.h"

namespace sinew {
namespace {

using test_images::naive_resize;
using test_images::noise;

TEST(Resize, EqualsPillowOnEveryGolden) {
  const auto path = shared_file("golden/hamer/pillow_resize.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto golden = open_safetensors(*path);
  int cases = 0;
  for (; golden->find(fmt::format("case{}.out", cases)) != nullptr; ++cases) {
    const auto prefix = fmt::format("case{}.", cases);
    const int number = static_cast<int>(test_images::numbers(*golden, prefix + "src")[0]);
    const Image source = test_images::picture(*golden, fmt::format("img{}", number));
    const auto box = test_images::numbers(*golden, prefix + "box");
    const Image expected = test_images::picture(*golden, prefix + "out");
    const Image out =
        resize_bilinear(source, expected.width, expected.height, {box[0], box[1], box[2], box[3]});
    EXPECT_EQ(out.rgb, expected.rgb) << prefix;
  }
  EXPECT_EQ(cases, 14);
}

TEST(Resize, EqualsTheNaiveFormOnRandomBoxes) {
  std::mt19937 random(2);
  const auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int i = 0; i < 150; ++i) {
    const Image source =
        noise(1 + static_cast<int>(random() % 90), 1 + static_cast<int>(random() % 70), random());
    const int width = 1 + static_cast<int>(random() % 60);
    const int height = 1 + static_cast<int>(random() % 60);
    ResizeBox box{real(0, source.width), real(0, source.height), 0, 0};
    box.x1 = real(box.x0, source.width);
    box.y1 = real(box.y0, source.height);
    if (i % 3 == 0) box = {0, 0, static_cast<double>(source.width), static_cast<double>(source.height)};
    const Image expected =
        naive_resize(source, width, height, static_cast<float>(box.x0), static_cast<float>(box.y0),
                     static_cast<float>(box.x1), static_cast<float>(box.y1));
    EXPECT_EQ(resize_bilinear(source, width, height, box).rgb, expected.rgb) << i;
  }
}

TEST(Resize, CopiesAndCrops) {
  const Image source = noise(40, 30);
  EXPECT_EQ(resize_bilinear(source, 40, 30).rgb, source.rgb);
  const Image part = resize_bilinear(source, 8, 5, {3, 4, 11, 9});
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 8; ++x) EXPECT_EQ(part.pixel(x, y)[1], source.pixel(x + 3, y + 4)[1]);
  }
}

TEST(Resize, KeepsAFlatColour) {
  Image flat(123, 45);
  for (std::size_t i = 0; i < flat.rgb.size(); ++i) flat.rgb[i] = i % 3 == 0 ? 255 : i % 3 == 1 ? 0 : 77;
  const Image out = resize_bilinear(flat, 50, 200);
  for (int i = 0; i < 50 * 200; ++i) {
    EXPECT_EQ(out.rgb[3 * i], 255);
    EXPECT_EQ(out.rgb[3 * i + 1], 0);
    EXPECT_EQ(out.rgb[3 * i + 2], 77);
  }
}

TEST(Resize, RefusesImpossibleRequests) {
  const Image source = noise(10, 10);
  const double nan = std::nan("");
  for (const ResizeBox& box : {ResizeBox{-1, 0, 5, 5},
                               {0, -0.5, 5, 5},
                               {0, 0, 10.5, 5},
                               {0, 0, 5, 11},
                               {5, 0, 4, 5},
                               {0, 5, 5, 4},
                               {nan, 0, 5, 5},
                               {0, 0, 5, nan}}) {
    EXPECT_THROW(resize_bilinear(source, 4, 4, box), Error);
  }
  EXPECT_THROW(resize_bilinear(source, 0, 4), Error);
  EXPECT_THROW(resize_bilinear(source, 4, -1), Error);
  EXPECT_THROW(resize_bilinear(source, 1 << 30, 4), Error);
  EXPECT_THROW(resize_bilinear(Image(), 4, 4), Error);
  EXPECT_NO_THROW(resize_bilinear(source, 4, 4, {10, 10, 10, 10}));  // an empty box is allowed
}

TEST(ResampleKernels, Avx2EqualsPlain) {
  if (best_isa() < Isa::kAvx2) GTEST_SKIP() << "this processor has no AVX2";
  constexpr std::uint8_t kPad[3] = {250, 3, 124};
  for (const int width : {1, 2, 5, 17, 333, 1000}) {
    for (const int outputs : {1, 7, 192}) {
      const Image source = noise(width, 3, static_cast<unsigned>(width));
      AxisFilter columns = triangle_filter(width + 20, 0, static_cast<float>(width + 20), outputs);
      place_in_frame(columns, -10, width);
      const kernels::HorizontalPass plain(columns, kPad, false);
      const kernels::HorizontalPass fast(columns, kPad, true);
      for (int y = 0; y < 3; ++y) {
        std::vector<std::uint8_t> a(3 * outputs + 1);
        std::vector<std::uint8_t> b(a.size());
        plain.run(source, y, a.data());
        fast.run(source, y, b.data());
        a.pop_back();
        b.pop_back();
        EXPECT_EQ(a, b);
        const std::uint8_t* lines[3] = {source.pixel(0, 0), source.pixel(0, 1), source.pixel(0, 2)};
        const std::int32_t weights[3] = {1234567, 4194304 - 1234567 - 99, 99};
        const std::size_t bytes = std::min(a.size(), std::size_t{3} * width);
        for (int count = 0; count <= 3; ++count) {
          const kernels::VerticalRow row{lines, weights, count, bytes};
          kernels::vertical(row, a.data(), false);
          kernels::vertical(row, b.data(), true);
          EXPECT_EQ(a, b) << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sinew

#include "image/crop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/test_paths.h"
#include "image/image_test_support.h"
#include "image/resize.h"
#include "io/safetensors.h"

namespace sinew {
namespace {

using test_images::mirrored;
using test_images::noise;

/// The crop in its plain form: paste into a padded square, resize all of it, mirror.
Image plain_pillow(const Image& frame, int x0, int y0, int side, const std::uint8_t pad[3], bool is_right) {
  Image square(side, side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int fx = x0 + x;
      const int fy = y0 + y;
      const bool inside = fx >= 0 && fy >= 0 && fx < frame.width && fy < frame.height;
      std::memcpy(square.pixel(x, y), inside ? frame.pixel(fx, fy) : pad, 3);
    }
  }
  const Image out = resize_bilinear(square, kCropSide, kCropSide);
  return is_right ? out : mirrored(out);
}

std::vector<std::uint8_t> center_columns(const Image& square) {
  std::vector<std::uint8_t> out;
  for (int y = 0; y < square.height; ++y) {
    const std::uint8_t* from = square.pixel((kCropSide - kCropColumns) / 2, y);
    out.insert(out.end(), from, from + std::size_t{3} * kCropColumns);
  }
  return out;
}

TEST(CropPillow, EqualsEveryGolden) {
  const auto path = shared_file("golden/hamer/pillow_resize.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto golden = open_safetensors(*path);
  const Image frame = test_images::picture(*golden, "frame");
  int cases = 0;
  for (; golden->find(fmt::format("square{}.out", cases)) != nullptr; ++cases) {
    const auto prefix = fmt::format("square{}.", cases);
    const auto square = test_images::numbers(*golden, prefix + "x0y0S");
    const auto colour = test_images::numbers(*golden, prefix + "pad");
    const std::uint8_t pad[3] = {static_cast<std::uint8_t>(colour[0]), static_cast<std::uint8_t>(colour[1]),
                                 static_cast<std::uint8_t>(colour[2])};
    const bool is_right = test_images::numbers(*golden, prefix + "right")[0] != 0;
    const Crop out = crop_pillow_square(frame, static_cast<int>(square[0]), static_cast<int>(square[1]),
                                        static_cast<int>(square[2]), pad, is_right);
    EXPECT_EQ(out.u8, test_images::picture(*golden, prefix + "out").rgb) << prefix;
  }
  EXPECT_EQ(cases, 5);
}

TEST(CropPillow, EqualsPasteAndResize) {
  std::mt19937 random(4);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 120; ++i) {
    const Image frame = noise(between(1, 200), between(1, 200), random());
    const int side = i < 60 ? between(1, 40) : i < 115 ? between(40, 500) : between(1000, 3000);
    int x0 = between(-side, frame.width);
    int y0 = between(-side, frame.height);
    if (i % 10 == 0) x0 = between(-100000, 100000);  // far outside
    const std::uint8_t pad[3] = {static_cast<std::uint8_t>(random()), static_cast<std::uint8_t>(random()),
                                 static_cast<std::uint8_t>(random())};
    const bool is_right = i % 2 == 0;
    const Image expected = plain_pillow(frame, x0, y0, side, pad, is_right);
    EXPECT_EQ(crop_pillow_square(frame, x0, y0, side, pad, is_right, true).u8, expected.rgb)
        << i << " side " << side;
    EXPECT_EQ(crop_pillow_square(frame, x0, y0, side, pad, is_right).u8, center_columns(expected)) << i;
  }
}

TEST(CropPillow, EqualsTheNaiveResize) {
  const Image frame = noise(90, 90, 5);
  for (const int side : {1, 2, 7, 64, 90}) {
    Image square(side, side);
    for (int y = 0; y < side; ++y) std::memcpy(square.pixel(0, y), frame.pixel(0, y), std::size_t{3} * side);
    const auto extent = static_cast<float>(side);
    const Image expected =
        test_images::naive_resize(square, kCropColumns, kCropSide, extent / 8, 0, extent * 7 / 8, extent);
    EXPECT_EQ(crop_pillow_square(frame, 0, 0, side, kGreyPad, true).u8, expected.rgb) << side;
  }
}

TEST(CropPillow, RoundsCentreAndSideHalfUp) {
  const Image frame = noise(100, 100);
  CropGeometry geometry;
  geometry.center_x = 50;
  geometry.center_y = 40.5F;
  geometry.box_size = 20.5;  // side 21, x0 = floor(50 - 10.5 + 0.5) = 40, y0 = floor(40.5 - 10.5 + 0.5) = 30
  EXPECT_EQ(crop_pillow(frame, geometry, true).u8, crop_pillow_square(frame, 40, 30, 21, kGreyPad, true).u8);
  geometry.box_size = 0.2;
  EXPECT_EQ(crop_pillow(frame, geometry, true).u8, crop_pillow_square(frame, 50, 40, 1, kGreyPad, true).u8);
}

TEST(CropPillow, LeftIsTheMirrorOfRightOfTheMirror) {
  const Image frame = noise(300, 200, 6);
  // Powers of two: all weights are exact, so that summing them the other way round changes nothing.
  for (const int side : {1, 2, 64, 128, 256, 512, 1024}) {
    const int x0 = 37 - side / 3;
    const Crop left = crop_pillow_square(frame, x0, 11, side, kGreyPad, false);
    const Crop right = crop_pillow_square(mirrored(frame), 300 - x0 - side, 11, side, kGreyPad, true);
    EXPECT_EQ(left.u8, right.u8) << side;
    EXPECT_EQ(left.u8, mirrored(to_image(crop_pillow_square(frame, x0, 11, side, kGreyPad, true))).rgb)
        << side;
  }
  for (const int side : {77, 131, 333}) {
    const Crop left = crop_pillow_square(frame, 37, 11, side, kGreyPad, false);
    const Crop right = crop_pillow_square(mirrored(frame), 300 - 37 - side, 11, side, kGreyPad, true);
    for (std::size_t i = 0; i < left.u8.size(); ++i) ASSERT_NEAR(left.u8[i], right.u8[i], 1) << side;
  }
}

TEST(CropPillow, TakesTheLargestSquareAndRefusesMore) {
  const Image frame = noise(64, 48);
  const Crop out = crop_pillow_square(frame, -40000, -30000, kMaxSquareSide, kGreyPad, true);
  EXPECT_EQ(std::vector<std::uint8_t>(out.u8.begin(), out.u8.begin() + 3),
            (std::vector<std::uint8_t>{124, 116, 104}));
  EXPECT_THROW(crop_pillow_square(frame, 0, 0, kMaxSquareSide + 1, kGreyPad, true), Error);
  EXPECT_THROW(crop_pillow_square(frame, 0, 0, 0, kGreyPad, true), Error);
  EXPECT_THROW(crop_pillow_square(Image(), 0, 0, 5, kGreyPad, true), Error);
  CropGeometry geometry;
  geometry.center_x = std::numeric_limits<float>::infinity();
  geometry.box_size = 10;
  EXPECT_THROW(crop_pillow(frame, geometry, true), Error);
  EXPECT_THROW(crop_opencv(frame, geometry, true), Error);
}

struct OpenCvCase {
  CropGeometry geometry;
  bool is_right = true;
  Image frame;
};

OpenCvCase load_case(const Checkpoint& golden, int number) {
  const auto prefix = fmt::format("case{}.", number);
  const auto box = test_images::numbers(golden, prefix + "box");
  OpenCvCase out;
  out.is_right = test_images::numbers(golden, prefix + "right")[0] != 0;
  out.geometry = crop_geometry({box[0], box[1], box[2], box[3], out.is_right}, 2.0);
  out.frame = test_images::picture(golden, number < 4 ? "img.small.bgr" : "img.big.bgr", true);
  return out;
}

TEST(CropOpenCv, EqualsEveryGolden) {
  const auto path = shared_file("golden/hamer/preprocess_cv2.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto golden = open_safetensors(*path);
  for (int number = 0; number < 7; ++number) {
    const auto prefix = fmt::format("case{}.", number);
    const OpenCvCase c = load_case(*golden, number);
    const auto center = golden->get(prefix + "center").as<float>();
    EXPECT_EQ(c.geometry.center_x, center[0]);
    EXPECT_EQ(c.geometry.center_y, center[1]);
    EXPECT_EQ(c.geometry.box_size, test_images::numbers(*golden, prefix + "box_size")[0]);

    const Crop full = crop(CropKind::kOpenCV, c.frame, c.geometry, c.is_right, true);
    ASSERT_EQ(full.is_u8(), number < 4);
    if (full.is_u8()) {
      EXPECT_EQ(full.u8, test_images::picture(*golden, prefix + "patch.rgb.u8").rgb) << prefix;
      EXPECT_EQ(crop_opencv(c.frame, c.geometry, c.is_right).u8, center_columns(to_image(full)));
    } else {
      const auto expected = golden->get(prefix + "patch.rgb.f32").as<float>();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), full.f32.begin())) << prefix;
      const Crop narrow = crop_opencv(c.frame, c.geometry, c.is_right);
      for (int y = 0; y < kCropSide; ++y) {
        EXPECT_TRUE(std::equal(&full.f32[3 * (y * kCropSide + 32)],
                               &full.f32[3 * (y * kCropSide + 32)] + 3 * kCropColumns,
                               &narrow.f32[static_cast<std::size_t>(3) * y * kCropColumns]));
      }
    }
    std::vector<float> chw(full.is_u8() ? full.u8.size() : full.f32.size());
    normalise(full, chw.data());
    const auto sums = test_images::numbers(*golden, prefix + "norm.sum");
    for (int channel = 0; channel < 3; ++channel) {
      double sum = 0;
      for (int i = 0; i < kCropSide * kCropSide; ++i) sum += chw[channel * kCropSide * kCropSide + i];
      EXPECT_NEAR(sum, sums[channel], 1e-7 * kCropSide * kCropSide) << prefix;
    }
    if (number == 0) {
      const auto expected = golden->get("case0.norm").as<float>();
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), chw.begin()));
    }
  }
}

/// Steps 3 to 6 written down plainly: mirror, blur the whole frame, warp by the closed form of the map.
std::vector<double> naive_opencv(Image frame, const CropGeometry& geometry, bool is_right) {
  double cx = geometry.center_x;
  if (!is_right) {
    frame = mirrored(frame);
    cx = frame.width - cx - 1;
  }
  const int w = frame.width;
  const int h = frame.height;
  std::vector<double> pixels(frame.rgb.begin(), frame.rgb.end());
  const double shrink = geometry.box_size / 256 / 2;
  if (shrink > 1.1) {
    const double sigma = (shrink - 1) / 2;
    const int radius = static_cast<int>(std::floor(4 * sigma + 0.5));
    double total = 0;
    for (int k = -radius; k <= radius; ++k) total += std::exp(-k * k / (2 * sigma * sigma));
    for (const bool along_rows : {false, true}) {
      const std::vector<double> in = pixels;
      for (int y = 0; y < h; ++y) {
        for (int x = 0; x < w; ++x) {
          for (int c = 0; c < 3; ++c) {
            double sum = 0;
            for (int k = -radius; k <= radius; ++k) {
              const int fx = along_rows ? std::clamp(x + k, 0, w - 1) : x;
              const int fy = along_rows ? y : std::clamp(y + k, 0, h - 1);
              sum += in[3 * (fy * w + fx) + c] * std::exp(-k * k / (2 * sigma * sigma)) / total;
            }
            pixels[3 * (y * w + x) + c] = sum;
          }
        }
      }
    }
  }
  const auto half = static_cast<float>(geometry.box_size / 2);
  const double x0 = static_cast<float>(cx);
  const double y0 = geometry.center_y;
  const double sx = 128 / (static_cast<float>(cx + half) - x0);
  const double sy = 128 / (static_cast<float>(y0 + half) - y0);
  std::vector<double> out;
  for (int row = 0; row < kCropSide; ++row) {
    for (int column = 0; column < kCropSide; ++column) {
      const auto fixed = [](double v) { return static_cast<int>(std::nearbyint(v * 1024)); };
      const int px = (fixed(-(128 - sx * x0) / sx) + 16 + fixed(column / sx)) >> 5;
      const int py = (fixed(row / sy - (128 - sy * y0) / sy) + 16) >> 5;
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (int tap = 0; tap < 4; ++tap) {
          const int x = (px >> 5) + (tap & 1);
          const int y = (py >> 5) + (tap >> 1);
          const int fx = (tap & 1) != 0 ? px & 31 : 32 - (px & 31);
          const int fy = tap >> 1 != 0 ? py & 31 : 32 - (py & 31);
          if (x >= 0 && y >= 0 && x < w && y < h) sum += pixels[3 * (y * w + x) + c] * fx * fy / 1024;
        }
        out.push_back(shrink > 1.1 ? sum : std::floor(sum + 0.5));
      }
    }
  }
  return out;
}

TEST(CropOpenCv, EqualsTheNaiveForm) {
  const Image frame = noise(230, 170, 8);
  const HandBox boxes[] = {{50.3, 40.7, 110.2, 120.9}, {-30, 100, 60, 220},
                           {180, -20, 240, 33},        {3, 3, 11, 9},
                           {-200, -150, 400, 300},     {10, 20, 330, 300}};
  for (const HandBox& box : boxes) {
    for (const bool is_right : {true, false}) {
      const CropGeometry geometry = crop_geometry(box, 2.0);
      const Crop out = crop_opencv(frame, geometry, is_right, true);
      const std::vector<double> expected = naive_opencv(frame, geometry, is_right);
      ASSERT_EQ(expected.size(), out.is_u8() ? out.u8.size() : out.f32.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        // float32 rounding of values up to 255 is 8e-6
        ASSERT_NEAR(out.is_u8() ? out.u8[i] : out.f32[i], expected[i], out.is_u8() ? 0 : 1e-5)
            << box.x1 << " at " << i;
      }
    }
  }
}

TEST(CropOpenCv, IsBlackBesideTheFrameAndRefusesVanishingSquares) {
  const Image frame = noise(64, 64);
  for (const double size : {20.0, 2000.0}) {
    CropGeometry geometry;
    geometry.center_x = 9000;
    geometry.center_y = -8000;
    geometry.box_size = size;
    for (const auto v : to_image(crop_opencv(frame, geometry, false)).rgb) ASSERT_EQ(v, 0);
  }
  CropGeometry geometry;
  geometry.center_x = 60;
  geometry.center_y = 60;
  geometry.box_size = 1e-9;
  EXPECT_THROW(crop_opencv(frame, geometry, true), Error);
  geometry.box_size = kMaxSquareSide;
  EXPECT_FALSE(crop_opencv(frame, geometry, true).is_u8());
}

TEST(CropOpenCv, BlursFromTheDocumentedSizeOn) {
  const Image frame = noise(700, 700);
  CropGeometry geometry;
  geometry.center_x = 350;
  geometry.center_y = 350;
  geometry.box_size = 563.2;
  EXPECT_TRUE(crop_opencv(frame, geometry, true).is_u8());
  geometry.box_size = 563.3;
  EXPECT_FALSE(crop_opencv(frame, geometry, true).is_u8());
}

TEST(CropGeometry, TakesTheLargerOfHeightAndFourThirdsOfWidth) {
  const CropGeometry wide = crop_geometry({10, 20, 70, 50}, 2.0);
  EXPECT_FLOAT_EQ(wide.center_x, 40);
  EXPECT_FLOAT_EQ(wide.center_y, 35);
  EXPECT_NEAR(wide.box_size, 160, 1e-4);
  EXPECT_NEAR(crop_geometry({10, 20, 40, 120}, 2.5).box_size, 250, 1e-4);
}

std::string message_of(const HandBox& box) {
  try {
    check_box(box, 640, 480);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(CheckBox, NamesTheNumbersAndTheExpectation) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(message_of({-5, -5, 1, 1}), "accepted");
  EXPECT_EQ(message_of({0, 0, 640, 480}), "accepted");
  for (const HandBox& box :
       {HandBox{nan, 0, 5, 5}, {0, nan, 5, 5}, {0, 0, infinity, 5}, {0, 0, 5, -infinity}}) {
    EXPECT_THAT(message_of(box), testing::HasSubstr("finite"));
  }
  EXPECT_THAT(message_of({10, 10, 10, 20}), testing::HasSubstr("x 10 to 10"));
  EXPECT_THAT(message_of({10, 30, 20, 20}), testing::HasSubstr("y1 < y2"));
  for (const HandBox& box : {HandBox{640, 0, 700, 50}, {-50, 0, 0, 50}, {0, 480, 50, 500}, {0, -50, 50, 0}}) {
    EXPECT_THAT(message_of(box), testing::HasSubstr("640 x 480"));
  }
  EXPECT_THROW(crop_geometry({0, 0, 5, 5}, 0), Error);
  EXPECT_THROW(crop_geometry({0, 0, 5, 5}, nan), Error);
  EXPECT_THROW(crop_geometry({0, nan, 5, 5}, 2), Error);
  EXPECT_THROW(crop_geometry({0, 0, 5, 40000}, 2), Error);
  EXPECT_THROW(crop_geometry({-1e300, 0, 1e300, 5}, 2), Error);
}

TEST(Normalise, RoundTripsEveryPixelValue) {
  Crop all;
  all.rows = 16;
  all.columns = 16;
  for (int u = 0; u < 256; ++u) all.u8.insert(all.u8.end(), 3, static_cast<std::uint8_t>(u));
  std::vector<float> chw(all.u8.size());
  std::vector<std::uint8_t> back(all.u8.size());
  std::vector<std::uint8_t> expected(all.u8.size());
  normalise(all, chw.data());
  to_chw_u8(all, expected.data());
  denormalise_exact(chw.data(), 16, 16, back.data());
  EXPECT_EQ(back, expected);
  // The float path of a crop with the same values is the same arithmetic.
  Crop blurred = all;
  blurred.f32.assign(all.u8.begin(), all.u8.end());
  std::vector<float> again(chw.size());
  normalise(blurred, again.data());
  EXPECT_EQ(again, chw);
  // NumPy 2 computes in double.
  for (std::size_t i = 0; i < chw.size(); ++i) {
    const std::size_t c = i / 256;
    chw[i] = static_cast<float>((expected[i] - 255.0 * kImageMean[c]) / (255.0 * kImageStd[c]));
  }
  denormalise_exact(chw.data(), 16, 16, back.data());
  EXPECT_EQ(back, expected);
}

TEST(Normalise, RefusesWhatIsNoPixel) {
  Crop one;
  one.rows = 1;
  one.columns = 2;
  one.u8 = {1, 2, 3, 4, 5, 6};
  std::vector<float> chw(6);
  std::vector<std::uint8_t> out(6);
  for (const float bad : {0.0F, 100.0F, -50.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    normalise(one, chw.data());
    chw[3] = bad;
    try {
      denormalise_exact(chw.data(), 1, 2, out.data());
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      EXPECT_THAT(error.what(), testing::HasSubstr("channel 1 row 0 column 1"));
    }
  }
}

}  // namespace
}  // namespace sinew

#include "hand/sheet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "hand/capsule_model.h"
#include "hand/rasterise.h"

namespace sinew {
namespace {

constexpr int kSide = 128;

/// Told apart everywhere: red grows to the right, green downwards.
Image ramp(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.pixel(x, y)[0] = static_cast<std::uint8_t>(x * 255 / width);
      image.pixel(x, y)[1] = static_cast<std::uint8_t>(y * 255 / height);
      image.pixel(x, y)[2] = 40;
    }
  }
  return image;
}

Image panel(const Image& sheet, int number, int side) {
  Image out(side, side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      std::copy_n(sheet.pixel(number * (side + kSheetGap) + x, y), 3, out.pixel(x, y));
    }
  }
  return out;
}

std::size_t count_differences(const Image& a, const Image& b, int more_than = 0) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i)
    different += std::abs(a.rgb[i] - b.rgb[i]) > more_than ? 1 : 0;
  return different;
}

TEST(Sheet, HasFourPanels) {
  const HandModel model(capsule_model(), "test");
  const Image frame = ramp(320, 240);
  const HandResult result = capsule_result(model, true);
  const Image sheet = draw_sheet(frame, result, &model, {kSide, 1});
  EXPECT_EQ(sheet.width, 4 * kSide + 3 * kSheetGap);
  EXPECT_EQ(sheet.height, kSide);
  const Image photo = panel(sheet, 0, kSide);
  const Image overlay = panel(sheet, 1, kSide);
  const Image side = panel(sheet, 2, kSide);
  const Image skeleton = panel(sheet, 3, kSide);
  // The square goes from (32, 0) on, two frame pixels a panel pixel; below the frame (row 120) it is grey.
  for (const auto& [x, y] : {std::pair{1, 1}, std::pair{64, 40}, std::pair{126, 118}}) {
    EXPECT_NEAR(photo.pixel(x, y)[0], (32 + 2 * x + 0.5) * 255 / 320, 1.5);
    EXPECT_NEAR(photo.pixel(x, y)[1], (2 * y + 0.5) * 255 / 240, 1.5);
  }
  EXPECT_EQ(photo.pixel(64, 121)[0], kGreyPad[0]);
  EXPECT_NE(photo.pixel(64, 118)[0], kGreyPad[0]);
  // The mesh covers the palm, not the corners.
  EXPECT_GT(count_differences(photo, overlay), 3U * 1000);
  EXPECT_EQ(overlay.pixel(2, 2)[0], photo.pixel(2, 2)[0]);
  EXPECT_EQ(side.pixel(2, 2)[0], 255);
  EXPECT_LT(std::ranges::min(side.rgb), 200);
  EXPECT_EQ(skeleton.pixel(2, 2)[1], photo.pixel(2, 2)[1] * 9 / 20) << "dimmed";
  for (int y = 0; y < kSide; ++y) EXPECT_EQ(sheet.pixel(kSide + 1, y)[1], 255) << "the gap is white";
}

/// What is drawn of the mesh lies where the joints are drawn.
TEST(Sheet, MeshAndSkeletonLieOverEachOther) {
  const HandModel model(capsule_model(), "test");
  const HandResult result = capsule_result(model, true);
  Image frame(320, 240);
  const Image sheet = draw_sheet(frame, result, &model, {256, 1});
  const Image overlay = panel(sheet, 1, 256);
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const bool is_tip = i > 0 && i % 4 == 0;  // on the outline
    if (is_tip) continue;
    const auto x = static_cast<int>(std::lround(result.joints_2d[i][0] - 32));
    const auto y = static_cast<int>(std::lround(result.joints_2d[i][1]));
    EXPECT_GT(overlay.pixel(x, y)[2], 60) << "joint " << i;
    const Image skeleton = panel(sheet, 3, 256);
    EXPECT_NE(skeleton.pixel(x, y)[0] + skeleton.pixel(x, y)[1], 0) << "joint " << i;
  }
}

TEST(Sheet, MirroredHandsGiveMirroredPanels) {
  const HandModel model(capsule_model(), "test");
  const Image frame = ramp(320, 240);
  const Image right = draw_sheet(frame, capsule_result(model, true), &model, {kSide, 1});
  const Image left = draw_sheet(mirrored_image(frame), capsule_result(model, false), &model, {kSide, 1});
  for (int i = 0; i < 4; ++i) {
    const Image a = mirrored_image(panel(right, i, kSide));
    const Image b = panel(left, i, kSide);
    if (i == 2) {
      EXPECT_EQ(a.rgb, b.rgb) << "rendered on white: to the bit";
    } else {
      // The resampler's sums are rounded, the lines of draw.h too.
      EXPECT_EQ(count_differences(a, b, 1), 0U) << "panel " << i;
    }
  }
  // The mesh of panel 2, on a frame that is its own mirror image.
  Image plain(320, 240);
  const Image first = draw_sheet(plain, capsule_result(model, true), &model, {kSide, 1});
  const Image second = draw_sheet(plain, capsule_result(model, false), &model, {kSide, 1});
  EXPECT_EQ(mirrored_image(panel(first, 1, kSide)).rgb, panel(second, 1, kSide).rgb);
}

TEST(Sheet, WithoutAMeshThereAreTwoPanels) {
  const HandModel model(capsule_model(), "test");
  const Image frame = ramp(320, 240);
  HandResult result = capsule_result(model, true);
  const Image whole = draw_sheet(frame, result, &model, {kSide, 1});
  const Image none = draw_sheet(frame, result, nullptr, {kSide, 1});
  EXPECT_EQ(none.width, 2 * kSide + kSheetGap);
  EXPECT_EQ(panel(none, 0, kSide).rgb, panel(whole, 0, kSide).rgb);
  EXPECT_EQ(panel(none, 1, kSide).rgb, panel(whole, 3, kSide).rgb);
  result.vertices.clear();
  EXPECT_EQ(draw_sheet(frame, result, &model, {kSide, 1}).rgb, none.rgb);
}

TEST(Sheet, SquaresMayLieAnywhere) {
  const HandModel model(capsule_model(), "test");
  const Image frame = ramp(320, 240);
  HandResult result = capsule_result(model, true);
  for (const CropGeometry& geometry :
       {CropGeometry{-500, 40, 100}, CropGeometry{0, 0, 65536}, CropGeometry{319.9F, 239.9F, 3},
        CropGeometry{160, 120, 0.25}, CropGeometry{320.25F, 100, 0.5}, CropGeometry{1e6F, -1e6F, 10}}) {
    result.geometry = geometry;
    EXPECT_EQ(draw_sheet(frame, result, &model, {32, 1}).height, 32);
  }
  result.geometry = {-500, 40, 100};
  const Image outside = panel(draw_sheet(frame, result, nullptr, {32, 1}), 0, 32);
  for (std::size_t i = 0; i < outside.rgb.size(); ++i) ASSERT_EQ(outside.rgb[i], kGreyPad[i % 3]);
}

TEST(Sheet, ZoomShowsTheMiddle) {
  const HandModel model(capsule_model(), "test");
  const Image frame = ramp(320, 240);
  const HandResult result = capsule_result(model, true);
  HandResult narrow = result;
  narrow.geometry.box_size = result.geometry.box_size / 2;
  EXPECT_EQ(draw_sheet(frame, result, &model, {kSide, 2}).rgb,
            draw_sheet(frame, narrow, &model, {kSide, 1}).rgb);
}

TEST(Sheet, RefusesWhatIsNoSquare) {
  const HandModel model(capsule_model(), "test");
  const Image frame = ramp(320, 240);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  HandResult result = capsule_result(model, true);
  EXPECT_THROW(draw_sheet(Image(), result, &model), Error);
  EXPECT_THROW(draw_sheet(frame, result, &model, {15}), Error);
  EXPECT_THROW(draw_sheet(frame, result, &model, {2049}), Error);
  EXPECT_THROW(draw_sheet(frame, result, &model, {384, 0.9}), Error);
  EXPECT_THROW(draw_sheet(frame, result, &model, {384, static_cast<double>(nan)}), Error);
  for (const CropGeometry& geometry :
       {CropGeometry{nan, 0, 10}, CropGeometry{0, nan, 10}, CropGeometry{0, 0, 0}, CropGeometry{0, 0, -1},
        CropGeometry{0, 0, nan}, CropGeometry{0, 0, 1e9}, CropGeometry{2e6F, 0, 10}}) {
    result.geometry = geometry;
    EXPECT_THROW(draw_sheet(frame, result, &model), Error);
  }
}

}  // namespace
}  // namespace sinew

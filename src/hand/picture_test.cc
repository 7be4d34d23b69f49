#include "hand/picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sinew {
namespace {

constexpr int kWidth = 96;
constexpr int kHeight = 80;

/// Drawing is slow without optimisation: one picture for all tests.
const HandPicture& picture() {
  static const HandPicture instance = draw_hand_picture(kWidth, kHeight, 0);
  return instance;
}

/// Skin is warm, the background is cold.
bool is_skin(const Image& image, int x, int y) {
  const std::uint8_t* p = image.pixel(x, y);
  return p[0] > p[2] + 20;
}

TEST(HandPicture, IsDeterministicAndDiffersBySeed) {
  const HandPicture a = draw_hand_picture(64, 64, 5);
  const HandPicture b = draw_hand_picture(64, 64, 5);
  EXPECT_EQ(a.image.rgb, b.image.rgb);
  EXPECT_EQ(a.joints_2d, b.joints_2d);
  const HandPicture c = draw_hand_picture(64, 64, 6);
  EXPECT_NE(a.image.rgb, c.image.rgb);
  EXPECT_NE(a.joints_2d, c.joints_2d);
}

TEST(HandPicture, JointsLieInTheBoxAndTheBoxInTheFrame) {
  for (const auto& [width, height] : {std::pair{kWidth, kHeight}, std::pair{64, 90}, std::pair{70, 64}}) {
    const HandPicture drawn = width == kWidth ? picture() : draw_hand_picture(width, height, 1);
    EXPECT_EQ(drawn.image.width, width);
    EXPECT_EQ(drawn.image.height, height);
    EXPECT_GE(drawn.x1, 0);
    EXPECT_GE(drawn.y1, 0);
    EXPECT_LE(drawn.x2, width);
    EXPECT_LE(drawn.y2, height);
    for (const Vec2& p : drawn.joints_2d) {
      EXPECT_GT(p[0], drawn.x1);
      EXPECT_LT(p[0], drawn.x2);
      EXPECT_GT(p[1], drawn.y1);
      EXPECT_LT(p[1], drawn.y2);
    }
    // The hand is 62 % of the shorter side.
    EXPECT_GT(drawn.y2 - drawn.y1, 0.4 * std::min(width, height));
  }
}

TEST(HandPicture, JointsAreOnSkinAndCornersAreNot) {
  const HandPicture& drawn = picture();
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    // Tips are where the drawn flesh ends: half a millimetre of rounding must not decide.
    const Vec2& at = drawn.joints_2d[i];
    const bool is_tip = i > 0 && i % 4 == 0;
    const Vec2 inside = is_tip ? Vec2{(3 * at[0] + drawn.joints_2d[i - 1][0]) / 4,
                                      (3 * at[1] + drawn.joints_2d[i - 1][1]) / 4}
                               : at;
    EXPECT_TRUE(is_skin(drawn.image, static_cast<int>(inside[0]), static_cast<int>(inside[1])))
        << "joint " << i;
  }
  for (const int x : {0, kWidth - 1}) {
    for (const int y : {0, kHeight - 1}) EXPECT_FALSE(is_skin(drawn.image, x, y)) << x << "," << y;
  }
}

/// All skin above the wrist is inside the box, and touches it within a finger's thickness on every side.
TEST(HandPicture, BoxFitsTheHand) {
  const HandPicture& drawn = picture();
  const double wrist = drawn.joints_2d[0][1];
  int left = kWidth, right = 0, top = kHeight;
  for (int y = 0; y < static_cast<int>(wrist); ++y) {
    for (int x = 0; x < kWidth; ++x) {
      if (!is_skin(drawn.image, x, y)) continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
    }
  }
  EXPECT_GE(left, drawn.x1);
  EXPECT_LE(right, drawn.x2);
  EXPECT_GE(top, drawn.y1);
  const double thickness = 0.02 * 0.62 * kHeight / 0.19;  // 20 mm
  EXPECT_LT(left - drawn.x1, thickness);
  EXPECT_LT(drawn.x2 - right, thickness);
  EXPECT_LT(top - drawn.y1, thickness);
}

/// The palm of a right hand, fingers up: the thumb is on the right.
TEST(HandPicture, ShowsTheRightPalm) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    const auto joints = seed == 0 ? picture().joints_2d : draw_hand_picture(64, 64, seed).joints_2d;
    for (const std::size_t tip : {8, 12, 16, 20}) {
      EXPECT_LT(joints[tip][1], joints[tip - 3][1]) << "fingers point up";
      EXPECT_LT(joints[tip - 3][1], joints[0][1]) << "the wrist is below";
    }
    for (const std::size_t knuckle : {5, 9, 13}) EXPECT_GT(joints[knuckle][0], joints[knuckle + 4][0]);
    EXPECT_GT(joints[4][0], joints[8][0]);
  }
}

TEST(HandPicture, RefusesSizes) {
  for (const auto& [width, height] :
       {std::pair{63, 64}, std::pair{64, 63}, std::pair{4097, 64}, std::pair{64, 4097}, std::pair{0, 0},
        std::pair{-5, 100}, std::pair{2147483647, 2147483647}}) {
    EXPECT_THROW(draw_hand_picture(width, height, 0), Error) << width << "x" << height;
  }
}

}  // namespace
}  // namespace sinew

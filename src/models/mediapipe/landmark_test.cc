// The squares of the landmark network and the way back from it.
#include "models/mediapipe/landmark.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace sinew::mediapipe {
namespace {

constexpr double kPi = std::numbers::pi;

/// A palm whose wrist is below its middle knuckle.
Palm upright_palm() {
  Palm palm{0.9, 100, 200, 140, 260, {}};
  palm.points[kPalmWrist] = {120, 260};
  palm.points[kPalmMiddle] = {120, 205};
  return palm;
}

TEST(SquareOfPalm, UprightMovesUpByHalfTheHeight) {
  const FrameSquare square = square_of_palm(upright_palm());
  EXPECT_NEAR(square.angle, 0, 1e-12);
  EXPECT_NEAR(square.center_x, 120, 1e-9);
  EXPECT_NEAR(square.center_y, 230 - 30, 1e-9);
  EXPECT_NEAR(square.side, 2.6 * 60, 1e-9);
}

TEST(SquareOfPalm, FollowsTheFingers) {
  Palm palm = upright_palm();
  palm.points[kPalmMiddle] = {180, 260};  // fingers to the frame's right
  FrameSquare square = square_of_palm(palm);
  EXPECT_NEAR(square.angle, kPi / 2, 1e-12);
  EXPECT_NEAR(square.center_x, 120 + 30, 1e-9);
  EXPECT_NEAR(square.center_y, 230, 1e-9);
  palm.points[kPalmMiddle] = {120, 300};  // down
  square = square_of_palm(palm);
  EXPECT_NEAR(std::abs(square.angle), kPi, 1e-12);
  EXPECT_NEAR(square.center_y, 230 + 30, 1e-9);
  // The wrist is on the way down from the middle of the square in its own axes: u 0.5, v above 0.5.
  palm.points[kPalmMiddle] = {60, 260 - 60};
  square = square_of_palm(palm);
  EXPECT_NEAR(square.angle, -kPi / 4, 1e-12);
}

std::array<Point2, kLandmarks> hand_at(double x, double y, double angle) {
  std::array<Point2, kLandmarks> flat{};
  for (std::size_t i = 0; i < kLandmarks; ++i)
    flat[i] = {0, -1000};  // what is not of the palm must not matter
  const auto put = [&](std::size_t i, double px, double py) { flat[i] = {px, py}; };
  put(0, 0, 50);
  put(1, -10, 40);
  put(2, -20, 30);
  put(3, -30, 20);
  put(5, -15, 0);
  put(6, -16, -20);
  put(9, 0, -2);
  put(10, 0, -30);
  put(13, 15, 0);
  put(14, 16, -20);
  put(17, 25, 10);
  put(18, 30, -10);
  for (Point2& p : flat) {
    p = {x + std::cos(angle) * p[0] - std::sin(angle) * p[1],
         y + std::sin(angle) * p[0] + std::cos(angle) * p[1]};
  }
  return flat;
}

TEST(SquareOfLandmarks, IsAroundThePalmAndTurnsWithIt) {
  for (const double angle : {0.0, 0.4, -2.0, 3.0}) {
    const FrameSquare square = square_of_landmarks(hand_at(300, 200, angle));
    // Palm box: x -30..30, y -30..50; up from the wrist to the knuckles' (0, -1).
    EXPECT_NEAR(std::remainder(square.angle - angle, 2 * kPi), 0, 1e-12);
    EXPECT_NEAR(square.side, 2 * 80, 1e-9);
    const double along = 10 - 0.1 * 80;  // the box's middle, moved to the fingers
    EXPECT_NEAR(square.center_x, 300 - std::sin(angle) * along, 1e-9);
    EXPECT_NEAR(square.center_y, 200 + std::cos(angle) * along, 1e-9);
  }
}

TEST(PlaceLandmarks, BackToTheFrame) {
  std::array<float, kLandmarkNumbers> points{}, world{};
  points[0] = 112;
  points[1] = 112;
  points[3] = 112;  // landmark 1: the middle of the upper edge, 8 units deep
  points[4] = 0;
  points[5] = 8;
  world[3] = 0.01F;
  world[4] = -0.05F;
  world[5] = 0.02F;
  const FrameSquare square = {60, 70, 448, kPi / 2};
  const auto found = place_landmarks(points, world, square);
  ASSERT_TRUE(found.has_value());
  const Landmarks placed = found.value_or(Landmarks{});
  EXPECT_NEAR(placed.pixels[0][0], 60, 1e-9);
  EXPECT_NEAR(placed.pixels[0][1], 70, 1e-9);
  EXPECT_NEAR(placed.pixels[1][0], 60 + 224, 1e-9) << "up in the square is right in the frame";
  EXPECT_NEAR(placed.pixels[1][1], 70, 1e-9);
  EXPECT_NEAR(placed.depth[1], 8 * 2 / 0.4, 1e-9);
  EXPECT_NEAR(placed.world[1][0], 0.05, 1e-8);
  EXPECT_NEAR(placed.world[1][1], 0.01, 1e-8);
  EXPECT_NEAR(placed.world[1][2], 0.02, 1e-8);
}

TEST(PlaceLandmarks, NothingFromNumbersThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (std::size_t i = 0; i < kLandmarkNumbers; ++i) {
      std::array<float, kLandmarkNumbers> points{}, world{};
      points[i] = bad;
      EXPECT_FALSE(place_landmarks(points, world, {1, 1, 1, 0}));
      EXPECT_FALSE(place_landmarks(world, points, {1, 1, 1, 0}));
    }
  }
}

/// A mirrored frame: mirrored squares, mirrored landmarks.
TEST(Squares, OfAMirroredHandAreMirrored) {
  constexpr double kWidth = 640;
  Palm palm = upright_palm();
  palm.points[kPalmMiddle] = {150, 210};
  Palm mirrored = palm;
  mirrored.x1 = kWidth - palm.x2;
  mirrored.x2 = kWidth - palm.x1;
  for (Point2& p : mirrored.points) p[0] = kWidth - p[0];
  const FrameSquare a = square_of_palm(palm), b = square_of_palm(mirrored);
  EXPECT_NEAR(a.center_x, kWidth - b.center_x, 1e-9);
  EXPECT_NEAR(a.center_y, b.center_y, 1e-9);
  EXPECT_NEAR(a.side, b.side, 1e-9);
  EXPECT_NEAR(a.angle, -b.angle, 1e-12);
  auto hand = hand_at(300, 200, 0.7);
  const FrameSquare c = square_of_landmarks(hand);
  for (Point2& p : hand) p[0] = kWidth - p[0];
  const FrameSquare d = square_of_landmarks(hand);
  EXPECT_NEAR(c.center_x, kWidth - d.center_x, 1e-9);
  EXPECT_NEAR(c.side, d.side, 1e-9);
  EXPECT_NEAR(c.angle, -d.angle, 1e-12);
}

}  // namespace
}  // namespace sinew::mediapipe

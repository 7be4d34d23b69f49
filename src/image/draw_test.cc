#include "image/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace sinew {
namespace {

constexpr Colour kWhite = {255, 255, 255};

double total(const Image& image) {
  double sum = 0;
  for (const auto v : image.rgb) sum += v;
  return sum / 3 / 255;
}

TEST(Draw, DiscCoversItsArea) {
  for (const double radius : {0.5, 1.0, 3.3, 10.0, 25.5}) {
    Image image(80, 80);
    draw_disc(image, 40.3, 39.8, radius, kWhite);
    const double area = M_PI * radius * radius;
    EXPECT_NEAR(total(image), area, 0.05 * area + 0.3) << radius;
  }
}

TEST(Draw, LineCoversItsAreaInEveryDirection) {
  for (int degrees = 0; degrees < 360; degrees += 15) {
    Image image(120, 120);
    const double angle = degrees * M_PI / 180;
    draw_line(image, 60, 60, 60 + 40 * std::cos(angle), 60 + 40 * std::sin(angle), 3, kWhite);
    EXPECT_NEAR(total(image), 40 * 3 + M_PI * 1.5 * 1.5, 4) << degrees;
  }
}

TEST(Draw, BoxHasSquareCornersAndAnEmptyInside) {
  Image image(50, 40);
  draw_box(image, 10, 8, 30, 25, 3, {200, 0, 0});
  EXPECT_EQ(image.pixel(9, 7)[0], 200);
  EXPECT_EQ(image.pixel(31, 26)[0], 200);
  EXPECT_EQ(image.pixel(10, 15)[0], 200);
  EXPECT_EQ(image.pixel(20, 15)[0], 0);
  EXPECT_EQ(image.pixel(12, 10)[0], 0);
  EXPECT_EQ(image.pixel(33, 28)[0], 0);
  Image swapped(50, 40);
  draw_box(swapped, 30, 25, 10, 8, 3, {200, 0, 0});
  EXPECT_EQ(swapped.rgb, image.rgb);
  // Skipping the inside leaves no pixel of the right edge out.
  EXPECT_NEAR(total(image) * 255 / 200 * 3, (21 + 2) * (18 + 2) - (21 - 4) * (18 - 4), 20);
}

TEST(Draw, BlendsByOpacity) {
  Image image(9, 9);
  draw_disc(image, 4, 4, 3, {100, 200, 255}, 0.5);
  EXPECT_EQ(image.pixel(4, 4)[0], 50);
  EXPECT_EQ(image.pixel(4, 4)[1], 100);
  draw_disc(image, 4, 4, 3, kWhite, 7);  // clipped to 1
  EXPECT_EQ(image.pixel(4, 4)[0], 255);
}

TEST(Draw, IgnoresWhatIsNotFinite) {
  const double bad[] = {std::nan(""), std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  Image image(20, 20);
  for (const double v : bad) {
    draw_line(image, v, 1, 2, 3, 2, kWhite);
    draw_line(image, 1, 1, 2, 3, v, kWhite);
    draw_disc(image, 1, v, 2, kWhite);
    draw_disc(image, 1, 1, v, kWhite);
    draw_box(image, 1, 1, v, 10, 2, kWhite);
    draw_box(image, 1, 1, 5, 10, 2, kWhite, v);
  }
  Image empty;
  draw_disc(empty, 0, 0, 5, kWhite);
  EXPECT_EQ(total(image), 0);
}

TEST(Draw, ClipsAnyFiniteNumbers) {
  std::mt19937_64 random(3);
  const auto wild = [&] {
    const double magnitude = std::pow(10.0, std::uniform_real_distribution<double>(-3, 300)(random));
    return random() % 2 == 0 ? magnitude : -magnitude;
  };
  Image image(33, 21);
  for (int i = 0; i < 3000; ++i) {
    const double a = i % 2 == 0 ? wild() : 5.0;
    draw_line(image, wild(), a, wild(), wild(), i % 3 == 0 ? std::abs(wild()) : 2, kWhite, 0.1);
    draw_disc(image, a, wild(), std::abs(wild()), kWhite, 0.1);
    draw_box(image, a, wild(), wild(), wild(), i % 3 == 0 ? std::abs(wild()) : 2, kWhite, 0.1);
  }
}

TEST(Draw, LineFromFarAwayCrossesThePicture) {
  Image image(30, 30);
  draw_line(image, -1e9, 15, 1e9, 15, 1, kWhite);
  for (int x = 0; x < 30; ++x) EXPECT_EQ(image.pixel(x, 15)[0], 255);
  EXPECT_NEAR(total(image), 30, 0.5);
}

}  // namespace
}  // namespace sinew

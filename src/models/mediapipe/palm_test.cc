// The palm detector's decoding against cases worked out by hand.
#include "models/mediapipe/palm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

namespace sinew::mediapipe {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Palm square(double score, double x, double y, double side) {
  Palm palm{score, x, y, x + side, y + side, {}};
  for (std::size_t k = 0; k < kPalmPoints; ++k) palm.points[k] = {x + 0.1 * static_cast<double>(k), y};
  return palm;
}

TEST(PalmAnchors, AreThoseOfTheNetwork) {
  const auto anchors = palm_anchors();
  ASSERT_EQ(anchors.size(), kPalmAnchors);
  // 24 x 24 cells twice, then 12 x 12 cells six times.
  EXPECT_EQ(anchors[0], (Point2{0.5 / 24, 0.5 / 24}));
  EXPECT_EQ(anchors[1], anchors[0]);
  EXPECT_EQ(anchors[2], (Point2{1.5 / 24, 0.5 / 24}));
  EXPECT_EQ(anchors[48], (Point2{0.5 / 24, 1.5 / 24}));
  EXPECT_EQ(anchors[1151], (Point2{23.5 / 24, 23.5 / 24}));
  EXPECT_EQ(anchors[1152], (Point2{0.5 / 12, 0.5 / 12}));
  EXPECT_EQ(anchors[1157], anchors[1152]);
  EXPECT_EQ(anchors[1158], (Point2{1.5 / 12, 0.5 / 12}));
  EXPECT_EQ(anchors[2015], (Point2{11.5 / 12, 11.5 / 12}));
}

TEST(PalmAnchors, CellsAreRoundedUpAndUnequalStridesStayApart) {
  const std::array<int, 3> strides = {8, 16, 8};
  const auto anchors = palm_anchors(20, strides);  // 3 x 3, 2 x 2, 3 x 3 cells
  ASSERT_EQ(anchors.size(), std::size_t{2} * (9 + 4 + 9));
  EXPECT_EQ(anchors[18], (Point2{0.25, 0.25}));
  EXPECT_EQ(anchors[26], anchors[0]);
}

struct Outputs {
  std::vector<Point2> anchors = {{0.25, 0.5}, {0.75, 0.5}};
  std::vector<float> boxes = std::vector<float>(2 * kPalmNumbers, 1.0F);
  std::vector<float> logits = {0, 0};
  std::vector<Palm> decode(double min_score = 0.5) const {
    return decode_palms(boxes, logits, anchors, min_score, 200);
  }
};

TEST(DecodePalms, OffsetsAreFromTheAnchorInPixelsOfThePicture) {
  Outputs outputs;
  outputs.logits = {-1, 2};
  for (std::size_t i = 0; i < kPalmNumbers; ++i) outputs.boxes[kPalmNumbers + i] = static_cast<float>(10 * i);
  const auto palms = outputs.decode();
  ASSERT_EQ(palms.size(), 1U) << "sigmoid(-1) is below 0.5";
  EXPECT_DOUBLE_EQ(palms[0].score, 1 / (1 + std::exp(-2.0)));
  // centre (0.75, 0.5) + (0, 10)/200, size (20, 30)/200
  EXPECT_DOUBLE_EQ(palms[0].x1, 0.70);
  EXPECT_DOUBLE_EQ(palms[0].x2, 0.80);
  EXPECT_DOUBLE_EQ(palms[0].y1, 0.475);
  EXPECT_DOUBLE_EQ(palms[0].y2, 0.625);
  EXPECT_DOUBLE_EQ(palms[0].points[0][0], 0.75 + 0.2);
  EXPECT_DOUBLE_EQ(palms[0].points[0][1], 0.5 + 0.25);
  EXPECT_DOUBLE_EQ(palms[0].points[6][0], 0.75 + 0.8);
  EXPECT_DOUBLE_EQ(palms[0].points[6][1], 0.5 + 0.85);
}

TEST(DecodePalms, TheThresholdItselfIsEnough) {
  Outputs outputs;
  EXPECT_EQ(outputs.decode(0.5).size(), 2U) << "sigmoid(0) is 0.5";
  EXPECT_EQ(outputs.decode(0.500001).size(), 0U);
}

TEST(DecodePalms, LogitsAreHeldAtAHundred) {
  Outputs outputs;
  outputs.logits = {kInfinity, 1e30F};
  auto palms = outputs.decode();
  ASSERT_EQ(palms.size(), 2U);
  EXPECT_EQ(palms[0].score, 1);
  outputs.logits = {-kInfinity, -1e30F};
  palms = outputs.decode(0);
  ASSERT_EQ(palms.size(), 2U);
  EXPECT_DOUBLE_EQ(palms[0].score, 1 / (1 + std::exp(100.0)));
}

TEST(DecodePalms, WhatIsNotFiniteOrHasNoExtentIsPassedOver) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (std::size_t i = 0; i < kPalmNumbers; ++i) {
      Outputs outputs;
      outputs.boxes[i] = bad;
      EXPECT_EQ(outputs.decode().size(), 1U) << i;
    }
  }
  for (const std::size_t extent : {2, 3}) {
    for (const float bad : {0.0F, -5.0F}) {
      Outputs outputs;
      outputs.boxes[extent] = bad;
      EXPECT_EQ(outputs.decode().size(), 1U);
    }
  }
  Outputs outputs;
  outputs.logits = {kNan, kNan};
  EXPECT_EQ(outputs.decode(0).size(), 0U);
}

TEST(Overlap, OfHandMadeBoxes) {
  EXPECT_DOUBLE_EQ(overlap(square(1, 0, 0, 1), square(1, 0, 0, 1)), 1);
  EXPECT_DOUBLE_EQ(overlap(square(1, 0, 0, 1), square(1, 0.5, 0, 1)), 0.5 / 1.5);
  EXPECT_DOUBLE_EQ(overlap(square(1, 0, 0, 1), square(1, 1, 0, 1)), 0);
  EXPECT_DOUBLE_EQ(overlap(square(1, 0, 0, 0), square(1, 0, 0, 0)), 0);
}

TEST(MergePalms, OverlappingPalmsBecomeTheirWeightedMean) {
  // 0.9 and 0.6 overlap by 0.8/1.2; the third stands alone.
  const auto merged = merge_palms({square(0.6, 0.2, 0, 1), square(0.7, 5, 5, 1), square(0.9, 0, 0, 1)});
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].score, 0.9);
  EXPECT_NEAR(merged[0].x1, 0.6 * 0.2 / 1.5, 1e-15);
  EXPECT_NEAR(merged[0].x2, 1 + 0.6 * 0.2 / 1.5, 1e-15);
  EXPECT_NEAR(merged[0].points[3][0], 0.3 + 0.6 * 0.2 / 1.5, 1e-15);
  EXPECT_EQ(merged[0].y2, 1);
  EXPECT_EQ(merged[1].score, 0.7);
  EXPECT_NEAR(merged[1].x1, 5, 1e-14);
}

TEST(MergePalms, AChainIsCutAtTheBest) {
  // Neighbours overlap by 0.5/1.5 > 0.3, the outer two by nothing: each end stands for itself.
  const auto merged = merge_palms({square(0.9, 0, 0, 1), square(0.8, 1, 0, 1), square(0.7, 0.5, 0, 1)});
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_NEAR(merged[0].x1, 0.7 * 0.5 / 1.6, 1e-15);
  EXPECT_EQ(merged[1].score, 0.8);
  EXPECT_NEAR(merged[1].x1, 1, 1e-15);
}

TEST(MergePalms, EqualScoresKeepTheirOrder) {
  const auto merged = merge_palms({square(0.8, 3, 0, 1), square(0.8, 1, 0, 1), square(0.8, 6, 0, 1)});
  ASSERT_EQ(merged.size(), 3U);
  EXPECT_NEAR(merged[0].x1, 3, 1e-14);
  EXPECT_NEAR(merged[1].x1, 1, 1e-14);
  EXPECT_NEAR(merged[2].x1, 6, 1e-14);
  EXPECT_TRUE(merge_palms({}).empty());
}

/// Any bits as outputs: it ends, and what comes out is finite.
TEST(MergePalms, NoiseEndsAndStaysFinite) {
  std::mt19937 random(3);
  const auto anchors = palm_anchors();
  std::vector<float> boxes(kPalmNumbers * kPalmAnchors);
  std::vector<float> logits(kPalmAnchors);
  const auto any_float = [&] {
    const auto bits = static_cast<std::uint32_t>(random());
    float value;
    static_assert(sizeof(value) == sizeof(bits));
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  for (int round = 0; round < 4; ++round) {
    for (float& v : boxes) v = any_float();
    for (float& v : logits) v = any_float();
    const auto palms = decode_palms(boxes, logits, anchors, 0.5);
    EXPECT_GT(palms.size(), 0U);
    for (const Palm& palm : merge_palms(palms)) {
      EXPECT_TRUE(std::isfinite(palm.x1) && std::isfinite(palm.y2) && std::isfinite(palm.points[6][1]));
      EXPECT_GE(palm.score, 0.5);
    }
  }
}

}  // namespace
}  // namespace sinew::mediapipe

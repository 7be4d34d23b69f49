// The finder around networks that see dots: order, limits, retries, and where everything lies in the frame.
#include "hand/finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "hand/finder_views.h"
#include "hand/test_finder.h"

namespace sinew {
namespace {

HandFinder finder(FakeNetwork::Compute palm = see_palms, FakeNetwork::Compute landmark = see_landmarks) {
  return {fake_palm(std::move(palm)), fake_landmark(std::move(landmark))};
}

Image picture(int width, int height, const std::vector<DotHand>& hands) {
  Image frame(width, height);
  std::fill(frame.rgb.begin(), frame.rgb.end(), std::uint8_t{40});
  for (const DotHand& hand : hands) paint(frame, hand);
  return frame;
}

ErrorCode code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kIo;
}

double distance(const Vec2& a, const Vec2& b) { return std::hypot(a[0] - b[0], a[1] - b[1]); }

// A blend of dots is off by less than a cell of the crop, whose side is at least that of two frame pixels.
constexpr double kPixels = 1.5;

TEST(HandFinder, FindsAHandAtAnyAngle) {
  for (double angle = 0; angle < 6; angle += 0.7) {
    const DotHand hand = {{320, 240}, {320 + 80 * std::sin(angle), 240 - 80 * std::cos(angle)}};
    auto find = finder();
    const auto hands = find.find(picture(640, 480, {hand}));
    ASSERT_EQ(hands.size(), 1U) << angle;
    EXPECT_LT(distance(hands[0].landmarks[0], hand.wrist), kPixels) << angle;
    EXPECT_LT(distance(hands[0].landmarks[9], hand.knuckle), kPixels) << angle;
    EXPECT_FLOAT_EQ(static_cast<float>(hands[0].presence), 0.97F);
    EXPECT_GT(hands[0].score, 0.5);
    EXPECT_TRUE(hands[0].box.is_right);
    // World up is where the fingers point.
    const double length = std::hypot(hands[0].world[9][0], hands[0].world[9][1]);
    EXPECT_NEAR(hands[0].world[9][0] / length, std::sin(angle), 0.05);
    EXPECT_NEAR(hands[0].world[9][1] / length, -std::cos(angle), 0.05);
    EXPECT_EQ(find.runs().palm, 1);
    EXPECT_EQ(find.runs().landmark, 2);
  }
}

TEST(HandFinder, TheBoxHoldsTheLandmarksWithAMargin) {
  const auto hands = finder().find(picture(640, 480, {{{300, 300}, {300, 200}}}));
  ASSERT_EQ(hands.size(), 1U);
  double x1 = 1e9, x2 = -1e9, y1 = 1e9, y2 = -1e9;
  for (const Vec2& p : hands[0].landmarks) {
    x1 = std::min(x1, p[0]);
    x2 = std::max(x2, p[0]);
    y1 = std::min(y1, p[1]);
    y2 = std::max(y2, p[1]);
  }
  const HandBox& box = hands[0].box;
  EXPECT_NEAR(x1 - box.x1, kBoxMargin * (x2 - x1), 1e-9);
  EXPECT_NEAR(box.y2 - y2, kBoxMargin * (y2 - y1), 1e-9);
  EXPECT_NEAR(box.x1 + box.x2, x1 + x2, 1e-9);
  EXPECT_NEAR(box.y1 + box.y2, y1 + y2, 1e-9);
}

TEST(HandFinder, BothHandsByFallingScoreAndNoMoreThanAsked) {
  const DotHand left = {{150, 300}, {160, 220}, false, 7};
  const DotHand right = {{450, 300}, {430, 220}, true, 12};
  const DotHand third = {{300, 430}, {300, 370}, true, 9};
  const Image frame = picture(640, 480, {left, right, third});
  FinderOptions options;
  const auto hands = finder().find(frame, options);
  ASSERT_EQ(hands.size(), 3U);
  EXPECT_LT(distance(hands[0].landmarks[0], right.wrist), kPixels);
  EXPECT_LT(distance(hands[1].landmarks[0], third.wrist), kPixels);
  EXPECT_LT(distance(hands[2].landmarks[0], left.wrist), kPixels);
  EXPECT_GT(hands[0].score, hands[1].score);
  EXPECT_GT(hands[1].score, hands[2].score);
  EXPECT_TRUE(hands[0].box.is_right);
  EXPECT_FALSE(hands[2].box.is_right);
  EXPECT_FLOAT_EQ(static_cast<float>(hands[2].right), 0.1F);
  options.max_hands = 2;
  auto limited = finder();
  const auto two = limited.find(frame, options);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].landmarks, hands[1].landmarks);
  EXPECT_EQ(limited.runs().landmark, 4) << "the third is not looked at";
  options.max_hands = 10;
  options.min_score = (hands[1].score + hands[2].score) / 2;
  EXPECT_EQ(finder().find(frame, options).size(), 2U);
  options.min_score = 0;
  options.min_presence = 0.98;
  EXPECT_EQ(finder().find(frame, options).size(), 0U);
}

TEST(HandFinder, TwoPalmsOnOneHandAreOneHand) {
  // The second palm stands so far off that suppression keeps both; the landmarks are the same.
  const auto twice = [](std::span<const float> rgb, FakeNetwork::Outputs& out) {
    using namespace mediapipe;
    see_palms(rgb, out);
    const auto anchors = palm_anchors();
    for (std::size_t i = 0; i < kPalmNumbers; ++i) out[0][kPalmNumbers + i] = out[0][i];
    for (std::size_t i = 0; i < kPalmNumbers; ++i) {
      if (i == 2 || i == 3) continue;
      const std::size_t axis = i % 2;
      out[0][kPalmNumbers + i] +=
          static_cast<float>(kPalmSide * (anchors[0][axis] - anchors[1][axis]) + (axis == 0 ? 15 : 0));
    }
    out[1][1] = out[1][0] - 0.1F;
  };
  auto find = finder(twice);
  EXPECT_EQ(find.find(picture(640, 480, {{{320, 300}, {320, 230}}})).size(), 1U);
  EXPECT_EQ(find.runs().landmark, 4) << "both palms were looked at";
}

Image mirrored(const Image& image) {
  Image out(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x)
      std::memcpy(out.pixel(image.width - 1 - x, y), image.pixel(x, y), 3);
  }
  return out;
}

/// As far as it is the finder's doing: the dots' networks are themselves symmetric.
TEST(HandFinder, AMirroredFrameGivesTheMirroredHand) {
  const Image frame = picture(640, 480, {{{320, 240}, {371, 178}}});
  const auto a = finder().find(frame);
  const auto b = finder().find(mirrored(frame));
  ASSERT_EQ(a.size(), 1U);
  ASSERT_EQ(b.size(), 1U);
  for (const std::size_t i : {0, 9, 12}) {  // on the axis of the hand
    EXPECT_NEAR(a[0].landmarks[i][0], 640 - b[0].landmarks[i][0], kPixels) << i;
    EXPECT_NEAR(a[0].landmarks[i][1], b[0].landmarks[i][1], kPixels) << i;
  }
  EXPECT_NEAR(a[0].world[9][0], -b[0].world[9][0], 1e-3);
  EXPECT_NEAR(a[0].depth[9], b[0].depth[9], 0.02 * a[0].depth[9]);
}

/// Seen by the palm detector only where its picture is not `whole`.
FakeNetwork::Compute only_in_run(int& runs, int wanted) {
  return [&runs, wanted](std::span<const float> rgb, FakeNetwork::Outputs& out) {
    if (runs++ == wanted) return see_palms(rgb, out);
    std::fill(out[1].begin(), out[1].end(), -100.0F);
  };
}

TEST(HandFinder, TheMarginIsTriedWhenTheWholeShowsNothing) {
  const DotHand hand = {{320, 300}, {320, 160}, true, 13};
  for (int margin = 1; margin <= 2; ++margin) {
    int runs = 0;
    auto find = finder(only_in_run(runs, margin));
    const auto hands = find.find(picture(640, 480, {hand}));
    ASSERT_EQ(hands.size(), 1U) << margin;
    EXPECT_LT(distance(hands[0].landmarks[0], hand.wrist), kPixels);
    EXPECT_EQ(find.runs().palm, 1 + margin);
  }
}

TEST(HandFinder, FarHandsAreFoundInTiles) {
  // Dots of 24 pixels in 3000: less than two cells of the whole picture, a visible spot in a tile.
  const DotHand hand = {{2600, 400}, {2600, 240}, false, 12};
  auto find = finder();
  const auto hands = find.find(picture(3000, 1500, {hand}));
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_GT(find.runs().palm, 3);
  EXPECT_LT(distance(hands[0].landmarks[0], hand.wrist), 2.0);
  EXPECT_LT(distance(hands[0].landmarks[9], hand.knuckle), 2.0);
  EXPECT_FALSE(hands[0].box.is_right);
}

TEST(HandFinder, ANearHandHidesFarOnesUnlessTheSearchIsThorough) {
  const DotHand near = {{700, 1200}, {700, 500}, true, 90};
  const DotHand far = {{2600, 400}, {2600, 240}, false, 12};
  const Image frame = picture(3000, 1500, {near, far});
  EXPECT_EQ(finder().find(frame).size(), 1U);
  FinderOptions options;
  options.thorough = true;
  const auto hands = finder().find(frame, options);
  ASSERT_EQ(hands.size(), 2U) << "each once";
  EXPECT_TRUE(hands[0].box.is_right);
  EXPECT_LT(distance(hands[0].landmarks[0], near.wrist), 10.0);
  EXPECT_FALSE(hands[1].box.is_right);
  EXPECT_LT(distance(hands[1].landmarks[0], far.wrist), 2.0);
}

TEST(HandFinder, AHandInSeveralTilesIsReturnedOnce) {
  // In the overlap of all four tiles of 2 x 2 (side 914 of 1600, step 686).
  const DotHand hand = {{800, 830}, {800, 770}, true, 9};
  const auto hands = finder().find(picture(1600, 1600, {hand}));
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_LT(distance(hands[0].landmarks[0], hand.wrist), 2.0);
}

TEST(HandFinder, AHandAtTheEdge) {
  const DotHand hand = {{20, 470}, {60, 400}, true, 8};
  const auto hands = finder().find(picture(640, 480, {hand}));
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_LT(distance(hands[0].landmarks[9], hand.knuckle), kPixels);
}

TEST(HandFinder, EmptyTinyAndNarrowFrames) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 200}, {16384, 3}, {3, 5000}, {192, 192}}) {
    auto find = finder();
    EXPECT_TRUE(find.find(picture(width, height, {})).empty()) << width << " x " << height;
    EXPECT_LE(find.runs().palm, 3 + 2 + 3 + 16);
    EXPECT_EQ(find.runs().landmark, 0);
  }
}

TEST(HandFinder, NumbersThatAreNotFiniteAreNoHand) {
  const Image frame = picture(640, 480, {{{320, 300}, {320, 200}}});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t output : {0, 1, 2, 3}) {
      auto find = finder(see_palms, [&](std::span<const float> rgb, FakeNetwork::Outputs& out) {
        see_landmarks(rgb, out);
        std::fill(out[output].begin(), out[output].end(), bad);
      });
      EXPECT_TRUE(find.find(frame).empty()) << output;
    }
    for (const std::size_t output : {0, 1}) {
      auto find = finder([&](std::span<const float>, FakeNetwork::Outputs& out) {
        std::fill(out[output].begin(), out[output].end(), bad);
      });
      const auto hands = find.find(frame);
      EXPECT_TRUE(hands.empty()) << output;
    }
  }
  // Landmarks far beyond any frame, or all in one place.
  for (const float where : {1e30F, 7.0F}) {
    auto find = finder(see_palms, [&](std::span<const float> rgb, FakeNetwork::Outputs& out) {
      see_landmarks(rgb, out);
      std::fill(out[0].begin(), out[0].end(), where);
    });
    EXPECT_TRUE(find.find(frame).empty()) << where;
  }
}

TEST(HandFinder, AWildDetectorCostsABoundedNumberOfLooks) {
  auto find = finder(
      [](std::span<const float>, FakeNetwork::Outputs& out) {
        using namespace mediapipe;
        std::fill(out[1].begin(), out[1].end(), 3.0F);
        for (std::size_t i = 0; i < kPalmAnchors; ++i)
          out[0][kPalmNumbers * i + 2] = out[0][kPalmNumbers * i + 3] = 4;  // none overlaps another cell's
      },
      [](std::span<const float>, FakeNetwork::Outputs&) {});
  FinderOptions options;
  options.max_hands = 3;
  EXPECT_TRUE(find.find(picture(320, 320, {}), options).empty());
  EXPECT_LE(find.runs().landmark, 3 * (2 * 3 + 4)) << "per stage";
}

TEST(HandFinder, ASecondLookThatLosesTheHandIsBelieved) {
  int looks = 0;
  const auto lose = [&](std::span<const float> rgb, FakeNetwork::Outputs& out) {
    see_landmarks(rgb, out);
    if (++looks % 2 == 0) out[1][0] = 0.1F;
  };
  const Image frame = picture(640, 480, {{{320, 300}, {320, 200}}});
  EXPECT_TRUE(finder(see_palms, lose).find(frame).empty());
  FinderOptions options;
  options.refine = false;
  looks = 0;
  auto once = finder(see_palms, lose);
  EXPECT_EQ(once.find(frame, options).size(), 1U);
  EXPECT_EQ(once.runs().landmark, 1);
}

/// Landmarks with a presence that hangs on the look: 0.95 and more is sure.
FakeNetwork::Compute with_presence(std::vector<float> presences) {
  auto look = std::make_shared<std::size_t>(0);
  return [look, presences = std::move(presences)](std::span<const float> rgb, FakeNetwork::Outputs& out) {
    see_landmarks(rgb, out);
    if (out[1][0] > 0) out[1][0] = presences.at(std::min((*look)++, presences.size() - 1));
  };
}

TEST(HandFinder, TheSearchGoesOnUntilAHandIsSure) {
  const Image frame = picture(300, 300, {{{150, 230}, {150, 120}, true, 12}});
  FinderOptions options;
  options.refine = false;
  auto sure = finder(see_palms, with_presence({0.96F}));
  EXPECT_EQ(sure.find(frame, options).size(), 1U);
  EXPECT_EQ(sure.runs().palm, 1);
  // Sure in the second stage: it takes the first one's place.
  auto later = finder(see_palms, with_presence({0.8F, 0.96F}));
  auto hands = later.find(frame, options);
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_FLOAT_EQ(static_cast<float>(hands[0].presence), 0.96F);
  EXPECT_EQ(later.runs().palm, 2);
  // Never sure: all stages are searched, and the best of what was found comes back once.
  auto never = finder(see_palms, with_presence({0.6F, 0.8F, 0.7F}));
  hands = never.find(frame, options);
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_FLOAT_EQ(static_cast<float>(hands[0].presence), 0.8F);
  EXPECT_EQ(never.runs().palm, 3) << "300 pixels are too few for tiles";
}

TEST(HandFinder, WhatIsNotSureGivesWayToTheSureHandItLiesOver) {
  // Two knuckles for one wrist: the first look takes the hand for one that points left.
  const auto crooked = [](std::size_t turn_look) {
    auto look = std::make_shared<std::size_t>(0);
    return [look, turn_look](std::span<const float> rgb, FakeNetwork::Outputs& out) {
      see_landmarks(rgb, out);
      if (out[1][0] == 0 || (*look)++ != turn_look) return;
      out[1][0] = 0.7F;
      for (std::size_t i = 0; i < mediapipe::kLandmarks; ++i) std::swap(out[0][3 * i], out[0][3 * i + 1]);
    };
  };
  FinderOptions options;
  options.refine = false;
  const Image frame = picture(300, 300, {{{150, 230}, {150, 120}, true, 12}});
  const auto hands = finder(see_palms, crooked(0)).find(frame, options);
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_GT(hands[0].presence, 0.9);
  EXPECT_LT(distance(hands[0].landmarks[9], {150, 120}), 3.0);
  // Beside the sure hand it stays.
  const Image two = picture(640, 480, {{{150, 300}, {150, 220}, true, 12}, {{450, 300}, {450, 220}}});
  EXPECT_EQ(finder(see_palms, with_presence({0.96F, 0.7F})).find(two, options).size(), 2U);
}

TEST(HandFinder, TilesAreSearchedOnlyWhenAskedFor) {
  auto find = finder();
  FinderOptions options;
  options.tiles = false;
  EXPECT_TRUE(find.find(picture(3000, 1500, {{{2600, 400}, {2600, 240}, false, 12}}), options).empty());
  EXPECT_EQ(find.runs().palm, 3);
}

TEST(HandFinder, RunsAgainGiveTheSameNumbers) {
  const Image frame = picture(640, 480, {{{150, 300}, {160, 220}, false, 7}, {{450, 300}, {430, 220}}});
  auto find = finder();
  const auto a = find.find(frame);
  const auto b = find.find(frame);
  ASSERT_EQ(a.size(), 2U);
  ASSERT_EQ(b.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(a[i].landmarks, b[i].landmarks);
    EXPECT_EQ(a[i].world, b[i].world);
    EXPECT_EQ(a[i].score, b[i].score);
  }
}

TEST(HandFinder, TakesNetworksInDouble) {
  const Image frame = picture(640, 480, {{{320, 300}, {320, 200}}});
  HandFinder wide(fake_palm(see_palms, DType::kF64), fake_landmark(see_landmarks, DType::kF64));
  const auto a = wide.find(frame);
  const auto b = finder().find(frame);
  ASSERT_EQ(a.size(), 1U);
  EXPECT_EQ(a[0].landmarks, b[0].landmarks);
}

TEST(HandFinder, RefusesSenselessOptionsAndEmptyFrames) {
  auto find = finder();
  const Image frame = picture(8, 8, {});
  EXPECT_EQ(code_of([&] { find.find(Image()); }), ErrorCode::kUsage);
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    FinderOptions options;
    options.min_score = bad;
    EXPECT_EQ(code_of([&] { find.find(frame, options); }), ErrorCode::kUsage);
    options = {};
    options.min_presence = bad;
    EXPECT_EQ(code_of([&] { find.find(frame, options); }), ErrorCode::kUsage);
  }
  FinderOptions options;
  options.max_hands = 0;
  EXPECT_EQ(code_of([&] { find.find(frame, options); }), ErrorCode::kUsage);
}

TEST(HandFinder, RefusesOtherNetworks) {
  const auto nothing = [](std::span<const float>, FakeNetwork::Outputs&) {};
  EXPECT_EQ(code_of([&] { HandFinder(fake_landmark(), fake_palm()); }), ErrorCode::kMismatch);
  EXPECT_EQ(code_of([&] { HandFinder(fake_palm(), fake_palm()); }), ErrorCode::kMismatch);
  const auto of = [&](int side, const std::vector<Shape>& outputs, DType dtype = DType::kF32) {
    return std::make_unique<FakeNetwork>(side, outputs, nothing, dtype);
  };
  EXPECT_EQ(code_of([&] { HandFinder(of(192, {{2016, 18}}), fake_landmark()); }), ErrorCode::kMismatch);
  EXPECT_EQ(code_of([&] { HandFinder(of(192, {{2016, 18}, {2016}, {1}}), fake_landmark()); }),
            ErrorCode::kMismatch);
  EXPECT_EQ(code_of([&] { HandFinder(of(192, {{2016, 18}, {2016}}, DType::kBF16), fake_landmark()); }),
            ErrorCode::kMismatch);
  EXPECT_NO_THROW(HandFinder(of(192, {{2016, 18}, {2016}}), fake_landmark()));
}

TEST(SearchStages, CoverTheFrameWithOverlap) {
  for (const auto& [width, height] : {std::pair{640, 480}, {480, 640}, {1000, 1000}, {5000, 700}, {1, 1}}) {
    const auto stages = search_stages(width, height);
    const double longer = std::max(width, height);
    ASSERT_GE(stages.size(), 3U);
    EXPECT_EQ(stages[0].views[0].side, longer);
    EXPECT_EQ(stages[1].views[0].side, 1.5 * longer);
    EXPECT_EQ(stages[2].views[0].side, 2 * longer);
    for (std::size_t s = 3; s < stages.size(); ++s) {
      const double side = stages[s].views[0].side;
      EXPECT_LT(side, longer);
      // Any spot of a hand smaller than the overlap lies whole in some tile.
      const double reach = side * 0.249;
      for (double y = 0; y + reach <= height; y += height / 37.0) {
        for (double x = 0; x + reach <= width; x += width / 37.0) {
          const bool held = std::any_of(stages[s].views.begin(), stages[s].views.end(), [&](const auto& v) {
            return v.center_x - side / 2 <= x && x + reach <= v.center_x + side / 2 &&
                   v.center_y - side / 2 <= y && y + reach <= v.center_y + side / 2;
          });
          ASSERT_TRUE(held) << s << ": " << x << " " << y;
        }
      }
    }
  }
  EXPECT_EQ(search_stages(640, 480, false).size(), 3U);
  EXPECT_EQ(search_stages(300, 300).size(), 3U) << "tiles of 171 pixels";
  EXPECT_EQ(search_stages(640, 480).size(), 5U) << "5 along: tiles of 160 pixels";
  const auto photo = search_stages(4000, 3000);
  ASSERT_EQ(photo.size(), 6U);
  EXPECT_EQ(photo[3].views.size(), 4U);
  EXPECT_EQ(photo[4].views.size(), 9U);
  EXPECT_EQ(photo[5].views.size(), 20U);
  const auto strip = search_stages(10000, 1000);
  ASSERT_EQ(strip.size(), 6U);
  EXPECT_EQ(strip[5].views.size(), 13U);
  EXPECT_NEAR(strip[5].views[0].side, 1000, 1);
  EXPECT_EQ(search_stages(16384, 1)[5].views.size(), 16U);
}

}  // namespace
}  // namespace sinew

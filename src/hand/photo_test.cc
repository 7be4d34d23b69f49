#include "hand/photo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "hand/test_finder.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

using testing::HasSubstr;

constexpr DotHand kRight = {{100, 170}, {100, 130}, true, 6};
constexpr DotHand kLeft = {{260, 150}, {270, 115}, false, 5};

Image frame_of(const std::vector<DotHand>& hands) {
  Image frame(400, 300);
  for (const DotHand& hand : hands) paint(frame, hand);
  return frame;
}

std::unique_ptr<HandFinder> fake_finder() {
  return std::make_unique<HandFinder>(fake_palm(), fake_landmark());
}

PhotoHands landmarks_only(const PhotoOptions& options = {}) { return {fake_finder(), nullptr, options}; }

TEST(Photo, HandsAreFoundAndPosedFromTheirLandmarks) {
  PhotoHands photo = landmarks_only();
  const std::vector<HandResult> hands = photo.find(frame_of({kRight, kLeft}));
  ASSERT_EQ(hands.size(), 2U);
  EXPECT_TRUE(hands[0].box.is_right) << "the larger dots have the higher score";
  EXPECT_FALSE(hands[1].box.is_right);
  for (const HandResult& hand : hands) {
    ASSERT_TRUE(hand.found.has_value());
    const FoundHand found = hand.found.value_or(FoundHand{});
    EXPECT_EQ(hand.frame_width, 400);
    EXPECT_EQ(hand.camera.fx, 5000.0 / 256 * 400) << "the original's assumption";
    EXPECT_EQ(hand.betas, (std::array<double, 10>{}));
    EXPECT_TRUE(hand.vertices.empty()) << "the skeleton has none";
    double mean = 0;
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      mean += std::hypot(hand.joints_2d[i][0] - found.landmarks[i][0],
                         hand.joints_2d[i][1] - found.landmarks[i][1]) /
              kHandKeypoints;
    }
    EXPECT_NEAR(mean, hand.fit_error_px.value_or(-1), 1e-9);
  }
}

TEST(Photo, AHandModelGivesTheMeshAndTheCameraIsTaken) {
  PhotoOptions options;
  options.model = std::make_shared<const HandModel>(skeleton_model(), "test");
  options.camera = Intrinsics{500, 510, 190, 140};
  PhotoHands photo = landmarks_only(options);
  const std::vector<HandResult> hands = photo.find(frame_of({kRight}));
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_EQ(hands[0].vertices.size(), static_cast<std::size_t>(kHandKeypoints));
  EXPECT_EQ(hands[0].camera.fy, 510);
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec2 pixel = project(hands[0].joints_3d[i], hands[0].cam_t_full, hands[0].camera);
    EXPECT_NEAR(pixel[0], hands[0].joints_2d[i][0], 1e-9);
    EXPECT_NEAR(pixel[1], hands[0].joints_2d[i][1], 1e-9);
  }
  const Vec3 t = full_frame_translation(hands[0].cam, hands[0].geometry, hands[0].camera);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    EXPECT_NEAR(t[axis], hands[0].cam_t_full[axis], 1e-6) << "cam says the same as cam_t_full";
  }
}

TEST(Photo, AGivenBoxIsSearchedAroundAndKept) {
  PhotoHands photo = landmarks_only();
  const Image frame = frame_of({kRight, kLeft});
  const HandBox box = {230, 90, 300, 165, true};  // the left hand, called right
  const std::vector<HandResult> hands = photo.in_boxes(frame, {box});
  ASSERT_EQ(hands.size(), 1U);
  EXPECT_EQ(hands[0].box.x1, 230);
  EXPECT_TRUE(hands[0].box.is_right) << "the box knows better";
  ASSERT_TRUE(hands[0].found.has_value());
  const FoundHand found = hands[0].found.value_or(FoundHand{});
  EXPECT_NEAR(found.landmarks[0][0], kLeft.wrist[0], 2) << "pixels of the frame, not of the cut";
  EXPECT_NEAR(found.landmarks[0][1], kLeft.wrist[1], 2);
}

TEST(Photo, ABoxWithoutAHandIsAnErrorThatNamesIt) {
  PhotoHands photo = landmarks_only();
  const Image frame = frame_of({kRight});
  try {
    photo.in_boxes(frame, {{300, 10, 390, 90, true}});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("no hand found in the box 300,10,390,90"));
  }
  EXPECT_THROW(photo.in_boxes(frame, {{500, 10, 590, 90, true}}), Error) << "beside the frame";
  EXPECT_TRUE(photo.find(Image(64, 64)).empty());
}

TEST(Photo, SomethingMustSeeHands) { EXPECT_THROW(PhotoHands(nullptr, nullptr, {}), Error); }

}  // namespace
}  // namespace sinew

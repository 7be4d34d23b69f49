#include "hand/landmark_hand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/test_paths.h"
#include "hand/fit_start.h"
#include "hand/fit_test_support.h"
#include "hand/glb_hand.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

constexpr int kWidth = 640, kHeight = 480;

/// A box around points, a fifth larger.
HandBox box_around(const std::array<Vec2, kHandKeypoints>& points, bool is_right) {
  HandBox box = {points[0][0], points[0][1], points[0][0], points[0][1], is_right};
  for (const Vec2& p : points) {
    box = {std::min(box.x1, p[0]), std::min(box.y1, p[1]), std::max(box.x2, p[0]), std::max(box.y2, p[1]),
           is_right};
  }
  const double more = 0.1 * std::max(box.x2 - box.x1, box.y2 - box.y1);
  return {box.x1 - more, box.y1 - more, box.x2 + more, box.y2 + more, is_right};
}

struct Seen {
  FoundHand found;
  HandKeypoints truth{};  // metres in the camera
};

/// A right hand as a detector finds it, with landmarks that are a little off.
Seen seen_hand(unsigned seed, const Intrinsics& camera, double depth) {
  TestDice dice(seed);
  const FitKinematics hand(builtin_skeleton());
  Seen out;
  out.truth = hand.points(random_state(dice, depth, 0.6));
  FitTarget target = target_of(out.truth, camera);
  add_noise(target, dice, 0.3);
  out.found.landmarks = target.pixels;
  out.found.world = target.metres;
  out.found.box = box_around(target.pixels, true);
  return out;
}

FoundHand mirrored(FoundHand found) {
  for (Vec2& p : found.landmarks) p[0] = kWidth - p[0];
  for (Vec3& p : found.world) p[0] = -p[0];
  const HandBox& b = found.box;
  found.box = {kWidth - b.x2, b.y1, kWidth - b.x1, b.y2, !b.is_right};
  return found;
}

LandmarkHandOptions options_of(std::shared_ptr<const HandModel> model,
                               std::optional<Intrinsics> camera = {}) {
  LandmarkHandOptions options;
  options.frame_width = kWidth;
  options.frame_height = kHeight;
  options.camera = camera;
  options.model = std::move(model);
  return options;
}

Vec3 times(double s, const Vec3& p) { return {s * p[0], s * p[1], s * p[2]}; }

TEST(LandmarkHand, FieldsMeanWhatTheyMeanForTheNetworksHands) {
  const auto model = std::make_shared<const HandModel>(skeleton_model(), "test");
  const Seen seen = seen_hand(21, assumed_camera(5000, kWidth, kHeight), 25);
  const LandmarkHandOptions options = options_of(model);
  const HandResult hand = pose_landmarks(seen.found, options);
  EXPECT_EQ(hand.camera.fx, scaled_focal_length(5000, kWidth, kHeight));
  EXPECT_EQ(hand.camera.cx, kWidth / 2.0);
  EXPECT_EQ(hand.frame_width, kWidth);
  EXPECT_EQ(hand.frame_height, kHeight);
  ASSERT_TRUE(hand.found.has_value());
  EXPECT_EQ(hand.found.value_or(FoundHand{}).landmarks, seen.found.landmarks);
  EXPECT_EQ(hand.box.x1, seen.found.box.x1);
  const CropGeometry geometry = crop_geometry(seen.found.box, options.rescale);
  EXPECT_EQ(hand.geometry.box_size, geometry.box_size);
  for (const double beta : hand.betas) EXPECT_EQ(beta, 0);
  // cam, by the spec's formula (5.4), is where the hand stands.
  const Vec3 at = full_frame_translation(hand.cam, geometry, hand.camera);
  EXPECT_LT(distance_between(at, hand.cam_t_full), 1e-9);
  // Joints and vertices are the model's at rotmats and scale, pixels those of the camera.
  const PosedHand posed = model->pose(hand.rotmats, hand.betas);
  double error = 0;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    EXPECT_LT(distance_between(hand.joints_3d[i], times(hand.scale, posed.keypoints[i])), 1e-15);
    const Vec2 pixel = project(hand.joints_3d[i], hand.cam_t_full, hand.camera);
    EXPECT_EQ(hand.joints_2d[i], pixel);
    error += std::hypot(pixel[0] - seen.found.landmarks[i][0], pixel[1] - seen.found.landmarks[i][1]) / 21;
  }
  ASSERT_EQ(hand.vertices.size(), posed.vertices.size());
  for (std::size_t v = 0; v < posed.vertices.size(); ++v)
    EXPECT_LT(distance_between(hand.vertices[v], times(hand.scale, posed.vertices[v])), 1e-15);
  ASSERT_TRUE(hand.fit_error_px.has_value());
  EXPECT_NEAR(hand.fit_error_px.value_or(-1), error, 1e-9);
  EXPECT_LT(error, 0.02 * hand_size(seen.found.landmarks)) << "noise of 0.3 x 2 %";
}

TEST(LandmarkHand, WithoutAModelItIsTheSkeleton) {
  const Seen seen = seen_hand(22, assumed_camera(5000, kWidth, kHeight), 25);
  const HandResult hand = pose_landmarks(seen.found, options_of(nullptr));
  const HandResult same =
      pose_landmarks(seen.found, options_of(std::make_shared<const HandModel>(skeleton_model(), "test")));
  EXPECT_TRUE(hand.vertices.empty());
  EXPECT_EQ(hand.rotmats, same.rotmats);
  for (std::size_t i = 0; i < kHandKeypoints; ++i)
    EXPECT_LT(distance_between(hand.joints_3d[i], same.joints_3d[i]), 1e-15);
}

/// Exact but for the rounding of kWidth - x, which the descent may carry on.
TEST(LandmarkHand, AMirroredFrameGivesTheMirrorImage) {
  const auto model = std::make_shared<const HandModel>(skeleton_model(), "test");
  for (unsigned seed = 30; seed < 36; ++seed) {
    const Seen seen = seen_hand(seed, assumed_camera(5000, kWidth, kHeight), 25);
    const HandResult right = pose_landmarks(seen.found, options_of(model));
    const HandResult left = pose_landmarks(mirrored(seen.found), options_of(model));
    EXPECT_FALSE(left.box.is_right);
    for (std::size_t i = 0; i < right.rotmats.size(); ++i)
      EXPECT_NEAR(left.rotmats[i], right.rotmats[i], 1e-9);
    EXPECT_NEAR(left.scale, right.scale, 1e-9);
    const auto mirror = [](const Vec3& p) { return Vec3{-p[0], p[1], p[2]}; };
    EXPECT_LT(distance_between(left.cam_t_full, mirror(right.cam_t_full)), 1e-6);
    // The crop's centre and size are float32, of 9 in 1e7 after the box's few steps, cam is around 6.
    for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(left.cam[k], right.cam[k], 6 * 9e-7);
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      EXPECT_LT(distance_between(left.joints_3d[i], mirror(right.joints_3d[i])), 1e-9);
      EXPECT_NEAR(left.joints_2d[i][0], kWidth - right.joints_2d[i][0], 1e-6);
      EXPECT_NEAR(left.joints_2d[i][1], right.joints_2d[i][1], 1e-6);
    }
    for (std::size_t v = 0; v < right.vertices.size(); ++v)
      EXPECT_LT(distance_between(left.vertices[v], mirror(right.vertices[v])), 1e-9);
  }
}

/// At the border of a wide angle the network sees the hand along another line of sight than the optical axis.
/// Its world landmarks, made here as it makes them, are turned back: else the fit would bend the hand by 40
/// degrees.
TEST(LandmarkHand, WorldLandmarksAreTurnedToTheLineOfSight) {
  const Intrinsics wide = {300, 300, 320, 240};
  TestDice dice(23);
  const FitKinematics model(builtin_skeleton());
  FitState state = random_state(dice, 0.5, 0.6);
  state.wrist = {0.42, 0.1, 0.5};
  const HandKeypoints truth = model.points(state);
  FoundHand found;
  FitTarget target = target_of(truth, wide);
  found.landmarks = target.pixels;
  found.box = box_around(target.pixels, true);
  // A camera turned towards the hand's middle: z' along it, x' as level as before.
  Vec2 middle{};
  for (const Vec2& p : target.pixels) middle = {middle[0] + p[0] / 21, middle[1] + p[1] / 21};
  const double u = (middle[0] - wide.cx) / wide.fx, v = (middle[1] - wide.cy) / wide.fy;
  const double angle = std::atan(std::hypot(u, v));
  TestRotations turn = identity_pose();
  set_rotation(turn, 0, {-v / std::hypot(u, v), u / std::hypot(u, v), 0}, angle);  // z to (u, v, 1)
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    for (std::size_t r = 0; r < 3; ++r) {
      found.world[i][r] = 0;
      for (std::size_t k = 0; k < 3; ++k) found.world[i][r] += turn[3 * k + r] * (truth[i][k] - truth[0][k]);
    }
  }
  EXPECT_GT(angle, 0.6);
  const HandResult hand = pose_landmarks(found, options_of(nullptr, wide));
  EXPECT_LT(shape_error(hand.joints_3d, truth), 0.003) << "1.1 mm, of the pose prior; 7.6 without the turn";
  EXPECT_LT(hand.fit_error_px.value_or(1e9), 0.01 * hand_size(found.landmarks));
}

TEST(LandmarkHand, TheLastFrameIsWhereTheNextBegins) {
  const auto model = std::make_shared<const HandModel>(skeleton_model(), "test");
  const Seen seen = seen_hand(24, assumed_camera(5000, kWidth, kHeight), 25);
  for (const FoundHand& found : {seen.found, mirrored(seen.found)}) {
    const HandResult first = pose_landmarks(found, options_of(model));
    const HandResult second = pose_landmarks(found, options_of(model), &first);
    for (std::size_t i = 0; i < kHandKeypoints; ++i)
      EXPECT_LT(distance_between(first.joints_3d[i], second.joints_3d[i]), 2e-3);
    // From the other hand's result it begins anew.
    HandResult other = first;
    other.box.is_right = !other.box.is_right;
    EXPECT_EQ(pose_landmarks(found, options_of(model), &other).rotmats, first.rotmats);
  }
}

TEST(LandmarkHand, ErrorsAreTheFitsAndTheCrops) {
  const Seen seen = seen_hand(25, assumed_camera(5000, kWidth, kHeight), 25);
  FoundHand bad = seen.found;
  bad.landmarks[4][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(pose_landmarks(bad, options_of(nullptr)), Error);
  EXPECT_THROW(pose_landmarks(seen.found, options_of(nullptr, Intrinsics{0, 0, 0, 0})), Error);
  LandmarkHandOptions options = options_of(nullptr);
  options.rescale = -1;
  EXPECT_THROW(pose_landmarks(seen.found, options), Error);
}

}  // namespace
}  // namespace sinew

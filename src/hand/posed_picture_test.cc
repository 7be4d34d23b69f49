#include "hand/posed_picture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/test_assets.h"
#include "hand/capsule_model.h"
#include "hand/glb_hand.h"

namespace sinew {
namespace {

const HandModel& capsules() {
  static const HandModel model(capsule_model(), "test");
  return model;
}

void expect_sound(const HandPicture& picture, int width, int height) {
  EXPECT_EQ(picture.image.width, width);
  EXPECT_EQ(picture.image.height, height);
  EXPECT_GE(picture.x1, 0);
  EXPECT_GE(picture.y1, 0);
  EXPECT_LE(picture.x2, width);
  EXPECT_LE(picture.y2, height);
  EXPECT_GT(picture.x2 - picture.x1, 0.2 * std::min(width, height));
  EXPECT_GT(picture.y2 - picture.y1, 0.2 * std::min(width, height));
  ASSERT_TRUE(picture.camera.has_value());
  const Intrinsics camera = picture.camera.value_or(Intrinsics{});
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec2 seen = project(picture.joints_3d[i], {}, camera);
    EXPECT_DOUBLE_EQ(seen[0], picture.joints_2d[i][0]);
    EXPECT_DOUBLE_EQ(seen[1], picture.joints_2d[i][1]);
    EXPECT_GT(picture.joints_2d[i][0], picture.x1 - 1);
    EXPECT_LT(picture.joints_2d[i][0], picture.x2 + 1);
    EXPECT_GT(picture.joints_2d[i][1], picture.y1 - 1);
    EXPECT_LT(picture.joints_2d[i][1], picture.y2 + 1);
  }
}

/// Walls and sleeves are never that much redder than blue.
bool is_skin(const Image& image, const Vec2& at) {
  const std::uint8_t* p =
      image.pixel(static_cast<int>(std::lround(at[0])), static_cast<int>(std::lround(at[1])));
  return p[0] > 1.3 * p[2];
}

/// Joints inside the flesh are covered by skin from every side; tips are on its outline.
void expect_joints_on_skin(const HandPicture& picture) {
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const bool is_tip = i > 0 && i % 4 == 0;
    if (is_tip) continue;
    EXPECT_TRUE(is_skin(picture.image, picture.joints_2d[i])) << "joint " << i;
  }
}

TEST(PosedPicture, IsDeterministicAndDiffersBySeed) {
  const HandPicture a = draw_posed_hand_picture(capsules(), 96, 80, 5, true);
  const HandPicture b = draw_posed_hand_picture(capsules(), 96, 80, 5, true);
  EXPECT_EQ(a.image.rgb, b.image.rgb);
  EXPECT_EQ(a.joints_3d, b.joints_3d);
  const HandPicture c = draw_posed_hand_picture(capsules(), 96, 80, 6, true);
  EXPECT_NE(a.image.rgb, c.image.rgb);
  EXPECT_NE(a.joints_3d, c.joints_3d);
}

TEST(PosedPicture, JointsAreKnownAndOnSkin) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const HandPicture picture = draw_posed_hand_picture(capsules(), 128, 120, seed, seed % 2 == 0);
    SCOPED_TRACE(seed);
    expect_sound(picture, 128, 120);
    expect_joints_on_skin(picture);
    EXPECT_EQ(picture.is_right, seed % 2 == 0);
    for (const int x : {0, 127}) EXPECT_FALSE(is_skin(picture.image, {static_cast<double>(x), 0}));
  }
}

/// Bones keep their lengths: the pose is made of rotations.
TEST(PosedPicture, JointsAreAHand) {
  const HandKeypoints rest = pose_skeleton(builtin_skeleton(), identity_pose());
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const HandPicture picture = draw_posed_hand_picture(capsules(), 64, 64, seed, true);
    for (std::size_t i = 1; i < kHandKeypoints; ++i) {
      if (i % 4 == 0) continue;  // tips are vertices
      const auto parent = static_cast<std::size_t>(kOpenPoseParents[i]);
      EXPECT_NEAR(distance_between(picture.joints_3d[i], picture.joints_3d[parent]),
                  distance_between(rest[i], rest[parent]), 1e-9);
    }
  }
}

TEST(PosedPicture, LeftHandsAreMirrorImages) {
  const HandPicture right = draw_posed_hand_picture(capsules(), 96, 80, 3, true);
  const HandPicture left = draw_posed_hand_picture(capsules(), 96, 80, 3, false);
  EXPECT_FALSE(left.is_right);
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    EXPECT_DOUBLE_EQ(left.joints_3d[i][0], -right.joints_3d[i][0]);
    EXPECT_EQ(left.joints_3d[i][1], right.joints_3d[i][1]);
    EXPECT_EQ(left.joints_3d[i][2], right.joints_3d[i][2]);
    EXPECT_NEAR(left.joints_2d[i][0], 96 - right.joints_2d[i][0], 1e-9);
  }
  EXPECT_EQ(left.y1, right.y1);
  EXPECT_EQ(left.y2, right.y2);
  EXPECT_NEAR(left.x1, 96 - right.x2, 1.01) << "rounded outwards";
  expect_joints_on_skin(left);
}

TEST(PosedPicture, RefusesSizes) {
  for (const auto& [width, height] : {std::pair{63, 64}, std::pair{64, 4097}, std::pair{0, 0}}) {
    EXPECT_THROW(draw_posed_hand_picture(capsules(), width, height, 0, true), Error);
  }
}

TEST(PosedPicture, OfTheGenericHand) {
  const auto path = asset_file("generic_hand_right.glb");
  if (!path) GTEST_SKIP() << kNoAssets;
  const HandModel model(load_glb_hand(*path), *path);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const HandPicture picture = draw_posed_hand_picture(model, 160, 120, seed, true);
    expect_sound(picture, 160, 120);
    expect_joints_on_skin(picture);
  }
}

}  // namespace
}  // namespace sinew

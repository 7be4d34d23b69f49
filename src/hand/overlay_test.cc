#include "hand/overlay.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "hand/capsule_model.h"

namespace sinew {
namespace {

/// A box, and points on a slope.
HandResult sample_hand(bool is_right) {
  HandResult result;
  result.box = {10, 20, 110.5, 140, is_right};
  result.geometry = {60.25F, 80, 266.5};
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const auto k = static_cast<double>(i);
    result.joints_2d[i] = {40 + 5 * k, 50 + 3 * k};
  }
  return result;
}

bool is(const std::uint8_t* p, int r, int g, int b) { return p[0] == r && p[1] == g && p[2] == b; }

std::size_t count_differences(const Image& a, const Image& b) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) different += a.rgb[i] != b.rgb[i] ? 1 : 0;
  return different;
}

TEST(DrawHand, DrawsBoxAndSkeleton) {
  const Image before(320, 240);
  Image right = before;
  draw_hand(right, sample_hand(true));
  Image left = before;
  draw_hand(left, sample_hand(false));
  // Sides have their own colour; the box's corner pixel is covered in full.
  EXPECT_NE(0, std::memcmp(right.pixel(10, 20), left.pixel(10, 20), 3));
  EXPECT_FALSE(is(right.pixel(10, 20), 0, 0, 0));
  EXPECT_TRUE(is(right.pixel(40, 50), 255, 255, 255)) << "the wrist is white";
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec2 p = sample_hand(true).joints_2d[i];
    EXPECT_FALSE(is(right.pixel(static_cast<int>(p[0]), static_cast<int>(p[1])), 0, 0, 0)) << "joint " << i;
  }
  EXPECT_TRUE(is(right.pixel(300, 230), 0, 0, 0)) << "nothing far from the hand";
}

TEST(DrawMesh, TheMeshLiesUnderTheJoints) {
  const HandModel model(skeleton_model(), "test");
  HandResult result = sample_hand(true);
  result.frame_width = 320;
  result.frame_height = 240;
  result.camera = {320, 320, 160, 120};
  result.cam_t_full = {0, 0, 2};
  result.vertices.assign(kHandKeypoints, Vec3{});
  // The model's first face, as a triangle around the middle of the frame: 160 pixels wide, 80 high.
  result.vertices[0] = {-0.5, -0.25, 0};
  result.vertices[1] = {0.5, -0.25, 0};
  result.vertices[2] = {0, 0.25, 0};
  const Image before(320, 240);
  Image after = before;
  draw_mesh(after, result, model);
  EXPECT_GT(after.pixel(160, 110)[2], after.pixel(160, 110)[0]) << "light blue";
  EXPECT_TRUE(is(after.pixel(160, 200), 0, 0, 0));
  EXPECT_TRUE(is(after.pixel(60, 110), 0, 0, 0));
  // Pixel 0 covers 0..1: the edges lie at 80 and 240, and the picture of this symmetric triangle is symmetric
  // about 160, the border of columns 159 and 160.
  for (int offset = 1; offset < 70; ++offset) {
    EXPECT_EQ(0, std::memcmp(after.pixel(160 - offset, 85), after.pixel(159 + offset, 85), 3)) << offset;
  }
  EXPECT_EQ(mesh_of(result, model).faces[0], (Face{0, 1, 2}));
  result.box.is_right = false;
  EXPECT_EQ(mesh_of(result, model).faces[0], (Face{0, 2, 1})) << "a mirrored mesh has to look outwards";

  result.vertices.clear();
  Image untouched = before;
  draw_mesh(untouched, result, model);
  EXPECT_EQ(count_differences(untouched, before), 0U);
}

/// A wild network puts joints anywhere; the picture must survive it, and quickly.
TEST(DrawHand, SurvivesWildNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  Image plain(64, 48);
  for (const double wild : {nan, inf, -inf, 1e300, -1e300, 1e18, 2147483648.0, -9e15}) {
    HandResult result = sample_hand(true);
    for (std::size_t i = 0; i < kHandKeypoints; i += 2) result.joints_2d[i] = {wild, i % 4 == 0 ? wild : 10};
    result.box = {-1e9, -5, 1e9, 1e9, true};
    Image frame = plain;
    draw_hand(frame, result);
    EXPECT_EQ(frame.rgb.size(), plain.rgb.size());
  }
  Image frame = plain;
  HandResult outside = sample_hand(true);
  outside.box = {-500, -500, -400, -400, true};
  for (Vec2& p : outside.joints_2d) p = {-1000, -1000};
  draw_hand(frame, outside);
  EXPECT_EQ(count_differences(frame, plain), 0U);
}

Image grey(int width, int height) {
  Image image(width, height);
  std::ranges::fill(image.rgb, std::uint8_t{90});
  return image;
}

TEST(DrawAll, OneHandIsDrawMesh) {
  const HandModel model(capsule_model(), "test");
  const HandResult result = capsule_result(model, true);
  Image one = grey(320, 240);
  draw_mesh(one, result, model);
  Image all = grey(320, 240);
  draw_all(all, std::vector{result}, &model);
  EXPECT_EQ(one.rgb, all.rgb);
  EXPECT_GT(count_differences(one, grey(320, 240)), 3U * 5000);
  draw_all(all, {}, &model, true);
  EXPECT_EQ(one.rgb, all.rgb) << "no hands, no change";
}

TEST(DrawAll, NearerHandsHideFartherOnesInAnyOrder) {
  const HandModel model(capsule_model(), "test");
  const HandResult near = capsule_result(model, true);
  HandResult far = near;
  far.cam_t_full = {-0.08, 0.11, 0.65};  // partly behind
  Image alone = grey(320, 240);
  draw_mesh(alone, near, model);
  Image first = grey(320, 240);
  draw_all(first, std::vector{near, far}, &model);
  Image second = grey(320, 240);
  draw_all(second, std::vector{far, near}, &model);
  EXPECT_EQ(first.rgb, second.rgb);
  EXPECT_GT(count_differences(first, alone), 300U);
  // Painted one over the other, the far hand would be in front.
  Image painted = grey(320, 240);
  draw_mesh(painted, near, model);
  draw_mesh(painted, far, model);
  EXPECT_GT(count_differences(first, painted), 300U);
  // Where the near hand covers a pixel in full, it is what is seen.
  const Mesh mesh = mesh_of(near, model);
  const Layer layer = render({{&mesh, near.cam_t_full}}, render_camera(near.camera), 320, 240);
  for (int y = 0; y < 240; ++y) {
    for (int x = 0; x < 320; ++x) {
      if (layer.pixel(x, y)[3] != 255) continue;
      ASSERT_EQ(0, std::memcmp(first.pixel(x, y), layer.pixel(x, y), 3)) << x << "," << y;
    }
  }
}

TEST(DrawAll, LeftHandsAreExactMirrorImages) {
  const HandModel model(capsule_model(), "test");
  std::vector<HandResult> right = {capsule_result(model, true), capsule_result(model, true)};
  std::vector<HandResult> left = {capsule_result(model, false), capsule_result(model, false)};
  right[1].cam_t_full = {-0.05, 0.09, 0.7};
  left[1].cam_t_full = {0.05, 0.09, 0.7};
  Image plain = grey(320, 240);
  draw_all(plain, right, &model);
  Image mirror = grey(320, 240);
  draw_all(mirror, left, &model);
  EXPECT_EQ(mirrored_image(plain).rgb, mirror.rgb);
}

TEST(DrawAll, SkeletonsAndBoxes) {
  const HandModel model(capsule_model(), "test");
  const HandResult result = capsule_result(model, true);
  Image skeleton = grey(320, 240);
  draw_all(skeleton, std::vector{result}, nullptr, true);
  Image hand = grey(320, 240);
  draw_hand(hand, result);
  EXPECT_EQ(skeleton.rgb, hand.rgb) << "without a mesh the hand is its skeleton";
  Image plain = grey(320, 240);
  draw_all(plain, std::vector{result}, &model);
  Image boxed = grey(320, 240);
  draw_all(boxed, std::vector{result}, &model, true);
  EXPECT_GT(boxed.pixel(100, 130)[1], boxed.pixel(100, 130)[0]) << "a green box";
  EXPECT_TRUE(is(plain.pixel(100, 130), 90, 90, 90));
}

TEST(DrawAll, HandsOfOnePictureHaveOneCamera) {
  const HandModel model(capsule_model(), "test");
  std::vector<HandResult> results = {capsule_result(model, true), capsule_result(model, true)};
  results[1].camera.fx += 1;
  Image image = grey(320, 240);
  EXPECT_THROW(draw_all(image, results, &model), Error);
}

}  // namespace
}  // namespace sinew

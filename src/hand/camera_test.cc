#include "hand/camera.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "base/test_paths.h"
#include "io/safetensors.h"

namespace sinew {
namespace {

/// An element of a golden file by its row-major number.
class Golden {
 public:
  explicit Golden(const std::string& path) : file_(open_safetensors(path)) {}
  double at(const std::string& name, std::int64_t i) const { return element(file_->get(name), i); }
  std::int64_t rows(const std::string& name) const { return file_->get(name).shape[0]; }
  Vec3 vec3(const std::string& name, std::int64_t row) const {
    return {at(name, 3 * row), at(name, 3 * row + 1), at(name, 3 * row + 2)};
  }

 private:
  std::unique_ptr<Checkpoint> file_;
};

/// The goldens' own bar (golden README, section 3): 2e-5 relative to max(1, |v|).
void expect_near(double actual, double expected, const std::string& what, double bar = 2e-5) {
  EXPECT_NEAR(actual, expected, bar * std::max(1.0, std::abs(expected))) << what;
}

TEST(CameraGolden, CropToFull) {
  const auto path = shared_file("golden/hamer/geometry.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const Golden golden(*path);
  const std::int64_t cases = golden.rows("crop_to_full.cam");
  ASSERT_EQ(cases, 64);
  for (std::int64_t i = 0; i < cases; ++i) {
    const double focal = golden.at("crop_to_full.focal", i);
    const Intrinsics camera = {focal, focal, golden.at("crop_to_full.img_size", 2 * i) / 2,
                               golden.at("crop_to_full.img_size", 2 * i + 1) / 2};
    const CropGeometry crop = {static_cast<float>(golden.at("crop_to_full.box_center", 2 * i)),
                               static_cast<float>(golden.at("crop_to_full.box_center", 2 * i + 1)),
                               golden.at("crop_to_full.box_size", i)};
    const Vec3 t = full_frame_translation(golden.vec3("crop_to_full.cam", i), crop, camera);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto at = 3 * i + static_cast<std::int64_t>(axis);
      const std::string what = fmt::format("case {} axis {}", i, axis);
      expect_near(t[axis], golden.at("crop_to_full.out", at), what);
      // The same formula in the same arithmetic: rounding alone, a few steps of it.
      expect_near(t[axis], golden.at("f64.crop_to_full.out", at), what + " f64", 1e-13);
    }
  }
}

TEST(CameraGolden, Perspective) {
  const auto path = shared_file("golden/hamer/geometry.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const Golden golden(*path);
  for (std::int64_t i = 0; i < golden.rows("persp.points"); ++i) {
    const Vec3 translation = golden.vec3("persp.translation", i);
    for (std::int64_t j = 0; j < 21; ++j) {
      const Vec3 point = golden.vec3("persp.points", 21 * i + j);
      for (std::size_t axis = 0; axis < 2; ++axis) {
        const auto k = static_cast<std::int64_t>(axis);
        // the golden's 2D points are relative to the centre
        const Intrinsics camera = {golden.at("persp.focal", 2 * i), golden.at("persp.focal", 2 * i + 1), 0,
                                   0};
        expect_near(project(point, translation, camera)[axis], golden.at("persp.out", 2 * (21 * i + j) + k),
                    fmt::format("case {} point {} axis {}", i, j, axis));
      }
    }
  }
}

/// The demo's arithmetic on a batch of three crops of one frame.
TEST(CameraGolden, DemoArithmetic) {
  const auto path = shared_file("golden/hamer/e2e.safetensors");
  if (!path) GTEST_SKIP() << kNoShared;
  const Golden golden(*path);
  const double focal = golden.at("demo.scaled_focal_length", 0);
  EXPECT_EQ(focal, 25000);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto width = static_cast<int>(golden.at("img_size", 2 * i));
    const auto height = static_cast<int>(golden.at("img_size", 2 * i + 1));
    const CropGeometry crop = {static_cast<float>(golden.at("box_center", 2 * i)),
                               static_cast<float>(golden.at("box_center", 2 * i + 1)),
                               golden.at("box_size", i)};
    const Intrinsics camera = assumed_camera(golden.at("focal_length", 2 * i), width, height);
    EXPECT_EQ(camera.fx, focal);
    EXPECT_EQ(camera.fy, focal);
    Vec3 cam = golden.vec3("pred_cam", i);
    cam[1] *= golden.at("right", i) != 0 ? 1 : -1;
    EXPECT_EQ(cam, golden.vec3("demo.pred_cam_flipped", i));
    const Vec3 t = full_frame_translation(cam, crop, camera);
    const Vec3 expected = golden.vec3("demo.cam_t_full", i);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      expect_near(t[axis], expected[axis], fmt::format("crop {} axis {}", i, axis));
    }
    for (std::int64_t j = 0; j < 21; ++j) {
      const Vec2 pixel = project(golden.vec3("demo.keypoints_3d", 21 * i + j), t, camera);
      for (std::size_t axis = 0; axis < 2; ++axis) {
        expect_near(pixel[axis],
                    golden.at("demo.keypoints_full_px", 2 * (21 * i + j) + static_cast<std::int64_t>(axis)),
                    fmt::format("crop {} point {} axis {}", i, j, axis));
      }
    }
  }
}

TEST(Camera, ScaledFocalLengthIsOfTheLongerSide) {
  EXPECT_EQ(scaled_focal_length(5000, 1280, 720), 25000);
  EXPECT_EQ(scaled_focal_length(5000, 720, 1280), 25000);
  EXPECT_EQ(scaled_focal_length(5000, 256, 256), 5000);
}

/// hostile_inputs row 33: a hand put before a known camera comes back at the place where it was put.
TEST(Camera, SyntheticCameraRoundTripRecoversTheTranslation) {
  std::mt19937 random(33);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  for (int round = 0; round < 100; ++round) {
    const double width = uniform(200, 4000), height = uniform(200, 4000);
    const CropGeometry crop = {static_cast<float>(uniform(0, width)), static_cast<float>(uniform(0, height)),
                               uniform(50, 1000)};
    // Every other camera as a calibration gives it: off the centre, pixels not quite square.
    const double focal = uniform(300, 30000);
    const bool calibrated = round % 2 == 1;
    const Intrinsics camera = {focal, calibrated ? focal * uniform(0.9, 1.1) : focal,
                               calibrated ? uniform(0, width) : width / 2,
                               calibrated ? uniform(0, height) : height / 2};
    const Vec3 truth = {uniform(-1, 1), uniform(-1, 1), uniform(0.2, 60)};
    // What the network would have to say for a hand at `truth`: the crop's plane is box_size pixels for 2/s
    // metres at that depth, and tx, ty are counted from the crop's centre, not the frame's (spec hamer 5.4
    // solved for s, tx, ty).
    const double scale = 2 * std::sqrt(camera.fx * camera.fy) / (crop.box_size * truth[2]);
    const Vec3 cam = {scale, truth[0] - (crop.center_x - camera.cx) * truth[2] / camera.fx,
                      truth[1] - (crop.center_y - camera.cy) * truth[2] / camera.fy};
    const Vec3 t = full_frame_translation(cam, crop, camera);
    // The guard of 1e-9 shifts the scale by 1e-9 / (box_size * s), at most 1e-9 / (2 f / z) = 1e-10 of it.
    for (std::size_t axis = 0; axis < 3; ++axis) expect_near(t[axis], truth[axis], "translation", 1e-8);
    // A point at the hand's origin is seen where a camera at `truth` sees it.
    const Vec2 pixel = project({0, 0, 0}, t, camera);
    expect_near(pixel[0], camera.fx * truth[0] / truth[2] + camera.cx, "x", 1e-6);
    expect_near(pixel[1], camera.fy * truth[1] / truth[2] + camera.cy, "y", 1e-6);
    const Vec3 back = crop_camera(t, crop, camera);
    for (std::size_t axis = 0; axis < 3; ++axis) expect_near(back[axis], cam[axis], "cam", 1e-9);
  }
}

/// In the crop's own view the projection is s/2 * (X + tx) * box_size about the box's centre, for points in
/// the plane of the translation.
TEST(Camera, AgreesWithTheWeakPerspectiveOfTheCrop) {
  const CropGeometry crop = {400, 100, 200};
  const Vec3 cam = {0.8, 0.05, -0.1};
  const Intrinsics camera = assumed_camera(5000, 640, 480);
  const Vec3 t = full_frame_translation(cam, crop, camera);
  const Vec2 pixel = project({0.03, -0.02, 0}, t, camera);
  EXPECT_NEAR(pixel[0], 400 + 200 * (0.8 / 2) * (0.03 + 0.05), 1e-6);
  EXPECT_NEAR(pixel[1], 100 + 200 * (0.8 / 2) * (-0.02 - 0.1), 1e-6);
}

TEST(Camera, ZeroScaleIsGuarded) {
  const Vec3 t = full_frame_translation({0, 0, 0}, {320, 240, 100}, {1000, 1000, 320, 240});
  EXPECT_EQ(t[0], 0);
  EXPECT_DOUBLE_EQ(t[2], 2 * 1000 / 1e-9);
}

}  // namespace
}  // namespace sinew

// From photo to mesh with the real networks: what the pictures of shared/data/hands must give.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "backend/cpu/cpu_backend.h"
#include "base/test_assets.h"
#include "hand/boxes.h"
#include "hand/fit.h"
#include "hand/hand_model_file.h"
#include "hand/photo.h"
#include "hand/truth.h"
#include "io/image_codec.h"
#include "runtime/finder.h"

namespace sinew {
namespace {

class HandPhotos : public testing::Test {
 protected:
  void SetUp() override {
    const auto palm = asset_file("palm_detection_full.tflite"),
               landmark = asset_file("hand_landmark_full.tflite"),
               mesh = asset_file("generic_hand_right.glb");
    if (!palm || !landmark || !mesh) GTEST_SKIP() << kNoAssets;
    const auto pictures = shared_file("data/hands");
    if (!pictures) GTEST_SKIP() << kNoShared;
    folder_ = *pictures;
    palm_ = *palm;
    landmark_ = *landmark;
    model_ = open_hand_model(*mesh);
    photo_ = photo();
  }

  std::unique_ptr<PhotoHands> photo(const std::optional<Intrinsics>& camera = {}) const {
    const std::unique_ptr<Backend> backend = make_cpu_backend({.threads = 1});
    FinderNetworks networks = open_finder_networks(*backend, palm_, landmark_);
    PhotoOptions options;
    options.model = model_;
    options.camera = camera;
    auto finder = std::make_unique<HandFinder>(std::move(networks.palm), std::move(networks.landmark));
    return std::make_unique<PhotoHands>(std::move(finder), nullptr, options);
  }
  std::vector<HandResult> hands(const std::string& file) {
    return photo_->find(read_image(folder_ + "/" + file));
  }

  std::string folder_, palm_, landmark_;
  std::shared_ptr<const HandModel> model_;
  std::unique_ptr<PhotoHands> photo_;
};

/// The bars of the issue: at least 11 of 12 found with an overlap of 0.5 and their side right; the fitted
/// joints within 4 % of the hand's size of the landmarks, on the mean; no joint beyond its limit.
TEST_F(HandPhotos, AreFoundAndFitted) {
  int found = 0;
  const auto pictures = read_boxes(folder_ + "/boxes.json");
  ASSERT_EQ(pictures.size(), 12U);
  for (const auto& [file, truth] : pictures) {
    const HandBox& box = truth.hands.at(0);
    for (const HandResult& hand : hands(file)) {
      found += box_overlap(hand.box, box) >= 0.5 && hand.box.is_right == box.is_right ? 1 : 0;
      ASSERT_TRUE(hand.found.has_value()) << file;
      const double size = hand_size(hand.found.value_or(FoundHand{}).landmarks);
      EXPECT_LE(hand.fit_error_px.value_or(1e9), 0.04 * size) << file;
      // Rounding of angles to matrices and back.
      EXPECT_LE(beyond_limits(hand_angles(model_->skeleton(hand.betas), hand.rotmats)), 1e-9) << file;
      EXPECT_EQ(hand.vertices.size(), model_->vertex_count());
    }
  }
  EXPECT_GE(found, 11);
}

TEST_F(HandPhotos, TheRenderedHandComesOutWhereItIs) {
  const HandTruth truth = read_truth(folder_ + "/synthetic_right_7.json");
  const std::vector<HandResult> found = hands("synthetic_right_7.png");
  ASSERT_EQ(found.size(), 1U);
  const JointError error = joint_error(found[0], truth);
  EXPECT_TRUE(error.side_is_right);
  EXPECT_LE(error.aligned_mm, 25);
  EXPECT_LE(error.percent, 5);
}

/// With the picture's own camera the translation is metric, up to the size of the hand, which no picture
/// tells.
TEST_F(HandPhotos, KnownIntrinsicsPlaceTheHand) {
  const auto found =
      photo(Intrinsics{601.832, 601.832, 128, 128})->find(read_image(folder_ + "/synthetic_right_7.png"));
  ASSERT_EQ(found.size(), 1U);
  // The picture's note: the hand's origin stands 0.6 m away, its wrist at z = 0.607 m; drawn 0.188 m long
  // from wrist to the middle finger's tip.
  const double wrist = found[0].joints_3d[0][2] + found[0].cam_t_full[2];
  const double size = found[0].scale;
  EXPECT_NEAR(wrist, 0.607, 0.2 * 0.607) << "scale " << size;
}

}  // namespace
}  // namespace sinew

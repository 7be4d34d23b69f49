// Hands in the pictures of ../shared/data/hands, found with MediaPipe's networks: against boxes drawn by
// eye, and against another runner's landmarks (golden.json).
#include "hand/finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/test_assets.h"
#include "hand/boxes.h"
#include "image/resize.h"
#include "io/image_codec.h"
#include "runtime/finder.h"
#include "runtime/runtime.h"

namespace sinew {
namespace {

class HandFinderPictures : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string ending = std::string("_") + GetParam() + ".tflite";
    const auto palm = asset_file("palm_detection" + ending);
    const auto landmark = asset_file("hand_landmark" + ending);
    if (!palm || !landmark) GTEST_SKIP() << kNoAssets;
    const auto pictures = shared_file("data/hands");
    if (!pictures) GTEST_SKIP() << kNoShared;
    folder_ = *pictures;
    backend_ = make_backend("cpu", {.threads = 1});
    FinderNetworks networks = open_finder_networks(*backend_, *palm, *landmark);
    finder_ = std::make_unique<HandFinder>(std::move(networks.palm), std::move(networks.landmark));
    pictures_ = read_boxes(folder_ + "/boxes.json");
    ASSERT_EQ(pictures_.size(), 12U);
  }
  Image picture(const std::string& file) const { return read_image(folder_ + "/" + file); }

  std::string folder_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<HandFinder> finder_;
  std::map<std::string, ImageBoxes> pictures_;
};

/// The bar of the issue for the full networks, and the same for lite: 11 of 12, overlap 0.5, side right.
/// Found are 12 with both; the mean overlap is the ground of kBoxMargin (finder.h), held here to its first
/// digit.
TEST_P(HandFinderPictures, AreFoundWithTheirSide) {
  int found = 0;
  double sum = 0;
  for (const auto& [file, truth] : pictures_) {
    const auto hands = finder_->find(picture(file));
    EXPECT_LE(hands.size(), 1U) << file << ": a hand that is not there, or one twice";
    if (hands.empty()) continue;
    const HandBox& expected = truth.hands.at(0);
    const double overlap = box_overlap(hands[0].box, expected);
    sum += overlap;
    if (overlap >= 0.5 && hands[0].box.is_right == expected.is_right) ++found;
    EXPECT_GE(hands[0].presence, 0.5) << file;
  }
  EXPECT_GE(found, 11);
  EXPECT_GT(sum / 12, 0.8);
}

/// What is right of a picture is right of its mirror image: sides change, boxes are mirrored.
TEST_P(HandFinderPictures, MirroredPicturesGiveTheOtherHand) {
  int agree = 0;
  for (const auto& [file, truth] : pictures_) {
    const Image frame = picture(file);
    Image mirrored(frame.width, frame.height);
    for (int y = 0; y < frame.height; ++y) {
      for (int x = 0; x < frame.width; ++x)
        std::memcpy(mirrored.pixel(frame.width - 1 - x, y), frame.pixel(x, y), 3);
    }
    const auto hands = finder_->find(mirrored);
    if (hands.size() != 1) continue;
    HandBox expected = truth.hands.at(0);
    std::swap(expected.x1, expected.x2);
    expected.x1 = frame.width - expected.x1;
    expected.x2 = frame.width - expected.x2;
    if (box_overlap(hands[0].box, expected) >= 0.5 && hands[0].box.is_right != expected.is_right) ++agree;
  }
  EXPECT_GE(agree, 11);
}

/// Far away: a picture pasted small into a large grey one is found in a tile, and in its place.
TEST_P(HandFinderPictures, ASmallHandOfALargePictureIsFound) {
  const std::string file = "sld_5_IMG_5261.jpg";
  const Image hand = resize_bilinear(picture(file), 64, 64);
  Image frame(1280, 960);
  std::fill(frame.rgb.begin(), frame.rgb.end(), std::uint8_t{150});
  for (int y = 0; y < 64; ++y) std::memcpy(frame.pixel(900, 700 + y), hand.pixel(0, y), 3 * 64);
  const auto hands = finder_->find(frame);
  ASSERT_EQ(hands.size(), 1U);
  HandBox expected = pictures_.at(file).hands.at(0);
  for (double* v : {&expected.x1, &expected.x2}) *v = 900 + 0.64 * *v;
  for (double* v : {&expected.y1, &expected.y2}) *v = 700 + 0.64 * *v;
  EXPECT_GE(box_overlap(hands[0].box, expected), 0.5);
  EXPECT_TRUE(hands[0].box.is_right);
  EXPECT_GT(finder_->runs().palm, 3) << "found in a tile";
}

/// The rendered hand's joints are known exactly. The landmarks of a network that was taught another hand's
/// joints differ by 2.9 % of the hand's size on the mean, whatever the crop; so do the prototype's.
TEST_P(HandFinderPictures, LandmarksOfTheRenderedHand) {
  const auto truth = nlohmann::json::parse(std::ifstream(folder_ + "/synthetic_right_7.json"));
  const auto joints = truth.at("joints_px").get<std::vector<std::array<double, 2>>>();
  const auto hands = finder_->find(picture("synthetic_right_7.png"));
  ASSERT_EQ(hands.size(), 1U);
  ASSERT_EQ(joints.size(), kHandKeypoints);
  const HandBox& box = pictures_.at("synthetic_right_7.png").hands.at(0);
  double sum = 0;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    sum += std::hypot(hands[0].landmarks[i][0] - joints[i][0], hands[0].landmarks[i][1] - joints[i][1]);
  }
  EXPECT_LT(sum / kHandKeypoints, 0.04 * (box.y2 - box.y1));
}

/// `frame` with half its longer side more on each side, the edge repeated.
Image padded(const Image& frame, int margin) {
  Image out(frame.width + 2 * margin, frame.height + 2 * margin);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const std::uint8_t* from = frame.pixel(std::clamp(x - margin, 0, frame.width - 1),
                                             std::clamp(y - margin, 0, frame.height - 1));
      std::memcpy(out.pixel(x, y), from, 3);
    }
  }
  return out;
}

/// golden.json has pictures of the full networks only.
class HandFinderGolden : public HandFinderPictures {};
INSTANTIATE_TEST_SUITE_P(Networks, HandFinderGolden, testing::Values("full"));

/// golden.json has the landmarks' bounding boxes of another runner, which looked once at each picture padded
/// by half its longer side. Half a pixel is between the two conventions (there pixels' middles are whole
/// numbers), pictures are shrunk otherwise (OpenCV's area filter there, blocks and bilinear here), and a palm
/// a little elsewhere moves the crop: one hand's landmarks after one look scatter by 0.7 % of its size over
/// views of the mean picture and 3.7 % of the worst, hagrid_call.
TEST_P(HandFinderGolden, AgreesWithTheRecordedPictures) {
  const auto path = shared_file("data/mediapipe/golden.json");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto golden = nlohmann::json::parse(std::ifstream(*path)).at("photos_padded_50_percent_replicate");
  FinderOptions options;
  options.refine = false;
  int compared = 0;
  for (const auto& [file, recorded] : golden.items()) {
    if (recorded.empty()) continue;
    const Image frame = picture(file);
    const int margin = std::max(frame.width, frame.height) / 2;
    const auto hands = finder_->find(padded(frame, margin), options);
    ASSERT_EQ(hands.size(), 1U) << file;
    const HandBox& box = hands[0].box;
    const double x = (box.x2 - box.x1) * kBoxMargin / (1 + 2 * kBoxMargin) - margin;
    const double y = (box.y2 - box.y1) * kBoxMargin / (1 + 2 * kBoxMargin) - margin;
    const HandBox found = {box.x1 + x, box.y1 + y, box.x2 - x - 2 * margin, box.y2 - y - 2 * margin};
    const auto numbers = recorded.at(0).at("landmark_box").get<std::array<double, 4>>();
    const HandBox expected = {numbers[0], numbers[1], numbers[2], numbers[3]};
    const double size = std::max(expected.x2 - expected.x1, expected.y2 - expected.y1);
    for (const auto side : {&HandBox::x1, &HandBox::y1, &HandBox::x2, &HandBox::y2}) {
      EXPECT_NEAR(found.*side, expected.*side, 0.04 * size) << file;
    }
    EXPECT_EQ(box.is_right, recorded.at(0).at("right").get<double>() >= 0.5) << file;
    EXPECT_NEAR(hands[0].presence, recorded.at(0).at("presence").get<double>(), 0.02) << file;
    ++compared;
  }
  EXPECT_EQ(compared, 11);
}

INSTANTIATE_TEST_SUITE_P(Networks, HandFinderPictures, testing::Values("full", "lite"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sinew

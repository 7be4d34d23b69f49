#include "hand/truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/test_paths.h"
#include "hand/skeleton.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json sample() {
  Json json = {{"is_right", 0}, {"joints_px", Json::array()}, {"joints_m", Json::array()}};
  for (int i = 0; i < kHandKeypoints; ++i) {
    json["joints_px"].push_back({2.0 * i, 100 - i});
    json["joints_m"].push_back({0.01 * i, 0.02, -0.001 * i});
  }
  return json;
}

std::string message(const Json& json) {
  try {
    parse_truth(json.dump(), "t.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Truth, IsRead) {
  const HandTruth truth = parse_truth(sample().dump(), "t.json");
  EXPECT_FALSE(truth.is_right);
  EXPECT_EQ(truth.pixels[20], (Vec2{40, 80}));
  EXPECT_EQ(truth.metres[3], (Vec3{0.01 * 3, 0.02, -0.001 * 3}));
}

TEST(Truth, SaysWhatIsWrong) {
  Json json = sample();
  json["joints_px"].erase(20);
  EXPECT_THAT(message(json), HasSubstr("t.json: joints_px must be a list of 21 points"));
  json = sample();
  json["joints_m"][4] = {1, 2};
  EXPECT_THAT(message(json), HasSubstr("joints_m[4] must be 3 numbers"));
  json = sample();
  json["joints_m"][4] = {1, 2, "x"};
  EXPECT_THAT(message(json), HasSubstr("joints_m[4] must be 3 numbers"));
  json = sample();
  json["joints_px"][0] = {1e9, 0};
  EXPECT_THAT(message(json), HasSubstr("joints_px[0] is 1000000000"));
  json = sample();
  json["is_right"] = 2;
  EXPECT_THAT(message(json), HasSubstr("is_right"));
  json = sample();
  for (Json& point : json["joints_px"]) point = {3, 4};
  EXPECT_THAT(message(json), HasSubstr("all one point"));
  EXPECT_THAT(message(Json::array()), HasSubstr("expected an object"));
  EXPECT_THROW(parse_truth("{", "t.json"), Error);
}

HandKeypoints rest() { return pose_skeleton(builtin_skeleton(), identity_pose()); }

TEST(Truth, AlignmentForgivesASimilarityAndNoReflection) {
  const HandKeypoints points = rest();
  HandKeypoints moved{}, reflected{};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y, z] = points[i];
    moved[i] = {2 * y + 1, -2 * x, 2 * z - 3};  // a quarter turn, twice the size
    reflected[i] = {-x, y, z};
  }
  EXPECT_NEAR(aligned_distance(points, moved), 0, 1e-14);
  EXPECT_GT(aligned_distance(points, reflected), 0.003) << "metres: a hand is not flat enough for that";
}

TEST(Truth, OnePointMovedCountsAsAMeanOfAll) {
  HandResult result;
  HandTruth truth;
  truth.metres = result.joints_3d = rest();
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    truth.pixels[i] = result.joints_2d[i] = {static_cast<double>(10 * i), 5};
  }
  result.joints_2d[7][1] += 21;
  const JointError error = joint_error(result, truth);
  EXPECT_TRUE(error.side_is_right);
  EXPECT_DOUBLE_EQ(error.mean_px, 1);
  EXPECT_DOUBLE_EQ(error.percent, 100.0 / 200);
  EXPECT_NEAR(error.aligned_mm, 0, 1e-11);
}

TEST(Truth, PointsWithoutExtentAreMeasuredToo) { EXPECT_GT(aligned_distance(HandKeypoints{}, rest()), 0.01); }

TEST(Truth, TheSharedPictureReads) {
  const auto path = shared_file("data/hands/synthetic_right_7.json");
  if (!path) GTEST_SKIP() << kNoShared;
  const HandTruth truth = read_truth(*path);
  EXPECT_TRUE(truth.is_right);
  EXPECT_EQ(truth.pixels[0], (Vec2{138.11, 229.58}));
}

}  // namespace
}  // namespace sinew

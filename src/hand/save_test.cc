#include "hand/save.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "hand/test_hands.h"
#include "io/glb.h"
#include "io/npz.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

HandResult posed(const HandModel& model, bool is_right) {
  HandResult result;
  result.box = {0, 0, 100, 100, is_right};
  result.rotmats = crooked_pose();
  const PosedHand hand = model.pose(result.rotmats, result.betas);
  const double mirror = is_right ? 1 : -1;
  for (Vec3 v : hand.vertices) result.vertices.push_back({mirror * v[0], v[1], v[2]});
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    result.joints_3d[i] = {mirror * hand.keypoints[i][0], hand.keypoints[i][1], hand.keypoints[i][2]};
    result.joints_2d[i] = {static_cast<double>(i), 2.0 * static_cast<double>(i)};
  }
  result.cam = {1, 2, 3};
  result.cam_t_full = {0.25, -0.5, 40};
  result.camera = {12500, 12500, 320, 240};
  return result;
}

TEST(Save, NpzHoldsTheRecordsNumbers) {
  const TestFolder folder;
  const HandModel model(skeleton_model(), "test");
  const HandResult result = posed(model, false);
  save_hand(folder.file("hand"), "npz", result, model);
  const auto npz = open_npz(folder.file("hand.npz"));
  EXPECT_EQ(npz->get("vertices").shape, (Shape{kHandKeypoints, 3}));
  EXPECT_EQ(npz->get("faces").dtype, DType::kU32);
  EXPECT_EQ(npz->get("focal_length").shape, Shape());
  EXPECT_EQ(element(npz->get("focal_length"), 0), 12500);
  for (std::int64_t i = 0; i < 144; ++i) {
    EXPECT_EQ(element(npz->get("rotmats"), i),
              static_cast<float>(result.rotmats[static_cast<std::size_t>(i)]));
  }
  EXPECT_EQ(element(npz->get("vertices"), 3), static_cast<float>(result.vertices[1][0]));
  EXPECT_EQ(element(npz->get("cam_t_full"), 2), 40);
  EXPECT_EQ(element(npz->get("joints_2d"), 5), 4);
  EXPECT_EQ(element(npz->get("camera"), 2), 320);
  EXPECT_EQ(element(npz->get("scale"), 0), 1);
  EXPECT_EQ(element(npz->get("faces"), 1), 2) << "a left hand's faces are turned";
}

TEST(Save, ObjStandsInTheFramesCameraWithYUp) {
  const TestFolder folder;
  const HandModel model(skeleton_model(), "test");
  const HandResult result = posed(model, true);
  save_hand(folder.file("hand"), "obj", result, model);
  std::ifstream file(folder.file("hand.obj"));
  std::string tag;
  double x = 0, y = 0, z = 0;
  while (file >> tag && tag != "v") std::getline(file, tag);
  file >> x >> y >> z;
  EXPECT_NEAR(x, result.vertices[0][0] + 0.25, 1e-5);
  EXPECT_NEAR(y, -(result.vertices[0][1] - 0.5), 1e-5);
  EXPECT_NEAR(z, -(result.vertices[0][2] + 40), 1e-5 * 40);
}

TEST(Save, EveryFormatIsWrittenForBothSides) {
  const TestFolder folder;
  const HandModel model(skeleton_model(), "test");
  for (const bool is_right : {true, false}) {
    for (const std::string& format : save_words()) {
      if (!needs_mesh(format)) continue;
      const std::string base = folder.file(is_right ? "right" : "left");
      save_hand(base, format, posed(model, is_right), model);
      EXPECT_GT(std::ifstream(fmt::format("{}.{}", base, format), std::ios::ate).tellg(), 100) << format;
    }
  }
  EXPECT_THROW(save_hand(folder.file("x"), "stl", posed(model, true), model), Error);
}

/// The bones of a hand fitted at another size than the model's grow with its mesh.
TEST(Save, TheSkinOfAScaledHandFitsItsMesh) {
  const TestFolder folder;
  const HandModel model(skeleton_model(), "test");
  HandResult result = posed(model, true);
  save_hand(folder.file("once"), "glb", result, model);
  result.scale = 1.5;
  for (Vec3& vertex : result.vertices) {
    for (double& v : vertex) v *= result.scale;
  }
  save_hand(folder.file("scaled"), "glb", result, model);
  const GlbSkinnedMesh once = read_glb(folder.file("once.glb")), scaled = read_glb(folder.file("scaled.glb"));
  ASSERT_EQ(once.skeleton.size(), scaled.skeleton.size());
  for (std::size_t j = 0; j < once.skeleton.size(); ++j) {
    for (const std::size_t at : {3U, 7U, 11U}) {
      EXPECT_NEAR(scaled.skeleton[j].inverse_bind[at], 1.5 * once.skeleton[j].inverse_bind[at], 1e-6) << j;
    }
  }
}

TEST(Save, ListsOfFormats) {
  EXPECT_EQ(parse_save_words("obj,json"), (std::vector<std::string>{"obj", "json"}));
  for (const char* wrong : {"", "obj,", "stl", "OBJ", "obj;ply"})
    EXPECT_THROW(parse_save_words(wrong), Error) << wrong;
}

}  // namespace
}  // namespace sinew

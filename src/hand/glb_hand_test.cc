// The built-in hand: from a GLB made here, and from the real one where it is.
#include "hand/glb_hand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>

#include "base/error.h"
#include "base/test_assets.h"
#include "base/test_paths.h"
#include "hand/hand_model_file.h"
#include "hand/test_hands.h"
#include "io/atomic_file.h"
#include "io/test_folder.h"
#include "io/test_glb.h"

namespace sinew {
namespace {

using testing::HasSubstr;

GlbSkinnedMesh parsed(const TestGlb& glb) {
  const std::string bytes = glb.build();
  return parse_glb(std::as_bytes(std::span(bytes.data(), bytes.size())), "test.glb");
}

TEST(GlbHand, ASkeletonMadeAHandPosesAsTheSkeleton) {
  for (const GlbRestPose rest : {GlbRestPose::kAsModelled, GlbRestPose::kFlat}) {
    const HandModel model(hand_from_glb(parsed(skeleton_glb()), "test", rest), "test.glb");
    EXPECT_EQ(model.vertex_count(), 21U) << "the repeated vertex is one";
    EXPECT_EQ(model.faces().size(), 2U) << "and a triangle that loses its area with it is gone";
    EXPECT_EQ(model.shapes(), 0U);
    const TestRotations pose = crooked_pose();
    const PosedHand posed = model.pose(pose, {});
    const HandKeypoints expected = pose_skeleton(builtin_skeleton(), pose);
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      EXPECT_LT(distance_between(posed.keypoints[i], expected[i]), 1e-7) << i;  // the file is float32
    }
  }
}

TEST(GlbHand, BentBonesAreLaidFlat) {
  TestGlb glb = skeleton_glb();
  HandModelData bent = hand_from_glb(parsed(glb), "test", GlbRestPose::kAsModelled);
  // The same skeleton with its index finger bent, read back through a file.
  const HandModel model(bent, "test");
  TestRotations pose = identity_pose();
  set_rotation(pose, 1, {0, 0, 1}, 0.3);
  set_rotation(pose, 2, {0, 0.6, 0.8}, 0.4);
  const PosedHand posed = model.pose(pose, {});
  GlbSkinnedMesh mesh = parsed(glb);
  for (std::size_t v = 0; v < 21; ++v) mesh.positions[v] = to_webxr_axes(posed.vertices[v]);
  mesh.positions[21] = mesh.positions[0];
  for (std::size_t j = 0; j < mesh.skeleton.size(); ++j) {
    const auto& at = mesh.positions[j];  // vertex j lies on joint j
    for (std::size_t axis = 0; axis < 3; ++axis) mesh.skeleton[j].inverse_bind[4 * axis + 3] = -at[axis];
  }
  const HandModel flat(hand_from_glb(mesh, "test", GlbRestPose::kFlat), "test");
  const auto rest = flat.rest_joints({});
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    EXPECT_LT(distance_between(rest[j], builtin_skeleton().joints[j]), 1e-7) << j;
  }
}

/// The fuzzer starts from this hand. When its maker changes: write skeleton_glb().build() there.
TEST(GlbHand, TheFuzzersSeedIsTheSkeletonHand) {
  std::ifstream in(source_folder() + "/tests/fuzz/seeds/glb/hand.glb", std::ios::binary);
  const std::string seed{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(seed == skeleton_glb().build());
}

std::string error_of(const GlbSkinnedMesh& mesh) {
  try {
    const HandModel model(hand_from_glb(mesh, "test"), "test.glb");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(GlbHand, ErrorsNameJointAndVertex) {
  const GlbSkinnedMesh good = parsed(skeleton_glb());
  EXPECT_EQ(error_of(good), "accepted");
  GlbSkinnedMesh mesh = good;
  mesh.skeleton[2].name = "bone.002";
  EXPECT_THAT(error_of(mesh), HasSubstr("no joint index-finger-phalanx-intermediate"));
  mesh = good;
  mesh.skeleton[4].name = "";
  EXPECT_THAT(error_of(mesh), HasSubstr("no joint index-finger-tip"));
  mesh = good;
  mesh.weights[7] = {0.5, 0.1F, 0, 0};
  EXPECT_THAT(error_of(mesh), HasSubstr("vertex 7: weights sum to 0.6"));
  mesh = good;
  mesh.weights[7][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of(mesh), HasSubstr("vertex 7: weights sum to nan"));
  mesh = good;
  mesh.positions[3][2] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of(mesh), HasSubstr("vertex 3 is not finite"));
  mesh = good;
  mesh.skeleton[0].inverse_bind = {};
  EXPECT_THAT(error_of(mesh), HasSubstr("joint wrist has no inverse"));
  mesh = good;
  for (auto& p : mesh.positions) p[0] = -p[0];
  for (auto& joint : mesh.skeleton) joint.inverse_bind[3] = -joint.inverse_bind[3];
  EXPECT_THAT(error_of(mesh), HasSubstr("a left hand"));
  mesh = good;
  mesh.weights[4] = {0, 1, 0, 0};  // the index tip to the wrist, and the last joint too
  mesh.weights[3] = {0, 1, 0, 0};
  EXPECT_THAT(error_of(mesh), HasSubstr("no vertex belongs to joint index-finger-phalanx-distal"));
}

TEST(GlbHand, FilesAreToldApartByContent) {
  const TestFolder folder;
  write_file_atomically(folder.file("hand.bin"), skeleton_glb().build());
  EXPECT_EQ(open_hand_model(folder.file("hand.bin"))->name(), "webxr generic hand (hand.bin)");
  TestGlb left = skeleton_glb();
  left.json["nodes"][1]["name"] = "Wrist_R";
  write_file_atomically(folder.file("other.glb"), left.build());
  try {
    open_hand_model(folder.file("other.glb"));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::StartsWith(folder.file("other.glb") + ": the skin has no joint wrist"));
  }
}

/// The numbers of shared/data/hand_mesh/mano16_map.json, in the file's axes and from the wrist.
TEST(RealGlbHand, JointsAndTipsAreThoseOfTheMap) {
  const auto path = asset_file(kBuiltinHandAsset);
  if (!path) GTEST_SKIP() << kNoAssets;
  const HandModelData data = load_glb_hand(*path, GlbRestPose::kAsModelled);
  EXPECT_EQ(data.v_template.size(), 1159U);
  EXPECT_EQ(data.faces.size(), 2314U);
  const Vec3 wrist = {0.03913, 0.05578, 0.00916};
  const auto from_wrist = [&](const Vec3& p) {
    const Vec3 mano = {p[0] - data.rest_joints[0][0], p[1] - data.rest_joints[0][1],
                       p[2] - data.rest_joints[0][2]};
    const auto file = to_webxr_axes(mano);
    return Vec3{file[0] + wrist[0], file[1] + wrist[1], file[2] + wrist[2]};
  };
  const std::map<std::size_t, Vec3> joints = {
      {1, {0.03181, -0.03277, -0.01439}}, {6, {0.02933, -0.10958, 0.01484}},
      {7, {0.02543, -0.01812, 0.04421}},  {12, {0.02496, -0.09611, 0.04235}},
      {13, {0.01997, 0.01982, -0.01887}}, {15, {-0.00459, -0.02735, -0.05776}}};
  for (const auto& [j, at] : joints)
    EXPECT_LT(distance_between(from_wrist(data.rest_joints[j]), at), 2e-5) << j;
  // Vertices 3, 293, 401, 120, 219 of the file.
  const std::array<Vec3, 5> tips = {{{-0.012047, -0.041324, -0.076829},
                                     {0.028307, -0.124635, -0.008951},
                                     {0.032432, -0.133908, 0.018802},
                                     {0.025228, -0.119160, 0.047450},
                                     {0.017563, -0.091386, 0.063710}}};
  for (std::size_t t = 0; t < 5; ++t)
    EXPECT_LT(distance_between(from_wrist(data.v_template[data.tips[t]]), tips[t]), 2e-5) << t;
}

TEST(RealGlbHand, IsAClosedSurface) {
  const auto path = asset_file(kBuiltinHandAsset);
  if (!path) GTEST_SKIP() << kNoAssets;
  const auto model = open_hand_model(*path);
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> edges;  // directed
  for (const Triangle& f : model->faces()) {
    for (std::size_t i = 0; i < 3; ++i) ++edges[{f[i], f[(i + 1) % 3]}];
  }
  for (const auto& [edge, count] : edges) {
    ASSERT_EQ(count, 1);
    ASSERT_EQ(edges.count({edge.second, edge.first}), 1U) << "each edge has two sides, turned alike";
  }
  EXPECT_EQ(model->vertex_count() + model->faces().size() - edges.size() / 2, 2U) << "Euler: a sphere";
  // Outside: the volume under outward triangles is positive.
  const PosedHand flat = model->pose(identity_pose(), {});
  double volume = 0;
  for (const Triangle& f : model->faces()) {
    const Vec3 &a = flat.vertices[f[0]], &b = flat.vertices[f[1]], &c = flat.vertices[f[2]];
    volume += (a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
               a[2] * (b[0] * c[1] - b[1] * c[0])) /
              6;
  }
  EXPECT_GT(volume, 150e-6) << "cubic metres";
  EXPECT_LT(volume, 600e-6);
}

TEST(RealGlbHand, FlatBonesPointAsTheSkeletons) {
  const auto path = asset_file(kBuiltinHandAsset);
  if (!path) GTEST_SKIP() << kNoAssets;
  const HandKeypoints flat = open_hand_model(*path)->pose(identity_pose(), {}).keypoints;
  const HandKeypoints wanted = pose_skeleton(builtin_skeleton(), identity_pose());
  EXPECT_LT(distance_between(flat[0], wanted[0]), 1e-12) << "the wrist lies where the camera expects it";
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    EXPECT_LT(distance_between(flat[i], wanted[i]), 0.025) << i << ": an adult hand like the other";
    if (i < 2 || (i - 1) % 4 == 0) continue;  // the palm stays as it is
    double cosine = 0;
    const double a = distance_between(flat[i], flat[i - 1]), b = distance_between(wanted[i], wanted[i - 1]);
    for (std::size_t k = 0; k < 3; ++k)
      cosine += (flat[i][k] - flat[i - 1][k]) * (wanted[i][k] - wanted[i - 1][k]) / (a * b);
    // Tips are vertices, which bend a little with the joints before the last.
    EXPECT_GT(cosine, i % 4 == 0 ? 0.99 : 1 - 1e-9) << i;
  }
}

/// All fingers bent: tips come to the palm, and nothing flies off, tears or turns inside out.
TEST(RealGlbHand, MakesAFist) {
  const auto path = asset_file(kBuiltinHandAsset);
  if (!path) GTEST_SKIP() << kNoAssets;
  const auto model = open_hand_model(*path);
  const PosedHand flat = model->pose(identity_pose(), {});
  TestRotations pose = identity_pose();
  for (std::size_t j = 1; j <= 12; ++j) set_rotation(pose, j, {0, 0, 1}, std::numbers::pi * 80 / 180);
  const PosedHand fist = model->pose(pose, {});
  Vec3 palm{};
  for (const std::size_t i : {0, 5, 17}) {
    for (std::size_t k = 0; k < 3; ++k) palm[k] += flat.keypoints[i][k] / 3;
  }
  for (const std::size_t tip : {8, 12, 16, 20}) {
    EXPECT_GT(distance_between(flat.keypoints[tip], palm), 0.08) << tip;
    EXPECT_LT(distance_between(fist.keypoints[tip], palm), 0.055) << tip;
    EXPECT_LT(fist.keypoints[tip][1], palm[1]) << tip << ": on the palm's side";
  }
  for (const Vec3& v : fist.vertices) EXPECT_LT(distance_between(v, palm), 0.13);
  double longest = 0, longest_flat = 0;
  for (const Triangle& f : model->faces()) {
    for (std::size_t i = 0; i < 3; ++i) {
      longest = std::max(longest, distance_between(fist.vertices[f[i]], fist.vertices[f[(i + 1) % 3]]));
      longest_flat =
          std::max(longest_flat, distance_between(flat.vertices[f[i]], flat.vertices[f[(i + 1) % 3]]));
    }
  }
  EXPECT_LT(longest, 2.5 * longest_flat) << longest_flat;
}

TEST(RealGlbHand, TheLeftOneIsRefused) {
  const auto path = shared_file("data/hand_mesh/webxr_generic_hand/left.glb");
  if (!path) GTEST_SKIP() << kNoShared;
  EXPECT_THROW(open_hand_model(*path), Error);
}

}  // namespace
}  // namespace sinew

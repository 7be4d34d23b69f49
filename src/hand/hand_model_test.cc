#include "hand/hand_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/error.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

using testing::HasSubstr;

/// skeleton_model() with two shapes, pose directions and a regressor that reads each joint from its vertex.
HandModelData full() {
  HandModelData data = skeleton_model();
  data.shapes = 2;
  for (std::size_t i = 0; i < 3 * kHandKeypoints * data.shapes; ++i) {
    data.shapedirs.push_back(0.001 * static_cast<double>(i % 7));
  }
  for (std::size_t i = 0; i < 3 * kHandKeypoints * kHandPoseBlend; ++i) {
    data.posedirs.push_back(0.0001 * static_cast<double>(i % 11));
  }
  data.rest_joints.clear();
  for (std::size_t i = 0; i < kHandJoints * kHandKeypoints; ++i) {
    data.regressor.push_back(i / kHandKeypoints == i % kHandKeypoints ? 1 : 0);
  }
  return data;
}

TEST(HandModel, WithoutBlendsItIsTheSkeleton) {
  const HandModel model(skeleton_model(), "test");
  const TestRotations pose = crooked_pose();
  const PosedHand posed = model.pose(pose, {});
  const HandKeypoints expected = pose_skeleton(builtin_skeleton(), pose);
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    EXPECT_LT(distance_between(posed.keypoints[i], expected[i]), 1e-15) << i;
  }
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    EXPECT_LT(distance_between(posed.joints[j], posed.vertices[j]), 1e-15) << j;
  }
  EXPECT_EQ(model.name(), "skeleton");
  EXPECT_EQ(model.faces().size(), 2U);
  EXPECT_EQ(model.vertex_count(), kHandKeypoints);
}

TEST(HandModel, IdentityWithShapesIsTheBlend) {
  const HandModelData data = full();
  const HandModel model(data, "test");
  const std::array<double, 10> betas = {2, -3, 1e6, 1e6};  // the model has two shapes
  const PosedHand posed = model.pose(identity_pose(), betas);
  for (std::size_t v = 0; v < kHandKeypoints; ++v) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::size_t i = 3 * v + axis;
      const double expected =
          data.v_template[v][axis] + 2 * data.shapedirs[2 * i] - 3 * data.shapedirs[2 * i + 1];
      EXPECT_NEAR(posed.vertices[v][axis], expected, 1e-15);
    }
  }
  const auto rest = model.rest_joints(betas);
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    EXPECT_LT(distance_between(posed.joints[j], rest[j]), 1e-15);
    EXPECT_LT(distance_between(posed.joints[j], posed.vertices[j]), 1e-15)
        << "the regressor follows the shape";
  }
}

TEST(HandModel, MissingBetasAreZero) {
  const HandModel model(full(), "test");
  const std::array<double, 1> one = {0.5};
  const std::array<double, 2> two = {0.5, 0};
  EXPECT_EQ(model.pose(crooked_pose(), one).vertices, model.pose(crooked_pose(), two).vertices);
  EXPECT_EQ(model.pose(crooked_pose(), {}).vertices,
            model.pose(crooked_pose(), std::array{0.0, 0.0}).vertices);
}

/// Its rest pose is the flat hand's joints and tip vertices; bent, the model of a skeleton is that skeleton.
TEST(HandModel, SkeletonIsTheRestPoseWithItsTips) {
  const HandModel model(full(), "test");
  const std::array<double, 10> betas = {2, -3};
  const Skeleton skeleton = model.skeleton(betas);
  EXPECT_EQ(skeleton.joints, model.rest_joints(betas));
  const PosedHand flat = model.pose(identity_pose(), betas);
  for (std::size_t t = 0; t < skeleton.tips.size(); ++t)
    EXPECT_LT(distance_between(skeleton.tips[t], flat.vertices[model.tips()[t]]), 1e-15) << t;
  const HandModel plain(skeleton_model(), "test");
  const HandKeypoints posed = plain.pose(crooked_pose(), {}).keypoints;
  const HandKeypoints bent = pose_skeleton(plain.skeleton({}), crooked_pose());
  for (std::size_t i = 0; i < kHandKeypoints; ++i) EXPECT_LT(distance_between(posed[i], bent[i]), 1e-15) << i;
}

TEST(HandModel, PoseDirectionsFollowTheRotationsOfFingerJoints) {
  const HandModelData data = full();
  const HandModel model(data, "test");
  TestRotations pose = identity_pose();
  set_rotation(pose, 0, {0, 0, 1}, 1.0);
  const Vec3 root_only = model.pose(pose, {}).vertices[0];
  EXPECT_LT(distance_between(root_only, data.v_template[0]), 1e-15) << "the root has no pose direction";
  pose = identity_pose();
  set_rotation(pose, 1, {0, 0, 1}, 1.0);  // moves the index finger; vertex 0 hangs on the wrist
  const PosedHand posed = model.pose(pose, {});
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double expected = data.v_template[0][axis];
    for (std::size_t k = 0; k < 9; ++k) {
      expected += (pose[9 + k] - (k % 4 == 0 ? 1 : 0)) * data.posedirs[axis * kHandPoseBlend + k];
    }
    EXPECT_NEAR(posed.vertices[0][axis], expected, 1e-15);
  }
}

std::string error_with(const std::function<void(HandModelData&)>& change) {
  HandModelData data = full();
  change(data);
  try {
    const HandModel model(std::move(data), "file.pkl");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("file.pkl: "));
    return error.what();
  }
  return "accepted";
}

TEST(HandModel, ErrorsNameArrayPlaceAndValue) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto with = error_with;
  using Data = HandModelData;
  EXPECT_EQ(with([](Data&) {}), "accepted");
  EXPECT_THAT(with([](Data& d) { d.v_template.clear(); }), HasSubstr("v_template: 0 vertices"));
  EXPECT_THAT(with([](Data& d) { d.v_template[4][1] = 150; }),
              HasSubstr("v_template[4][1] is 150, expected"));
  EXPECT_THAT(with([](Data& d) { d.shapedirs[9] = kNan; }), HasSubstr("shapedirs[1][3] is nan"));
  EXPECT_THAT(with([](Data& d) { d.posedirs.back() = 1e300; }), HasSubstr("posedirs[20][404] is 1e+300"));
  EXPECT_THAT(with([](Data& d) { d.regressor[22] = kNan; }), HasSubstr("joint regressor[1][1] is nan"));
  EXPECT_THAT(with([](Data& d) { d.weights[3] = 0.25; }), HasSubstr("weights[0] sums to 1.25, expected 1"));
  EXPECT_THAT(with([](Data& d) { d.weights[3] = kNan; }), HasSubstr("weights[0][3] is nan"));
  EXPECT_THAT(with([](Data& d) { d.weights.pop_back(); }), HasSubstr("weights: 335 numbers, expected 336"));
  EXPECT_THAT(with([](Data& d) { d.shapes = 11; }), HasSubstr("11 shapes, at most 10"));
  EXPECT_THAT(with([](Data& d) { d.shapedirs.pop_back(); }),
              HasSubstr("shapedirs: 125 numbers, expected 126"));
  EXPECT_THAT(with([](Data& d) { d.posedirs.pop_back(); }), HasSubstr("posedirs:"));
  EXPECT_THAT(with([](Data& d) { d.regressor.pop_back(); }), HasSubstr("joint regressor:"));
  EXPECT_THAT(with([](Data& d) { d.regressor.clear(); }), HasSubstr("rest joints: 0 numbers, expected 16"));
  EXPECT_THAT(with([](Data& d) { d.rest_joints.resize(16); }), HasSubstr("rest joints beside a regressor"));
  EXPECT_THAT(with([](Data& d) { d.faces[1][2] = 21; }), HasSubstr("faces[1] names vertex 21, there are 21"));
  EXPECT_THAT(with([](Data& d) { d.tips[0] = 744; }), HasSubstr("finger tip: vertex 744, there are 21"));
  EXPECT_THAT(with([](Data& d) { d.parents[7] = 6; }),
              HasSubstr("parent of joint 7 is 6, MANO's tree has 0"));
}

}  // namespace
}  // namespace sinew

// The built-in hand by its name: found in the data folder, or an error that says how to get it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/error.h"
#include "base/test_assets.h"
#include "hand/hand_model_file.h"
#include "hand/test_hands.h"
#include "io/atomic_file.h"
#include "io/test_folder.h"
#include "io/test_glb.h"

namespace sinew {
namespace {

using testing::HasSubstr;

Error error_of_builtin_hand(const std::string& folder) {
  try {
    builtin_hand_model(std::array{folder});
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kUsage, "accepted"};
}

TEST(BuiltinHand, IsTheOneOfTheDataFolder) {
  const TestFolder folder;
  write_file_atomically(folder.file(kBuiltinHandAsset), skeleton_glb().build());
  const auto model = builtin_hand_model(std::array{folder.file("")});
  EXPECT_EQ(model->name(), "webxr generic hand (generic_hand_right.glb)");
  EXPECT_EQ(model->vertex_count(), 21U);
}

TEST(BuiltinHand, MissingOrDamagedItSaysHowToGetIt) {
  const TestFolder folder;
  const Error missing = error_of_builtin_hand(folder.file("absent"));
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_EQ(missing.what(), std::string(kBuiltinHandAsset) + " is not in " + folder.file("absent"));
  EXPECT_THAT(missing.hint(), HasSubstr("make assets"));

  write_file_atomically(folder.file(kBuiltinHandAsset), skeleton_glb().build().substr(0, 100));
  const Error damaged = error_of_builtin_hand(folder.file(""));
  EXPECT_EQ(damaged.code(), ErrorCode::kFormat);
  EXPECT_THAT(damaged.what(), HasSubstr(kBuiltinHandAsset));
  EXPECT_THAT(damaged.hint(), HasSubstr("make assets"));
}

/// What `--hand-model builtin` gives is the published file, laid flat.
TEST(RealBuiltinHand, LiesFlat) {
  const TestFolder folder;
  if (!link_assets(folder.file(""))) GTEST_SKIP() << kNoAssets;
  const auto model = builtin_hand_model(std::array{folder.file("")});
  EXPECT_EQ(model->vertex_count(), 1159U);
  EXPECT_EQ(model->faces().size(), 2314U);
  const HandKeypoints flat = model->pose(identity_pose(), {}).keypoints;
  const HandKeypoints wanted = pose_skeleton(builtin_skeleton(), identity_pose());
  for (const std::size_t base : {5, 9, 13, 17}) {  // each finger's first bone has the skeleton's direction
    const double bone = distance_between(flat[base + 1], flat[base]);
    const double other = distance_between(wanted[base + 1], wanted[base]);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR((flat[base + 1][k] - flat[base][k]) / bone, (wanted[base + 1][k] - wanted[base][k]) / other,
                  1e-6)
          << base;
    }
  }
}

}  // namespace
}  // namespace sinew

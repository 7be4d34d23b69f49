#include "hand/skin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hand/test_hands.h"
#include "hand/vector3.h"

namespace sinew {
namespace {

HandKeypoints flat_hand() { return pose_skeleton(builtin_skeleton(), identity_pose()); }

TEST(SkinTexture, IsSkinColouredEverywhere) {
  const HandKeypoints rest = flat_hand();
  double darkest = 1, lightest = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SkinTexture texture(rest, seed);
    for (const Vec3& joint : rest) {
      for (const double side : {-1.0, 1.0}) {
        const SkinPoint skin = texture.at(joint + Vec3{0, 0.008 * side, 0.001}, {0, side, 0});
        EXPECT_GT(skin.albedo[0], skin.albedo[1]);
        EXPECT_GT(skin.albedo[1], 0.95 * skin.albedo[2]);
        EXPECT_GT(skin.albedo[2], 0.05);
        EXPECT_LT(skin.albedo[0], 1.1);
        EXPECT_GE(skin.gloss, 0);
        EXPECT_LE(skin.gloss, 1);
        darkest = std::min(darkest, skin.albedo[1]);
        lightest = std::max(lightest, skin.albedo[1]);
      }
    }
  }
  EXPECT_GT(lightest - darkest, 0.2) << "seeds have tones of their own";
}

TEST(SkinTexture, HasCreasesOnThePalmAndNailsOnTheBack) {
  const HandKeypoints rest = flat_hand();
  const SkinTexture texture(rest, 3);
  const auto brightness = [&](const Vec3& at, double side) {
    const Vec3 albedo = texture.at(at, {0, side, 0}).albedo;
    return albedo[0] + albedo[1] + albedo[2];
  };
  // Along each finger, from below its end joint's fold to above it: the fold is the darkest place.
  for (const std::size_t joint : {7, 11, 15, 19}) {
    const Vec3 along = unit(rest[joint + 1] - rest[joint]);
    const auto at = [&](double shift) { return rest[joint] + along * shift + Vec3{0, -0.007, 0}; };
    double fold = 9;
    for (double shift = -0.0012; shift <= 0.0012; shift += 0.0002)
      fold = std::min(fold, brightness(at(shift), -1));
    EXPECT_LT(fold, 0.88 * brightness(at(-0.006), -1)) << joint;
    EXPECT_LT(fold, 0.88 * brightness(at(0.006), -1)) << joint;
  }
  for (const std::size_t tip : {8, 12, 16, 20}) {
    const Vec3 along = unit(rest[tip] - rest[tip - 1]);
    const Vec3 middle = rest[tip] - along * 0.0055;
    EXPECT_GT(texture.at(middle + Vec3{0, 0.006, 0}, {0, 1, 0}).gloss, 0.6) << tip;
    EXPECT_LT(texture.at(middle + Vec3{0, -0.006, 0}, {0, -1, 0}).gloss, 0.5) << tip;
  }
}

TEST(HandLight, ComesFromAboveLeftAndIsTakenByTheHand) {
  HandKeypoints joints = flat_hand();
  // Palm towards the camera, fingers up.
  for (Vec3& p : joints) p = {p[2], p[0], p[1] + 0.5};
  const HandLight light(joints);
  const SkinPoint grey = {{0.5, 0.5, 0.5}, 0};
  const auto sum = [](const Vec3& c) { return c[0] + c[1] + c[2]; };
  const Vec3 open = {-0.2, -0.2, 0.5};  // far from the hand
  const double lit = sum(light.shade(open, unit({-0.5, -0.6, -0.6}), grey));
  EXPECT_GT(lit, 1.3 * sum(light.shade(open, unit({0.6, 0.6, -0.4}), grey)));
  for (const double v : light.shade(open, {0, 0, -1}, {{5, 5, 5}, 1})) EXPECT_LE(v, 1);
  // Right of and below the index finger, as the light goes: in its shadow.
  const Vec3 key = unit({-0.50, -0.62, -0.62});
  const Vec3 behind = (joints[5] + joints[6]) * 0.5 - key * 0.03;
  EXPECT_LT(sum(light.shade(behind, key, grey)), 0.75 * lit);
}

}  // namespace
}  // namespace sinew

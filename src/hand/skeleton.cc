#include "hand/skeleton.h"

#include <cassert>

namespace sinew {
namespace {

using Mat3 = std::array<double, 9>;

Mat3 times(const Mat3& a, const double* b) {
  Mat3 out{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t k = 0; k < 3; ++k) out[3 * r + c] += a[3 * r + k] * b[3 * k + c];
    }
  }
  return out;
}

/// origin + rotation * (point - from)
Vec3 carry(const Vec3& origin, const Mat3& rotation, const Vec3& point, const Vec3& from) {
  Vec3 out = origin;
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t k = 0; k < 3; ++k) out[r] += rotation[3 * r + k] * (point[k] - from[k]);
  }
  return out;
}

}  // namespace

const Skeleton& builtin_skeleton() {
  // Segment lengths close to the means of adults' radiographs (as in Buryanov and Kotiuk, Proportions of Hand
  // Segments, Int. J. Morphol. 28(3), 2010), rounded, metacarpals plus about 25 mm of carpus; the spread of
  // the fingers is ours.
  static const Skeleton skeleton = {{{
                                        {0.092, 0.004, 0.004},  // wrist
                                        {0.005, 0.000, 0.026},
                                        {-0.035, 0.002, 0.028},
                                        {-0.057, 0.001, 0.029},  // index
                                        {0.003, 0.003, 0.003},
                                        {-0.042, 0.005, 0.004},
                                        {-0.068, 0.004, 0.004},  // middle
                                        {0.021, -0.004, -0.037},
                                        {-0.011, -0.004, -0.044},
                                        {-0.028, -0.005, -0.048},  // pinky
                                        {0.010, 0.001, -0.018},
                                        {-0.031, 0.002, -0.022},
                                        {-0.057, 0.001, -0.025},  // ring
                                        {0.072, -0.008, 0.027},
                                        {0.036, -0.014, 0.055},
                                        {0.010, -0.017, 0.073},  // thumb
                                    }},
                                    {{{-0.012, -0.019, 0.087},
                                      {-0.077, -0.001, 0.030},
                                      {-0.089, 0.001, 0.004},
                                      {-0.078, -0.001, -0.027},
                                      {-0.047, -0.007, -0.052}}}};
  return skeleton;
}

HandKeypoints pose_skeleton(const Skeleton& skeleton, std::span<const double> rotations) {
  assert(rotations.size() == 9 * kHandJoints);
  std::array<Mat3, kHandJoints> world;
  std::array<Vec3, kHandKeypoints> mano;
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const double* own = &rotations[9 * j];
    if (kHandParents[j] < 0) {
      std::copy(own, own + 9, world[j].begin());
      mano[j] = skeleton.joints[j];
      continue;
    }
    const auto parent = static_cast<std::size_t>(kHandParents[j]);
    world[j] = times(world[parent], own);
    mano[j] = carry(mano[parent], world[parent], skeleton.joints[j], skeleton.joints[parent]);
  }
  for (std::size_t tip = 0; tip < skeleton.tips.size(); ++tip) {
    const auto joint = static_cast<std::size_t>(Skeleton::kTipJoints[tip]);
    mano[kHandJoints + tip] = carry(mano[joint], world[joint], skeleton.tips[tip], skeleton.joints[joint]);
  }
  HandKeypoints out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = mano[static_cast<std::size_t>(kOpenPoseFromMano[i])];
  return out;
}

}  // namespace sinew

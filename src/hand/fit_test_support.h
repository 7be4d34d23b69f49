// Random hands for the tests of the fit.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>

#include "hand/fit.h"
#include "hand/fit_kinematics.h"

namespace sinew {

/// The same numbers with every standard library, unlike the distributions of <random>.
class TestDice {
 public:
  explicit TestDice(unsigned seed) : engine_(seed) {}
  double between(double low, double high) { return low + (high - low) * engine_() / 4294967295.0; }
  /// Of standard deviation 1 (Box and Muller).
  double normal() {
    return std::sqrt(-2 * std::log(between(1e-9, 1))) * std::cos(between(0, 2 * std::numbers::pi));
  }

 private:
  std::mt19937 engine_;
};

/// A hand before the camera, turned anyhow, each angle anywhere in the middle `part` of its range.
inline FitState random_state(TestDice& dice, double depth, double part = 1) {
  FitStep step{};
  for (std::size_t k = 0; k < 3; ++k) step[k] = dice.between(-2, 2);
  step[3] = dice.between(-0.1, 0.1);
  step[4] = dice.between(-0.1, 0.1);
  step[5] = std::log(depth);
  step[6] = dice.between(-0.1, 0.1);
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const auto pick = [&](double low, double high) {
      const double spare = (high - low) * (1 - part) / 2;
      return dice.between(low + spare, high - spare);
    };
    const JointRange& range = joint_limits()[j];
    double* own = &step[kFitGlobals + 3 * j];
    own[0] = pick(range.low.flexion, range.high.flexion);
    own[1] = pick(range.low.abduction, range.high.abduction);
    own[2] = pick(range.low.twist, range.high.twist);
  }
  return moved(FitState{}, step);
}

/// What a perfect eye sees of these points.
inline FitTarget target_of(const HandKeypoints& points, const Intrinsics& camera) {
  FitTarget target;
  target.camera = camera;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec3& p = points[i];
    for (std::size_t k = 0; k < 3; ++k) target.metres[i][k] = p[k] - points[0][k];
    target.pixels[i] = {camera.fx * p[0] / p[2] + camera.cx, camera.fy * p[1] / p[2] + camera.cy};
  }
  return target;
}

/// Noise of the deviations that the fit expects by default, times `part`.
inline void add_noise(FitTarget& target, TestDice& dice, double part = 1) {
  const FitOptions expected;
  const double pixels = part * expected.pixel_sigma * hand_size(target.pixels);
  for (Vec2& p : target.pixels) {
    for (double& x : p) x += pixels * dice.normal();
  }
  for (Vec3& p : target.metres) {
    for (double& x : p) x += part * expected.metre_sigma * dice.normal();
  }
}

/// Mean distance in metres once both are moved to their means.
inline double shape_error(const HandKeypoints& a, const HandKeypoints& b) {
  Vec3 offset{};
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    for (std::size_t k = 0; k < 3; ++k) offset[k] += (a[i][k] - b[i][k]) / kHandKeypoints;
  }
  double sum = 0;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    sum += std::hypot(a[i][0] - b[i][0] - offset[0], a[i][1] - b[i][1] - offset[1],
                      a[i][2] - b[i][2] - offset[2]);
  }
  return sum / kHandKeypoints;
}

}  // namespace sinew

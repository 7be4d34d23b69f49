// Landmarks to pose, one core. The bar of step 2 is 3 ms per hand.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "hand/fit.h"
#include "hand/fit_test_support.h"

namespace sinew {
namespace {

constexpr Intrinsics kCamera = {600, 600, 320, 240};
constexpr std::size_t kHands = 64;

/// Noisy landmarks of hands that go on: frame i + 1 is some degrees and millimetres from frame i.
std::vector<FitTarget> frames_of_a_video() {
  TestDice dice(1);
  const FitKinematics hand(builtin_skeleton());
  FitState state = random_state(dice, 0.5, 0.4);
  std::vector<FitTarget> frames;
  while (frames.size() < kHands) {
    FitStep step{};
    for (std::size_t n = 0; n < kFitNumbers; ++n) step[n] = (n == 3 || n == 4 ? 0.005 : 0.05) * dice.normal();
    step[6] = 0;
    state = moved(state, step);
    state.angles = within_limits(state.angles);
    FitTarget target = target_of(hand.points(state), kCamera);
    add_noise(target, dice, 0.5);
    frames.push_back(target);
  }
  return frames;
}

/// Each hand by itself, in any pose.
void fit_cold(benchmark::State& state) {
  TestDice dice(2);
  const FitKinematics hand(builtin_skeleton());
  std::vector<FitTarget> targets;
  for (std::size_t i = 0; i < kHands; ++i) {
    targets.push_back(target_of(hand.points(random_state(dice, 0.5)), kCamera));
    add_noise(targets.back(), dice);
  }
  double steps = 0, worst = 0;
  std::size_t next = 0;
  while (state.KeepRunning()) {
    const HandFit fit = fit_hand(builtin_skeleton(), targets[next++ % kHands]);
    steps += fit.iterations;
    worst = std::max<double>(worst, fit.iterations);
  }
  state.counters["steps"] = benchmark::Counter(steps, benchmark::Counter::kAvgIterations);
  state.counters["most_steps"] = worst;
}
BENCHMARK(fit_cold)->Unit(benchmark::kMicrosecond);

/// A video: from the last frame's pose.
void fit_warm(benchmark::State& state) {
  const std::vector<FitTarget> frames = frames_of_a_video();
  double steps = 0;
  std::size_t next = 0;
  HandPose last = fit_hand(builtin_skeleton(), frames[0]).pose;
  while (state.KeepRunning()) {
    // To and fro, so that each frame follows a neighbour.
    const std::size_t at = next++ % (2 * kHands - 2);
    const HandFit fit = fit_hand(builtin_skeleton(), frames[at < kHands ? at : 2 * kHands - 2 - at], &last);
    last = fit.pose;
    steps += fit.iterations;
  }
  state.counters["steps"] = benchmark::Counter(steps, benchmark::Counter::kAvgIterations);
}
BENCHMARK(fit_warm)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sinew

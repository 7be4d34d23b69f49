// Finding one hand in a 640 x 480 picture, one thread. The bar of step 2, palm detector and landmarks: 25 ms
// with the lite networks, 40 ms with the full ones.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/test_assets.h"
#include "hand/finder.h"
#include "image/resize.h"
#include "io/image_codec.h"
#include "runtime/finder.h"
#include "runtime/runtime.h"

namespace sinew {
namespace {

struct Networks {
  std::unique_ptr<Backend> backend;
  FinderNetworks sessions;
};

/// Nothing when the files are not here.
std::unique_ptr<Networks> open_networks(bool lite) {
  const std::string ending = lite ? "_lite.tflite" : "_full.tflite";
  const auto palm = asset_file("palm_detection" + ending);
  const auto landmark = asset_file("hand_landmark" + ending);
  if (!palm || !landmark) return nullptr;
  auto networks = std::make_unique<Networks>();
  networks->backend = make_backend("cpu", {.threads = 1});
  networks->sessions = open_finder_networks(*networks->backend, *palm, *landmark);
  return networks;
}

/// The open hand of the shared pictures, 240 pixels high, on grey; nothing when it is not here.
Image frame_with_hand(int width, int height) {
  const auto path = shared_file("data/hands/sld_5_IMG_5261.jpg");
  if (!path) return {};
  const int side = height / 2;
  const Image hand = resize_bilinear(read_image(*path), side, side);
  Image frame(width, height);
  std::fill(frame.rgb.begin(), frame.rgb.end(), std::uint8_t{140});
  for (int y = 0; y < side; ++y) {
    std::memcpy(frame.pixel((width - side) / 2, (height - side) / 2 + y), hand.pixel(0, y),
                std::size_t{3} * side);
  }
  return frame;
}

double run_ms(Session& session) {
  Stopwatch watch;
  session.run();
  return watch.lap_ms();
}

/// lite, refine, width, height. Counters: what the networks took of it, run beside it on their last inputs,
/// and the whole as a multiple of that.
void find(benchmark::State& state) {
  auto networks = open_networks(state.range(0) != 0);
  const Image frame = frame_with_hand(static_cast<int>(state.range(2)), static_cast<int>(state.range(3)));
  if (networks == nullptr || frame.width == 0) {
    state.SkipWithError(networks == nullptr ? kNoAssets : kNoShared);
    return;
  }
  Session& palm = *networks->sessions.palm;
  Session& landmark = *networks->sessions.landmark;
  HandFinder finder(std::move(networks->sessions.palm), std::move(networks->sessions.landmark));
  FinderOptions options;
  options.refine = state.range(1) != 0;
  double whole_ms = 0, networks_ms = 0;
  std::size_t hands = 1;
  const auto before = finder.runs();
  for (auto _ : state) {
    Stopwatch watch;
    hands = std::min(hands, finder.find(frame, options).size());
    whole_ms += watch.lap_ms();
    state.PauseTiming();
    networks_ms += run_ms(palm) + (options.refine ? 2 : 1) * run_ms(landmark);
    state.ResumeTiming();
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["hands"] = static_cast<double>(hands);
  state.counters["palm_runs"] = (finder.runs().palm - before.palm) / runs;
  state.counters["landmark_runs"] = (finder.runs().landmark - before.landmark) / runs;
  state.counters["networks_ms"] = networks_ms / runs;
  state.counters["of_networks"] = whole_ms / networks_ms;
}
BENCHMARK(find)
    ->ArgNames({"lite", "refine", "width", "height"})
    ->Args({1, 0, 640, 480})
    ->Args({1, 1, 640, 480})
    ->Args({0, 0, 640, 480})
    ->Args({0, 1, 640, 480})
    ->Args({1, 0, 4000, 3000})
    ->Unit(benchmark::kMillisecond);

/// The squares alone: the whole frame for the palm detector, a turned crop for the landmarks.
void sample(benchmark::State& state) {
  const Image frame(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  const bool palm = state.range(2) != 0;
  const int size = palm ? mediapipe::kPalmSide : mediapipe::kLandmarkSide;
  const FrameSquare square = {frame.width / 2.0, frame.height / 2.0,
                              palm ? frame.width * 1.0 : frame.height * 0.8, palm ? 0.0 : 0.4};
  std::vector<float> out(std::size_t{3} * size * size);
  for (auto _ : state) {
    sample_square(frame, square, size, palm ? Border::kBlack : Border::kReplicate, out.data());
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(sample)
    ->ArgNames({"width", "height", "palm"})
    ->ArgsProduct({{640}, {480}, {0, 1}})
    ->ArgsProduct({{4000}, {3000}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sinew

BENCHMARK_MAIN();

// The picture of one hand: 640 x 480, one core. The bar of step 2 is 5 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/data_folder.h"
#include "base/error.h"
#include "hand/hand_model_file.h"
#include "hand/mesh_test_support.h"
#include "hand/posed_picture.h"
#include "hand/rasterise.h"

namespace sinew {
namespace {

/// In the original's camera (focal length 5000 / 256 of the longer side), `part` of the picture's height.
MeshInstance placed(const Mesh& hand, const PinholeCamera& camera, int height, double part) {
  const auto [low, high] = std::ranges::minmax(hand.vertices, {}, [](const Vec3f& v) { return v[1]; });
  const auto middle = 0.5 * (static_cast<double>(low[1]) + high[1]);
  const double depth = camera.fx * (static_cast<double>(high[1]) - low[1]) / (height * part);
  return {&hand, {0, -middle, depth}};
}

PinholeCamera original_camera(int width, int height) {
  return centred_camera(scaled_focal_length(5000, width, height), width, height);
}

/// Into a layer that is kept, as a caller with many hands would.
void render_into_kept(benchmark::State& state, const MeshInstance& instance, const PinholeCamera& camera,
                      int width, int height) {
  Layer layer;
  while (state.KeepRunning()) {
    render_into(layer, {instance}, camera, width, height);
    benchmark::DoNotOptimize(layer.rgba.data());
  }
  const auto covered = static_cast<double>(
      std::ranges::count_if(layer.depth, [](float depth) { return depth < Layer::kNothing; }));
  state.counters["faces"] = static_cast<double>(instance.mesh->faces.size());
  state.counters["pixels"] = covered;
  state.counters["per_pixel"] = benchmark::Counter(
      covered, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// The built-in hand, open, palm towards the camera; null, with the reason, where set-up has not fetched it.
std::shared_ptr<const HandModel> generic_hand(benchmark::State& state) {
  try {
    return builtin_hand_model(data_folders());
  } catch (const Error& error) {
    state.SkipWithError(error.what());
    return nullptr;
  }
}

Mesh open_hand(const HandModel& model) {
  std::array<double, kHandRotationNumbers> rotations{};
  for (std::size_t i = 0; i < rotations.size(); ++i) rotations[i] = i % 9 % 4 == 0 ? 1 : 0;
  const std::array<double, 9> towards_camera = {0, 0, 1, 1, 0, 0, 0, 1, 0};
  std::ranges::copy(towards_camera, rotations.begin());
  Mesh mesh;
  for (const Vec3& v : model.pose(rotations, {}).vertices) {
    mesh.vertices.push_back(
        {static_cast<float>(v[0] - 0.09), static_cast<float>(v[1]), static_cast<float>(v[2])});
  }
  mesh.faces = model.faces();
  return mesh;
}

/// Width, height, percent of the height. The bar's case is the first.
void render_generic_hand(benchmark::State& state) {
  const std::shared_ptr<const HandModel> model = generic_hand(state);
  if (model == nullptr) return;
  const auto width = static_cast<int>(state.range(0));
  const auto height = static_cast<int>(state.range(1));
  const Mesh hand = open_hand(*model);
  const PinholeCamera camera = original_camera(width, height);
  render_into_kept(state, placed(hand, camera, height, static_cast<double>(state.range(2)) / 100), camera,
                   width, height);
}
BENCHMARK(render_generic_hand)
    ->Args({640, 480, 60})
    ->Args({640, 480, 85})
    ->Args({384, 384, 60})
    ->Args({1920, 1080, 60})
    ->Unit(benchmark::kMillisecond);

/// 1600 faces in 20 pieces that lie four deep, in a layer of its own each time: what the first bar was
/// measured with.
void render_capsule_hand(benchmark::State& state) {
  const auto width = static_cast<int>(state.range(0));
  const auto height = static_cast<int>(state.range(1));
  const Mesh hand = capsule_hand();
  const PinholeCamera camera = original_camera(width, height);
  const std::vector<MeshInstance> meshes = {placed(hand, camera, height, 0.85)};
  double covered = 0;
  while (state.KeepRunning()) {
    const Layer layer = render(meshes, camera, width, height);
    benchmark::DoNotOptimize(layer.rgba.data());
    covered = layer.depth_at(width / 2, height / 2) < Layer::kNothing ? 1 : 0;
  }
  state.counters["faces"] = static_cast<double>(hand.faces.size());
  state.counters["middle_covered"] = covered;
}
BENCHMARK(render_capsule_hand)
    ->Args({640, 480})
    ->Args({256, 256})
    ->Args({1920, 1080})
    ->Unit(benchmark::kMillisecond);

/// One closed surface of MANO's size (802 vertices, 1600 faces; MANO has 778 and 1538). A radius of 132
/// pixels covers as much as the capsules (55000 pixels), but each pixel twice, as a hand's mesh does, where
/// those lie four deep; 400 is all of the picture.
void render_ball(benchmark::State& state) {
  const Mesh ball = sphere_mesh({0, 0, 0}, 0.1, 32, 13);
  const PinholeCamera camera = centred_camera(12500, 640, 480);
  const MeshInstance instance = {&ball, {0, 0, 12500 * 0.1 / static_cast<double>(state.range(0))}};
  render_into_kept(state, instance, camera, 640, 480);
}
BENCHMARK(render_ball)->Arg(132)->Arg(400)->Unit(benchmark::kMillisecond);

void compose_hand(benchmark::State& state) {
  const Mesh hand = capsule_hand();
  const PinholeCamera camera = original_camera(640, 480);
  const Layer layer = render({placed(hand, camera, 480, 0.85)}, camera, 640, 480);
  Image image(640, 480);
  while (state.KeepRunning()) {
    compose(image, layer);
    benchmark::DoNotOptimize(image.rgb.data());
  }
}
BENCHMARK(compose_hand)->Unit(benchmark::kMillisecond);

/// The demo's picture: 148 thousand faces with colours of their own.
void draw_hand_with_skin(benchmark::State& state) {
  const std::shared_ptr<const HandModel> model = generic_hand(state);
  if (model == nullptr) return;
  while (state.KeepRunning()) {
    benchmark::DoNotOptimize(draw_posed_hand_picture(*model, 640, 480, 1, true).image.rgb.data());
  }
}
BENCHMARK(draw_hand_with_skin)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sinew

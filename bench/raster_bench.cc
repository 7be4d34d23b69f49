// The picture of one hand: 640 x 480, one core. The bar of step 2 is 5 ms.
#include <benchmark/benchmark.h>

#include <vector>

#include "hand/mesh_test_support.h"
#include "hand/rasterise.h"

namespace sinew {
namespace {

/// In the original's camera (focal length 5000 / 256 of the longer side): 1600 faces, about 400 of 480 rows
/// high.
MeshInstance placed(const Mesh& hand, const PinholeCamera& camera, int height) {
  return {&hand, {0, 0, camera.fx * 0.2 / (height * 0.85)}};
}

void render_hand(benchmark::State& state) {
  const auto width = static_cast<int>(state.range(0));
  const auto height = static_cast<int>(state.range(1));
  const Mesh hand = capsule_hand();
  const PinholeCamera camera = centred_camera(scaled_focal_length(5000, width, height), width, height);
  const std::vector<MeshInstance> meshes = {placed(hand, camera, height)};
  double covered = 0;
  while (state.KeepRunning()) {
    const Layer layer = render(meshes, camera, width, height);
    benchmark::DoNotOptimize(layer.rgba.data());
    covered = layer.depth_at(width / 2, height / 2) < Layer::kNothing ? 1 : 0;
  }
  state.counters["faces"] = static_cast<double>(hand.faces.size());
  state.counters["middle_covered"] = covered;
}
BENCHMARK(render_hand)->Args({640, 480})->Args({256, 256})->Args({1920, 1080})->Unit(benchmark::kMillisecond);

/// One closed surface of MANO's size. A radius of 132 pixels covers as much as the hand above (55000 pixels),
/// but each pixel twice, as a hand's mesh does, where the capsules lie four deep; 400 is all of the picture.
void render_ball(benchmark::State& state) {
  const Mesh ball = sphere_mesh({0, 0, 0}, 0.1, 32, 13);
  const PinholeCamera camera = centred_camera(12500, 640, 480);
  const MeshInstance instance = {&ball, {0, 0, 12500 * 0.1 / static_cast<double>(state.range(0))}};
  while (state.KeepRunning()) benchmark::DoNotOptimize(render({instance}, camera, 640, 480).rgba.data());
  state.counters["faces"] = static_cast<double>(ball.faces.size());
}
BENCHMARK(render_ball)->Arg(132)->Arg(400)->Unit(benchmark::kMillisecond);

void compose_hand(benchmark::State& state) {
  const Mesh hand = capsule_hand();
  const PinholeCamera camera = centred_camera(scaled_focal_length(5000, 640, 480), 640, 480);
  const Layer layer = render({placed(hand, camera, 480)}, camera, 640, 480);
  Image image(640, 480);
  while (state.KeepRunning()) {
    compose(image, layer);
    benchmark::DoNotOptimize(image.rgb.data());
  }
}
BENCHMARK(compose_hand)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sinew

// From a camera frame to the network's crop: decoding, the two crops, normalisation. 1920 x 1080, one hand.
#include <benchmark/benchmark.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "image/crop.h"
#include "image/resize.h"
#include "io/image_codec.h"
#include "io/image_formats.h"

namespace sinew {
namespace {

constexpr int kWidth = 1920;
constexpr int kHeight = 1080;

/// Waves with some noise on top: compresses like a photograph.
const Image& frame() {
  static const Image kFrame = [] {
    Image image(kWidth, kHeight);
    std::mt19937 random(1);
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        for (int c = 0; c < 3; ++c) {
          const int wave = (x * (c + 1) / 8 + y / 4) % 200;
          image.pixel(x, y)[c] = static_cast<std::uint8_t>(wave + random() % 12);
        }
      }
    }
    return image;
  }();
  return kFrame;
}

CropGeometry geometry_of(double side) {
  CropGeometry geometry;
  geometry.center_x = 961.3F;
  geometry.center_y = 540.7F;
  geometry.box_size = side;
  return geometry;
}

void crop_pillow(benchmark::State& state) {
  const CropGeometry geometry = geometry_of(static_cast<double>(state.range(0)));
  while (state.KeepRunning())
    benchmark::DoNotOptimize(crop(CropKind::kPillow, frame(), geometry, state.range(1) != 0));
}
BENCHMARK(crop_pillow)
    ->ArgsProduct({{100, 256, 500, 1080, 2000, 65536}, {1}})
    ->Args({500, 0})
    ->Unit(benchmark::kMicrosecond);

void crop_opencv(benchmark::State& state) {
  const CropGeometry geometry = geometry_of(static_cast<double>(state.range(0)));
  while (state.KeepRunning())
    benchmark::DoNotOptimize(crop(CropKind::kOpenCV, frame(), geometry, state.range(1) != 0));
}
// 563 is the largest square without, 564 the smallest with a blur.
BENCHMARK(crop_opencv)
    ->ArgsProduct({{100, 256, 563, 564, 1080, 2000}, {1}})
    ->Args({500, 0})
    ->Unit(benchmark::kMicrosecond);

void normalise_crop(benchmark::State& state) {
  const Crop input = crop(CropKind::kPillow, frame(), geometry_of(500), true);
  std::vector<float> chw(std::size_t{3} * input.rows * input.columns);
  while (state.KeepRunning()) {
    normalise(input, chw.data());
    benchmark::DoNotOptimize(chw.data());
  }
}
BENCHMARK(normalise_crop)->Unit(benchmark::kMicrosecond);

void resize_frame(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(resize_bilinear(frame(), 640, 360));
}
BENCHMARK(resize_frame)->Unit(benchmark::kMicrosecond);

void decode(benchmark::State& state, const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  while (state.KeepRunning()) benchmark::DoNotOptimize(decode_image(bytes, "frame"));
  state.counters["file_bytes"] = static_cast<double>(file.size());
}
void decode_jpeg(benchmark::State& state) { decode(state, image_formats::encode_jpeg(frame(), 90)); }
BENCHMARK(decode_jpeg)->Unit(benchmark::kMillisecond);
void decode_png(benchmark::State& state) { decode(state, encode_png(frame())); }
BENCHMARK(decode_png)->Unit(benchmark::kMillisecond);

void encode_frame_png(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(encode_png(frame()));
}
BENCHMARK(encode_frame_png)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sinew

BENCHMARK_MAIN();

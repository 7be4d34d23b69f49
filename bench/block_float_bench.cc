// Tiles of block floats from a row-major weight and back, per instruction set. Both sides are written and
// read in turn with a memcpy that moves as many bytes (half of read plus written, each way): `of_memcpy` is
// the ratio of the two rates, `gb_s` the bytes read plus written a second, `source_gb_s` those of the
// row-major side alone. `quantise` is the plan's step from f64 to the bfp8_b values of a weight
// (plan/quantise.h), in place: `m_s` in million elements a second, `mb_s` in bytes of f64 read.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "plan/quantise.h"
#include "tensor/block_float_kernels.h"

namespace sinew {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Isa kIsas[] = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512};
enum Kind { kPack, kPackThroughBf16, kUnpack };

Shape shape_of(std::int64_t size) {
  // fc1 of HaMeR, larger than the second-level cache, and a piece that is not; a row stride of 8 or 16 KiB.
  if (size == 2) return {1024, 4096};
  return size == 1 ? Shape{1280, 5120} : Shape{256, 512};
}

Tensor weight(const Shape& shape, DType dtype) {
  Tensor tensor(DType::kF32, shape);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02F);
  for (float& x : tensor.as<float>()) x = normal(random);
  return convert(tensor, dtype);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void blocks(benchmark::State& state, Kind kind, BlockFormat format, DType dtype) {
  const Isa isa = kIsas[state.range(0)];
  const Shape shape = shape_of(state.range(1));
  if (isa > best_isa()) return state.SkipWithError("this processor has no such instructions");
  const Tensor source = weight(shape, dtype);
  const std::size_t source_bytes = source.view().bytes();
  std::vector<std::byte> tiles(static_cast<std::size_t>(tiled_bytes(shape, format)));
  const BlockPackJob pack{source, format, {.through_bf16 = kind == kPackThroughBf16}, tiles, isa};
  pack_blocks(pack);
  Tensor out(dtype, shape);
  const BlockUnpackJob unpack{tiles, format, shape, dtype, out.data(), isa};

  const std::size_t moved = source_bytes + tiles.size();
  std::vector<std::byte> from(moved / 2, std::byte{1});
  std::vector<std::byte> to(moved / 2, std::byte{2});
  double copy_seconds = 0;
  double seconds = 0;
  while (state.KeepRunning()) {
    const auto copy_start = Clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
    copy_seconds += seconds_since(copy_start);
    const auto start = Clock::now();
    if (kind == kUnpack) {
      unpack_blocks(unpack);
      benchmark::DoNotOptimize(out.data());
    } else {
      benchmark::DoNotOptimize(pack_blocks(pack));
    }
    benchmark::ClobberMemory();
    const double took = seconds_since(start);
    seconds += took;
    state.SetIterationTime(took);
  }
  const double bytes = static_cast<double>(moved) * static_cast<double>(state.iterations());
  state.SetLabel(std::string(to_string(isa)) + " " + to_string(shape));
  state.counters["gb_s"] = bytes / seconds / 1e9;
  state.counters["source_gb_s"] =
      static_cast<double>(source_bytes) * static_cast<double>(state.iterations()) / seconds / 1e9;
  state.counters["memcpy_gb_s"] = bytes / copy_seconds / 1e9;
  state.counters["of_memcpy"] = copy_seconds / seconds;
}

void tile_order(benchmark::State& state, DType dtype) {
  const Shape shape = shape_of(state.range(0));
  const Tensor source = weight(shape, dtype);
  std::vector<std::byte> tiles(static_cast<std::size_t>(tiled_bytes(shape, dtype)));
  while (state.KeepRunning()) {
    to_tiles(source, tiles);
    benchmark::DoNotOptimize(tiles.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * tiles.size()));
}

void quantise(benchmark::State& state, const transforms::Step& step) {
  const Tensor source = convert(weight(shape_of(state.range(0)), DType::kF32), DType::kF64);
  while (state.KeepRunning()) {
    Tensor copy = source.clone();
    const auto start = Clock::now();
    copy = step.apply(std::move(copy));
    benchmark::DoNotOptimize(copy.data());
    state.SetIterationTime(seconds_since(start));
  }
  const auto elements = static_cast<double>(source.shape().count());
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["m_s"] = benchmark::Counter(elements / 1e6, rate);
  state.counters["mb_s"] = benchmark::Counter(elements * sizeof(double) / 1e6, rate);
  state.SetLabel(to_string(source.shape()));
}

#define SINEW_BLOCKS(name, ...)                \
  BENCHMARK_CAPTURE(blocks, name, __VA_ARGS__) \
      ->ArgsProduct({{0, 1, 2}, {0, 1, 2}})    \
      ->UseManualTime()                        \
      ->Unit(benchmark::kMicrosecond)

SINEW_BLOCKS(pack_bfp8_f32, kPack, BlockFormat::kBfp8, DType::kF32);
SINEW_BLOCKS(pack_bfp8_f32_through_bf16, kPackThroughBf16, BlockFormat::kBfp8, DType::kF32);
SINEW_BLOCKS(pack_bfp8_bf16, kPack, BlockFormat::kBfp8, DType::kBF16);
SINEW_BLOCKS(pack_bfp4_f32, kPack, BlockFormat::kBfp4, DType::kF32);
SINEW_BLOCKS(pack_bfp4_bf16, kPack, BlockFormat::kBfp4, DType::kBF16);
SINEW_BLOCKS(unpack_bfp8_f32, kUnpack, BlockFormat::kBfp8, DType::kF32);
SINEW_BLOCKS(unpack_bfp8_bf16, kUnpack, BlockFormat::kBfp8, DType::kBF16);
SINEW_BLOCKS(unpack_bfp4_f32, kUnpack, BlockFormat::kBfp4, DType::kF32);
SINEW_BLOCKS(unpack_bfp4_bf16, kUnpack, BlockFormat::kBfp4, DType::kBF16);
#define SINEW_QUANTISE(name, step) \
  BENCHMARK_CAPTURE(quantise, name, step)->DenseRange(0, 2)->UseManualTime()->Unit(benchmark::kMillisecond)

SINEW_QUANTISE(bfp8, transforms::quantise_bfp8());
SINEW_QUANTISE(int8_codes, transforms::int8_codes());
SINEW_QUANTISE(int8_scales, transforms::int8_scales());
BENCHMARK_CAPTURE(tile_order, bf16, DType::kBF16)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(tile_order, f32, DType::kF32)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sinew

BENCHMARK_MAIN();

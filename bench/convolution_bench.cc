// The layers of MediaPipe's hand networks, one by one and as a whole network of the palm detector's shape,
// random weights: GFLOP/s and share of the machine's f32 peak, which is measured in the same run with the
// library's own largest product.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "program/convolution.h"
#include "program/elementwise.h"
#include "program/layout.h"
#include "program/linear.h"

namespace sinew {
namespace {

class RandomWeights final : public WeightSource {
 public:
  TensorView load(const std::string&, DType dtype, const Shape& shape) override {
    Tensor values(DType::kF32, shape);
    std::normal_distribution<float> normal(0, 0.05F);
    for (float& v : values.as<float>()) v = normal(random_);
    current_ = convert(values, dtype);
    return current_;
  }
  void release(const std::string&) override { current_ = Tensor(); }

 private:
  std::mt19937 random_{1};
  Tensor current_;
};

void fill_inputs(Session& session) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 1);
  for (const ValueId id : session.program().with_role(Role::kInput)) {
    const std::span<std::byte> bytes = session.input(session.program().value(id).name);
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      reinterpret_cast<float*>(bytes.data())[i] = normal(random);
    }
  }
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// GFLOP/s of one product large enough to be bound by arithmetic, on all threads.
double peak_gflops(Backend& backend, double (*seconds)()) {
  ProgramBuilder builder("peak");
  constexpr std::int64_t kSide = 1536;
  Linear op;
  op.x = builder.input("x", DType::kF32, {kSide, kSide});
  op.weight = builder.weight("w", DType::kF32, {kSide, kSide});
  op.out = builder.output("out", DType::kF32, {kSide, kSide});
  builder.add(op);
  RandomWeights weights;
  const auto session = backend.compile(builder.finish(), weights);
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    const double start = seconds();
    session->run();
    best = std::max(best, session->program().flops() / (seconds() - start) / 1e9);
  }
  return best;
}

/// Appends layers to a program; each returns its result.
class Layers {
 public:
  explicit Layers(const char* name) : builder_(name) {}
  ValueId picture(const Shape& shape) { return builder_.input("x", DType::kF32, shape); }

  ValueId convolution(ValueId x, std::int64_t filters, std::int64_t side, std::int64_t stride,
                      Rectifier rectifier, ValueId residual = {}) {
    Convolution op;
    const std::int64_t channels = builder_.value(x).shape[2];
    op.weight = weight({filters, side, side, channels});
    op.residual = residual;
    return windowed(op, x, filters, side, stride, rectifier);
  }
  ValueId depthwise(ValueId x, std::int64_t side, std::int64_t stride, Rectifier rectifier) {
    DepthwiseConvolution op;
    const std::int64_t channels = builder_.value(x).shape[2];
    op.weight = weight({side, side, channels});
    return windowed(op, x, channels, side, stride, rectifier);
  }
  /// The palm detector's step to half the size: the residual is a pooled copy, padded to the new channels.
  ValueId half(ValueId x) {
    const Shape shape = builder_.value(x).shape;
    const std::int64_t filters = std::min<std::int64_t>(256, 2 * shape[2]);
    MaxPool pool;
    pool.x = x;
    pool.window = {2, 2, 2, 2};
    pool.out = local({shape[0] / 2, shape[1] / 2, shape[2]});
    builder_.add(pool);
    ValueId residual = pool.out;
    if (filters > shape[2]) {
      Pad pad;
      pad.x = residual;
      pad.after = {0, 0, filters - shape[2]};
      pad.out = local({shape[0] / 2, shape[1] / 2, filters});
      builder_.add(pad);
      residual = pad.out;
    }
    return convolution(depthwise(x, 5, 2, Rectifier::kNone), filters, 1, 1, Rectifier::kPRelu, residual);
  }
  Program finish(ValueId result) {
    builder_.keep(result);
    return builder_.finish();
  }

 private:
  ValueId weight(const Shape& shape) {
    return builder_.weight(fmt::format("w{}", next_++), DType::kF32, shape);
  }
  ValueId local(const Shape& shape) {
    return builder_.local(fmt::format("v{}", next_++), DType::kF32, shape);
  }
  template <typename Op>
  ValueId windowed(Op& op, ValueId x, std::int64_t filters, std::int64_t side, std::int64_t stride,
                   Rectifier rectifier) {
    const Shape shape = builder_.value(x).shape;
    op.x = x;
    op.bias = weight({filters});
    if (rectifier == Rectifier::kPRelu) op.slope = weight({filters});
    op.rectifier = rectifier;
    op.window = {side, side, stride, stride};
    same(shape[0], side, stride, op.window.pad_top, op.window.pad_bottom);
    same(shape[1], side, stride, op.window.pad_left, op.window.pad_right);
    op.out = local({op.window.out_rows(shape[0]), op.window.out_columns(shape[1]), filters});
    const ValueId out = op.out;
    builder_.add(op);
    return out;
  }
  static void same(std::int64_t extent, std::int64_t side, std::int64_t stride, std::int64_t& before,
                   std::int64_t& after) {
    const std::int64_t outputs = (extent + stride - 1) / stride;
    const std::int64_t total = std::max<std::int64_t>(0, (outputs - 1) * stride + side - extent);
    before = total / 2;
    after = total - before;
  }

  ProgramBuilder builder_;
  int next_ = 0;
};

void run_program(benchmark::State& state, Program program, int threads) {
  const auto backend = make_cpu_backend({.threads = threads});
  const double peak = peak_gflops(*backend, threads == 1 ? processor_seconds : wall_seconds);
  RandomWeights weights;
  const auto session = backend->compile(std::move(program), weights);
  fill_inputs(*session);
  session->run();
  for (auto _ : state) session->run();
  const double flops = session->program().flops();
  state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] =
      benchmark::Counter(flops / 1e9 / peak, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_GFLOP/s"] = peak;
}

struct Layer {
  std::int64_t extent, channels, filters, side, stride;  // filters 0: depthwise
  Rectifier rectifier;
  bool residual;
};

Program one_layer(const Layer& l) {
  Layers layers("layer");
  const ValueId x = layers.picture({l.extent, l.extent, l.channels});
  if (l.filters == 0) return layers.finish(layers.depthwise(x, l.side, l.stride, l.rectifier));
  return layers.finish(
      layers.convolution(x, l.filters, l.side, l.stride, l.rectifier, l.residual ? x : ValueId{}));
}

/// 192x192x3 -> 96x96x32, then per size `pairs` times a 5x5 depthwise and a 1x1 with residual and PReLU.
Program palm_like(int pairs) {
  Layers layers("palm");
  ValueId x = layers.convolution(layers.picture({192, 192, 3}), 32, 5, 2, Rectifier::kPRelu);
  for (int size = 0; size < 5; ++size) {
    if (size > 0) x = layers.half(x);
    for (int i = 0; i < pairs; ++i) {
      const std::int64_t filters = std::min<std::int64_t>(256, 32 << size);
      x = layers.convolution(layers.depthwise(x, 5, 1, Rectifier::kNone), filters, 1, 1, Rectifier::kPRelu,
                             x);
    }
  }
  return layers.finish(x);
}

void add(const std::string& name, const std::function<Program()>& make, int threads) {
  auto* made =
      benchmark::RegisterBenchmark(fmt::format("{}/threads:{}", name, threads).c_str(),
                                   [=](benchmark::State& state) { run_program(state, make(), threads); });
  made->Unit(benchmark::kMicrosecond);
  // One thread is timed by what it had of the processor, so that a busy machine shows in "Time" only.
  if (threads > 1) made->UseRealTime();
}

void register_all() {
  constexpr Rectifier kNone = Rectifier::kNone;
  constexpr Rectifier kPRelu = Rectifier::kPRelu;
  constexpr Rectifier kRelu6 = Rectifier::kRelu6;
  const std::vector<Layer> palm = {{192, 3, 32, 5, 2, kPRelu, false},  {96, 32, 0, 5, 1, kNone, false},
                                   {96, 32, 32, 1, 1, kPRelu, true},   {96, 32, 0, 5, 2, kNone, false},
                                   {48, 64, 0, 5, 1, kNone, false},    {48, 64, 64, 1, 1, kPRelu, true},
                                   {24, 128, 0, 5, 1, kNone, false},   {24, 128, 128, 1, 1, kPRelu, true},
                                   {12, 256, 0, 5, 1, kNone, false},   {12, 256, 256, 1, 1, kPRelu, true},
                                   {6, 256, 0, 5, 1, kNone, false},    {6, 256, 256, 1, 1, kPRelu, true},
                                   {12, 256, 108, 1, 1, kNone, false}, {24, 128, 2, 1, 1, kNone, false}};
  const std::vector<Layer> landmark = {
      {224, 3, 24, 3, 2, kRelu6, false},   {112, 24, 0, 3, 1, kRelu6, false},
      {112, 24, 16, 1, 1, kNone, false},   {112, 16, 64, 1, 1, kRelu6, false},
      {112, 64, 0, 3, 2, kRelu6, false},   {56, 24, 144, 1, 1, kRelu6, false},
      {56, 144, 0, 3, 1, kRelu6, false},   {56, 144, 24, 1, 1, kNone, false},
      {28, 240, 0, 5, 1, kRelu6, false},   {28, 240, 40, 1, 1, kNone, false},
      {14, 112, 672, 1, 1, kRelu6, false}, {14, 672, 0, 5, 1, kRelu6, false},
      {14, 672, 112, 1, 1, kNone, false},  {7, 192, 1152, 1, 1, kRelu6, false},
      {7, 1152, 0, 5, 1, kRelu6, false},   {7, 1152, 192, 1, 1, kNone, false}};
  const int all = available_cpus();
  for (const int threads : all > 1 ? std::vector<int>{1, all} : std::vector<int>{1}) {
    for (const auto& [network, layers] : {std::pair{"palm", palm}, {"landmark", landmark}}) {
      for (const Layer& l : layers) {
        add(
            fmt::format("{}/{}x{}x{}/{}{}x{}s{}", network, l.extent, l.extent, l.channels,
                        l.filters == 0 ? "depthwise" : fmt::format("{}:", l.filters), l.side, l.side,
                        l.stride),
            [l] { return one_layer(l); }, threads);
      }
    }
    add("palm/whole", [] { return palm_like(4); }, threads);
  }
}

}  // namespace
}  // namespace sinew

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  sinew::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

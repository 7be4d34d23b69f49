// One crop through the full-size network, random weights: time and share of the machine's peak, which is
// measured in the same run with the library's own largest product.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "models/hamer/program.h"
#include "models/hamer/synth.h"
#include "program/linear.h"

namespace sinew {
namespace {

/// Plan tensors of any name filled with small random numbers: the time does not depend on their values.
class RandomWeights final : public WeightSource {
 public:
  TensorView load(const std::string& name, DType dtype, const Shape& shape) override {
    Tensor values(DType::kF32, shape);
    hamer::synth_values(hamer::Generator::kNormal, 1, {name, shape}, 0, shape.count(),
                        values.as<float>().data());
    current_ = convert(values, dtype);
    return current_;
  }
  void release(const std::string&) override { current_ = Tensor(); }

 private:
  Tensor current_;
};

/// The published shapes without the published bytes.
class HeadersOnly final : public Checkpoint {
 public:
  explicit HeadersOnly(const hamer::Config& config) : Checkpoint("headers") {
    for (const hamer::ExpectedTensor& tensor : hamer::expected_tensors(config)) {
      tensors_.emplace(tensor.name, TensorView(DType::kF32, tensor.shape, nullptr));
    }
  }
  std::string_view format() const override { return "headers"; }
  void release(const TensorView&) const override {}
};

/// GFLOP/s of one product large enough to be bound by arithmetic, on all threads: what the network is held
/// against.
double peak_gflops(Policy policy, Backend& backend) {
  ProgramBuilder builder("peak");
  constexpr std::int64_t kSide = 1536;
  Linear op;
  op.x = builder.input("x", product_dtype(policy), {kSide, kSide});
  op.weight = builder.weight("w", product_dtype(policy), {kSide, kSide});
  op.out = builder.output("out", DType::kF32, {kSide, kSide});
  builder.add(op);
  RandomWeights weights;
  const auto session = backend.compile(builder.finish(), weights);
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    const auto start = std::chrono::steady_clock::now();
    session->run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, session->program().flops() / seconds / 1e9);
  }
  return best;
}

void run_hamer(benchmark::State& state, Policy policy, int threads) {
  if (policy == Policy::kBF16 && !cpu_has_products(DType::kBF16)) {
    state.SkipWithError("this processor has no bf16 product");
    return;
  }
  const hamer::Config config;
  Sources sources;
  sources.add_all(std::make_shared<HeadersOnly>(config));
  hamer::Graph graph = hamer::build(config, sources, {.policy = policy});
  const auto backend = make_cpu_backend({.threads = threads});
  const double peak = peak_gflops(policy, *backend);
  RandomWeights weights;
  const auto session = backend->compile(std::move(graph.program), weights);
  session->run();
  for (auto _ : state) session->run();
  const double flops = session->program().flops();
  state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  // 100 % would be the whole network at the speed of the library's best product.
  state.counters["of_peak"] =
      benchmark::Counter(flops / 1e9 / peak, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_GFLOP/s"] = peak;
  state.counters["weights_MB"] = static_cast<double>(session->weight_bytes()) / 1e6;
}

void register_all() {
  const int all = available_cpus();
  for (const Policy policy : {Policy::kF32, Policy::kBF16}) {
    for (const int threads : all > 1 ? std::vector<int>{1, all} : std::vector<int>{1}) {
      const std::string name =
          std::string("hamer/") + std::string(to_string(policy)) + "/threads:" + std::to_string(threads);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { run_hamer(state, policy, threads); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->MinTime(3);
    }
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

// Products of HaMeR's shapes (M x K x N) with cold weights: more copies of the packed weight than the caches
// hold are taken in turn, as a network would. `gflops` is the median over all runs; `of_peak` its share of a
// loop of f32 multiply-adds (or bf16 dot products, where the kernel uses those) that touches nothing but
// registers, timed between the runs; `gb_s` the packed bytes a second; `best` and `best_of_peak` are the
// fastest run and loop, for machines with other work. Own kernels of each instruction set beside oneDNN's.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/gemm_native.h"
#include "backend/cpu/gemm_onednn.h"
#include "backend/cpu/peak.h"

namespace sinew::cpu {
namespace {

/// What one thread had of the processor, so that a busy machine does not count; the wall's time for more.
double seconds(int threads) {
  timespec now{};
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// ---- peaks ----

/// The widest loop of an operand up to an instruction set.
PeakLoop peak_for(std::string_view operand, Isa isa) {
  PeakLoop widest{};
  for (const PeakLoop& loop : peak_loops(isa)) {
    if (loop.operand == operand) widest = loop;
  }
  return widest;
}
double peak_flops(const PeakLoop& loop, ThreadPool& pool) {
  constexpr std::int64_t kRounds = 20000;
  const double start = seconds(pool.size());
  pool.parallel_for(pool.size(), [&](int, int) { loop.run(kRounds); });
  return loop.flops_per_round * kRounds * pool.size() / (seconds(pool.size()) - start);
}

// ---- products ----

enum class Library : std::uint8_t { kOwn, kOneDnn };
struct Subject {
  const char* name;
  Library library;
  Isa isa;
  DType operand;
  WeightStorage storage;
};

AlignedBuffer packed(const Subject& subject, const GemmShape& shape) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> codes(-63, 63);  // bfp8_b values under one exponent
  Tensor weight(DType::kF32, {shape.n, shape.k});
  for (float& v : weight.as<float>()) v = static_cast<float>(codes(random)) / 1024;
  const Tensor stored = convert(weight, shape.operand);
  const bool own = subject.library == Library::kOwn;
  AlignedBuffer out((own ? native_form(shape, subject.isa) : onednn_form(shape)).bytes);
  const std::span<std::byte> bytes{out.data(), out.size()};
  own ? native_pack(stored, shape, bytes, subject.isa) : onednn_pack(stored, shape, bytes);
  return out;
}

/// Many products of one shape, each with a weight of its own; x, out and scratch are shared.
class Layers {
 public:
  Layers(const Subject& subject, const GemmShape& shape, int threads) {
    constexpr std::size_t kColdBytes = std::size_t{640} << 20;  // caches of 260 MB were met
    x_ = Tensor(shape.operand, {shape.m, shape.k});
    out_ = Tensor(shape.out, {shape.m, shape.n});
    bias_ = Tensor(DType::kF32, {shape.n});
    const AlignedBuffer first = packed(subject, shape);
    bytes_ = first.size();
    const std::size_t count = std::max<std::size_t>(2, kColdBytes / bytes_);
    weights_ = AlignedBuffer(count * bytes_);  // packed bytes are a multiple of 64
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* weight = weights_.data() + i * bytes_;
      std::memcpy(weight, first.data(), bytes_);
      const GemmOperands operands{x_.data(), weight, bias_.as<float>().data(), nullptr, out_.data()};
      gemms_.push_back(subject.library == Library::kOwn
                           ? make_native_gemm(shape, operands, threads, subject.isa)
                           : make_onednn_gemm(shape, operands, threads));
    }
    const ScratchSize size = gemms_[0]->scratch();
    shared_ = AlignedBuffer(size.shared);
    per_thread_ = AlignedBuffer(size.per_thread * static_cast<std::size_t>(threads));
    for (const auto& gemm : gemms_) gemm->bind_scratch({shared_.data(), per_thread_.data(), size.per_thread});
  }
  void run_next(ThreadPool& pool) { gemms_[next_++ % gemms_.size()]->run(pool); }
  std::size_t weight_bytes() const { return bytes_; }
  std::string implementation() const { return gemms_[0]->implementation(); }

 private:
  Tensor x_, out_, bias_;
  AlignedBuffer weights_, shared_, per_thread_;
  std::size_t bytes_ = 0;
  std::vector<std::unique_ptr<Gemm>> gemms_;
  std::size_t next_ = 0;
};

void run(benchmark::State& state, const Subject& subject, const GemmShape& shape, int threads) {
  ThreadPool pool(threads);
  Layers layers(subject, shape, threads);
  // oneDNN, too, uses the dot product for bf16 wherever it has it.
  const bool dot = subject.operand == DType::kBF16 && subject.isa >= Isa::kAvx512Bf16;
  const PeakLoop peak = peak_for(dot ? "bf16" : "f32", subject.isa);
  std::vector<double> peaks, times;
  double last_peak = -1;
  while (state.KeepRunning()) {
    if (seconds(threads) - last_peak > 0.05) {
      peaks.push_back(peak_flops(peak, pool));
      layers.run_next(pool);
      last_peak = seconds(threads);
    }
    const double start = seconds(threads);
    layers.run_next(pool);
    times.push_back(seconds(threads) - start);
    state.SetIterationTime(times.back());
  }
  const double flops = 2.0 * static_cast<double>(shape.m * shape.n * shape.k);
  state.counters["best"] = flops / *std::min_element(times.begin(), times.end()) / 1e9;
  state.counters["best_of_peak"] =
      state.counters["best"] * 1e9 / *std::max_element(peaks.begin(), peaks.end());
  state.counters["gflops"] = flops / median(times) / 1e9;
  state.counters["of_peak"] = flops / median(times) / median(peaks);
  state.counters["peak_gflops"] = median(peaks) / 1e9;
  state.counters["gb_s"] = static_cast<double>(layers.weight_bytes()) / median(times) / 1e9;
  state.SetLabel(layers.implementation());
}

void register_all() {
  constexpr std::int64_t kShapes[][3] = {
      {192, 1280, 3840}, {192, 1280, 1280}, {192, 1280, 5120}, {192, 5120, 1280}, {1, 1024, 1024}};
  constexpr auto kPlain = WeightStorage::kPlain;
  constexpr auto kBfp8 = WeightStorage::kBfp8;
  const Isa best = best_isa();
  if (best < Isa::kAvx2) return;  // no peak to hold anything against
  const std::vector<Subject> subjects = {
      {"own_f32", Library::kOwn, best, DType::kF32, kPlain},
      {"own_bf16", Library::kOwn, best, DType::kBF16, kPlain},
      {"own_bfp8", Library::kOwn, best, DType::kBF16, kBfp8},
      {"own_f32_avx2", Library::kOwn, Isa::kAvx2, DType::kF32, kPlain},
      {"own_bf16_avx2", Library::kOwn, Isa::kAvx2, DType::kBF16, kPlain},
      {"own_bfp8_avx2", Library::kOwn, Isa::kAvx2, DType::kBF16, kBfp8},
      {"own_bf16_avx512", Library::kOwn, Isa::kAvx512, DType::kBF16, kPlain},
      {"own_bfp8_avx512", Library::kOwn, Isa::kAvx512, DType::kBF16, kBfp8},
      {"onednn_f32", Library::kOneDnn, best, DType::kF32, kPlain},
      {"onednn_bf16", Library::kOneDnn, best, DType::kBF16, kPlain},
  };
  for (const auto& [m, k, n] : kShapes) {
    for (const Subject& subject : subjects) {
      const GemmShape shape{.m = m,
                            .n = n,
                            .k = k,
                            .operand = subject.operand,
                            .out = subject.operand,
                            .storage = subject.storage,
                            .bias = true,
                            .gelu = n == 5120};  // the first layer of an MLP
      if (subject.isa > best) continue;
      if (subject.library == Library::kOwn ? !native_serves(shape, subject.isa) : !onednn_serves(shape))
        continue;
      for (const int threads : {1, 2}) {
        if (threads > available_cpus()) continue;
        benchmark::RegisterBenchmark(
            fmt::format("{}x{}x{}/{}/threads:{}", m, k, n, subject.name, threads).c_str(),
            [=](benchmark::State& state) { run(state, subject, shape, threads); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace sinew::cpu

int main(int argc, char** argv) {
  sinew::cpu::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

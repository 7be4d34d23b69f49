#include "backend/cpu/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "base/cpu.h"
#include "tensor/tensor.h"

namespace sinew::cpu {
namespace {

#if defined(__x86_64__)

// The empty assembler statement makes each sum's value unknown, so that no round is left out. 24 sums of the
// 32 registers (12 of 16 with AVX2) hide four cycles of latency on two multipliers three times over.
#define SINEW_PEAK_LOOP(name, isa, Sum, kSums, start, next)      \
  __attribute__((target(isa))) void name(std::int64_t rounds) {  \
    Sum sums[kSums];                                             \
    _Pragma("GCC unroll 32") for (Sum & sum : sums) sum = start; \
    for (std::int64_t round = 0; round < rounds; ++round) {      \
      _Pragma("GCC unroll 32") for (Sum & sum : sums) {          \
        sum = next;                                              \
        asm volatile("" : "+v"(sum));                            \
      }                                                          \
    }                                                            \
  }

SINEW_PEAK_LOOP(f32_ymm, "avx2,fma", __m256, 12, _mm256_set1_ps(0.5F),
                _mm256_fmadd_ps(sum, _mm256_set1_ps(0.5F), sum))
SINEW_PEAK_LOOP(s16_ymm, "avx2", __m256i, 12, _mm256_set1_epi16(1),
                _mm256_add_epi32(sum, _mm256_madd_epi16(sum, _mm256_set1_epi16(1))))
SINEW_PEAK_LOOP(f32_zmm, "avx512f", __m512, 24, _mm512_set1_ps(0.5F),
                _mm512_fmadd_ps(sum, _mm512_set1_ps(0.5F), sum))
SINEW_PEAK_LOOP(bf16_zmm, "avx512f,avx512bf16", __m512, 24, _mm512_set1_ps(0.5F),
                _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00)),
                                 reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00))))
SINEW_PEAK_LOOP(u8s8_zmm, "avx512f,avx512vnni", __m512i, 24, _mm512_set1_epi32(1),
                _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(0x01010101), _mm512_set1_epi32(0x01010101)))

#undef SINEW_PEAK_LOOP

// Two flops a lane and sum; lanes of f32 count pairs (bf16, s16) or fours (u8s8) of products.
constexpr double kYmm = 12 * 8 * 2.0;
constexpr double kZmm = 24 * 16 * 2.0;

#endif

constexpr int kMeasurements = 9;
constexpr double kTargetMs = 20;

double time_ms(const PeakLoop& loop, std::int64_t rounds, ThreadPool& pool) {
  const Stopwatch watch;
  pool.parallel_for(pool.size(), [&](int, int) { loop.run(rounds); });
  return watch.elapsed_ms();
}

// The exclusive or of all words in vectors of `kBytes`, eight sums at a time.
#define SINEW_READ(name, target_of, kBytes)                                            \
  target_of std::uint64_t name(const std::byte* from, std::size_t bytes) {             \
    typedef std::uint64_t Words __attribute__((vector_size(kBytes)));                  \
    Words sums[8] = {};                                                                \
    for (std::size_t at = 0; at + sizeof(sums) <= bytes; at += sizeof(sums)) {         \
      _Pragma("GCC unroll 8") for (std::size_t i = 0; i < 8; ++i) {                    \
        Words words;                                                                   \
        std::memcpy(&words, from + at + i * sizeof(Words), sizeof(words));             \
        sums[i] ^= words;                                                              \
      }                                                                                \
    }                                                                                  \
    std::uint64_t total = 0;                                                           \
    for (const Words& sum : sums) {                                                    \
      for (std::size_t lane = 0; lane < sizeof(Words) / 8; ++lane) total ^= sum[lane]; \
    }                                                                                  \
    return total;                                                                      \
  }
SINEW_READ(read_xmm, , 16)
#if defined(__x86_64__)
SINEW_READ(read_ymm, __attribute__((target("avx2"))), 32)
SINEW_READ(read_zmm, __attribute__((target("avx512f"))), 64)
#endif
#undef SINEW_READ

using Read = std::uint64_t (*)(const std::byte* from, std::size_t bytes);
Read reader() {
#if defined(__x86_64__)
  if (best_isa() >= Isa::kAvx512) return read_zmm;
  if (best_isa() >= Isa::kAvx2) return read_ymm;
#endif
  return read_xmm;
}

}  // namespace

std::vector<PeakLoop> peak_loops(Isa limit) {
  std::vector<PeakLoop> loops;
#if defined(__x86_64__)
  loops = {{"f32", "vfmadd ymm", Isa::kAvx2, kYmm, f32_ymm},
           {"s16", "vpmaddwd + vpaddd ymm", Isa::kAvx2, 2 * kYmm, s16_ymm},
           {"f32", "vfmadd zmm", Isa::kAvx512, kZmm, f32_zmm},
           {"u8s8", "vpdpbusd zmm", Isa::kAvx512Vnni, 4 * kZmm, u8s8_zmm},
           {"bf16", "vdpbf16ps zmm", Isa::kAvx512Bf16, 2 * kZmm, bf16_zmm}};
#endif
  const Isa isa = std::min(limit, best_isa());
  std::erase_if(loops, [isa](const PeakLoop& loop) { return loop.isa > isa; });
  return loops;
}

double measure_peak(const PeakLoop& loop, ThreadPool& pool) {
  std::int64_t rounds = 1000;
  // Doubled until it takes long enough: threads are awake and clocks are up by then.
  while (time_ms(loop, rounds, pool) < kTargetMs) rounds *= 2;
  double best = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    const double flops = loop.flops_per_round * static_cast<double>(rounds) * pool.size();
    best = std::max(best, flops / time_ms(loop, rounds, pool) / 1e6);
  }
  return best;
}

double measure_read_bandwidth(std::size_t bytes, ThreadPool& pool) {
  AlignedBuffer memory(bytes);
  std::memset(memory.data(), 1, bytes);  // untouched pages are all one page of zeros
  const std::size_t share = bytes / static_cast<std::size_t>(pool.size());
  std::vector<std::uint64_t> words(static_cast<std::size_t>(pool.size()));
  const Read read = reader();
  double best = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    const Stopwatch watch;
    pool.parallel_for(pool.size(), [&](int task, int) {
      const auto part = static_cast<std::size_t>(task);
      words[part] = read(memory.data() + part * share, share);
    });
    best = std::max(best, static_cast<double>(share * words.size()) / watch.elapsed_ms() / 1e6);
  }
  // What was read is used, so that it had to be read.
  volatile std::uint64_t used = std::accumulate(words.begin(), words.end(), std::uint64_t{0});
  (void)used;
  return best;
}

}  // namespace sinew::cpu

// What this machine can do at most: loops that touch nothing but registers, and reading memory once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace sinew::cpu {

/// A loop of independent multiply-adds of one instruction: as many sums as keep all multipliers busy, none of
/// which waits for another (spec cpu_kernels 2.1).
struct PeakLoop {
  std::string_view operand;      // "f32", "bf16", "u8s8", "s16"
  std::string_view instruction;  // "vfmadd zmm"
  Isa isa;                       // that has it
  double flops_per_round;        // a multiply and an add count as two
  void (*run)(std::int64_t rounds);
};

/// Those of the instruction sets up to `limit` that this processor has, ascending. AMX is not among them.
std::vector<PeakLoop> peak_loops(Isa limit = best_isa());

/// GFLOP/s (GOP/s of integers) of a loop on all threads of the pool: the best of several measurements of
/// about 20 ms, because other work on the machine can only slow a measurement down.
double measure_peak(const PeakLoop& loop, ThreadPool& pool);

/// GB/s (1e9 bytes) at which the threads of the pool together read `bytes` of memory, each its own part, the
/// best of several passes. Larger than the caches: that of memory. Throws std::bad_alloc.
double measure_read_bandwidth(std::size_t bytes, ThreadPool& pool);

}  // namespace sinew::cpu

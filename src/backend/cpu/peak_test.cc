#include "backend/cpu/peak.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/cpu.h"

namespace sinew::cpu {
namespace {

// Nothing here bounds a time: a loop that the compiler had emptied would not take longer with more rounds,
// and measure_peak() would not end.
TEST(Peak, EveryLoopOfThisProcessorRunsAndIsMeasured) {
  ThreadPool pool(1);
  std::set<std::string> names;
  for (const PeakLoop& loop : peak_loops()) {
    EXPECT_TRUE(names.insert(std::string(loop.operand) + " " + std::string(loop.instruction)).second);
    EXPECT_GT(measure_peak(loop, pool), 0) << loop.instruction;
  }
  EXPECT_TRUE(peak_loops(Isa::kBaseline).empty());
  EXPECT_EQ(names.contains("f32 vfmadd zmm"), best_isa() >= Isa::kAvx512);
  EXPECT_EQ(names.contains("bf16 vdpbf16ps zmm"), best_isa() >= Isa::kAvx512Bf16);
}

TEST(Peak, ReadsMemoryWithAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    EXPECT_GT(measure_read_bandwidth(1 << 20, pool), 0) << threads;
  }
}

}  // namespace
}  // namespace sinew::cpu

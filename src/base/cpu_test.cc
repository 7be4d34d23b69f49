#include "base/cpu.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(Cpu, Bf16IsPreferredOnlyWhereItExists) {
  if (best_isa() < Isa::kAvx512Bf16) {
    EXPECT_FALSE(bf16_doubles_products());
  } else if (cpu_name().find("AMD") != std::string::npos) {
    EXPECT_TRUE(bf16_doubles_products());
  }
}

}  // namespace
}  // namespace sinew

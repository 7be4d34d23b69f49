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

TEST(Cpu, NamesOfInstructionSetsAreReadBack) {
  for (const Isa isa : kAllIsas) EXPECT_EQ(parse_isa(to_string(isa)), isa);
  EXPECT_EQ(parse_isa("avx"), std::nullopt);
  EXPECT_EQ(parse_isa(""), std::nullopt);
}

TEST(Cpu, ALowerInstructionSetNeverPrefersBf16) {
  EXPECT_FALSE(bf16_doubles_products(Isa::kAvx512Vnni));
  EXPECT_EQ(bf16_doubles_products(Isa::kAmx), bf16_doubles_products());
}

}  // namespace
}  // namespace sinew

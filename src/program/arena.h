// The arena: one block of memory for all values that a run writes, planned ahead from their lifetimes.
#pragma once

#include <cstddef>
#include <vector>

#include "program/program.h"

namespace sinew {

/// Ops [first, last] during which a value's memory must be its own. Inputs and outputs live throughout.
struct Lifetime {
  int first = 0;
  int last = 0;
};

struct ArenaPlan {
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> offset;  // by value index; kNone for weights
  std::vector<Lifetime> lifetime;   // by value index; meaningless for weights
  std::size_t bytes = 0;
};

/// Greedy by size: largest value first, each at the lowest offset that is free during its lifetime. Two
/// values that are alive at one op never overlap.
ArenaPlan plan_arena(const Program& program);

}  // namespace sinew

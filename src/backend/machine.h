// How much of the machine a backend may use.
#pragma once

#include <optional>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace sinew {

struct MachineOptions {
  int threads = 0;              // 0: as many as this process may use
  std::optional<Isa> isa = {};  // the highest instruction set; nothing: whatever the processor has
  PoolOptions pool = {};
};

}  // namespace sinew

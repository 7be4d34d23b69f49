// Processes as the cache names them: a number comes round again, a number with a start time does not.
#pragma once

#include <cstdint>

namespace sinew {

struct ProcessId {
  std::int64_t pid = 0;
  std::uint64_t start = 0;  // clock ticks since the machine started
};

ProcessId this_process();
/// False only when no process has this number and this start, as far as this one can see.
bool is_alive(const ProcessId& process);

}  // namespace sinew

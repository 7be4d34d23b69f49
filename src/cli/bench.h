// sinew bench
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "cli/machine_options.h"

namespace sinew::cli {

/// What a measured start is asked for.
struct BenchOptions {
  std::string model;
  std::string policy;
  MachineWords machine;
  int runs = 5;  // after the first
};
void declare_start(Command& command, BenchOptions& options);

std::function<int()> declare_bench_start(Command& command);
std::function<int()> declare_bench_load(Command& command);
std::function<int()> declare_bench_peak(Command& command);

}  // namespace sinew::cli

// sinew bench
#pragma once

#include <functional>

#include "cli/command.h"

namespace sinew::cli {

std::function<int()> declare_bench_start(Command& command);
std::function<int()> declare_bench_load(Command& command);

}  // namespace sinew::cli

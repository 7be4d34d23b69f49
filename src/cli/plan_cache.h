// sinew plan list, verify, prune: the cache of prepared weights, as its owner sees it.
#pragma once

#include <functional>

#include "cli/command.h"

namespace sinew::cli {

std::function<int()> declare_plan_list(Command& command);
std::function<int()> declare_plan_verify(Command& command);
std::function<int()> declare_plan_prune(Command& command);

}  // namespace sinew::cli

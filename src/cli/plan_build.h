// sinew plan build MODEL
#pragma once

#include <functional>

#include "cli/command.h"

namespace sinew::cli {

std::function<int()> declare_plan_build(Command& command);

}  // namespace sinew::cli

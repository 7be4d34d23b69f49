// Options of every verb that runs programs: how much of the machine it may use.
#pragma once

#include <string>

#include "backend/machine.h"
#include "cli/command.h"

namespace sinew::cli {

struct MachineWords {
  int threads = 0;
  std::string isa;
  bool pin = false;
  bool latency = false;
};

/// --threads, --isa, --pin, --latency
void declare_machine(Command& command, MachineWords& words);
/// --isa alone, for verbs that plan and do not run.
void declare_isa(Command& command, std::string& word);
/// Throws Error (kUsage) for a number of threads below 0.
MachineOptions machine_options(const MachineWords& words);

}  // namespace sinew::cli

#include "cli/machine_options.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace sinew::cli {

void declare_isa(Command& command, std::string& word) {
  std::vector<std::string> words;
  words.reserve(kAllIsas.size());
  for (const Isa isa : kAllIsas) words.emplace_back(to_string(isa));
  command.choice("--isa", word, words,
                 "The highest instruction set of the networks' kernels; default: the processor's best");
}

void declare_machine(Command& command, MachineWords& words) {
  command.option("--threads", words.threads, "Threads; 0: all CPUs");
  declare_isa(command, words.isa);
  command.flag("--pin", words.pin, "Each thread on a CPU of its own");
  command.flag("--latency", words.latency,
               "Threads wait for work without sleeping: the lowest latency, at the price of their CPUs");
}

MachineOptions machine_options(const MachineWords& words) {
  if (words.threads < 0) throw fail(ErrorCode::kUsage, "--threads {}: expected 0 or more", words.threads);
  return {.threads = words.threads,
          .isa = parse_isa(words.isa),
          .pool = {.pin = words.pin, .hot = words.latency}};
}

}  // namespace sinew::cli

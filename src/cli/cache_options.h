// Options of every verb that opens a model over prepared weights.
#pragma once

#include <string>

#include "cli/command.h"
#include "plan/prepared_weights.h"

namespace sinew::cli {

struct CacheWords {
  bool no_cache = false;
  bool force = false;
  bool prefault = false;
  std::string verify = "changed";
};

void declare_cache(Command& command, CacheWords& words);
/// Reads the environment for the folder of the cache. Where it names none, nothing is kept, and stderr says
/// so. Throws Error (kUsage) for options that exclude each other.
CacheOptions cache_options(const CacheWords& words);
/// Shows a progress bar for each long phase of a start.
LoadObserver progress_observer();

}  // namespace sinew::cli

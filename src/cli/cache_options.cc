#include "cli/cache_options.h"

#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/progress.h"
#include "cli/support.h"
#include "plan/cache.h"

namespace sinew::cli {

void declare_cache(Command& command, CacheWords& words) {
  command.flag("--no-cache", words.no_cache,
               "Prepare weights in memory; neither read nor write $SINEW_CACHE (default "
               "$XDG_CACHE_HOME/sinew, ~/.cache/sinew)");
  command.flag("--force", words.force, "Prepare all weights again, whatever the cache holds");
  command.choice("--verify", words.verify, {"changed", "full"},
                 "Check prepared weights that were written or touched since the last check, or read the "
                 "checkpoint and all of them");
  command.flag("--prefault", words.prefault,
               "Read all prepared weights at the start, so that the first run is as fast as the next");
}

CacheOptions cache_options(const CacheWords& words) {
  CacheOptions options;
  options.force = words.force;
  options.prefault = words.prefault;
  options.verify_full = words.verify == "full";
  if (words.no_cache) {
    if (words.force || options.verify_full || words.prefault)
      throw fail(ErrorCode::kUsage, "--no-cache excludes --force, --verify full and --prefault");
    return options;
  }
  try {
    options.root = cache_root();
  } catch (const Error& error) {
    fmt::print(stderr, "sinew: prepared weights are not kept: {}\n", one_line(error));
  }
  return options;
}

LoadObserver progress_observer() {
  // One bar at a time: the next phase takes the last one's place.
  const auto bar = std::make_shared<std::unique_ptr<Progress>>();
  LoadObserver observer;
  observer.begin = [bar](std::string_view phase, std::uint64_t bytes) {
    *bar = nullptr;
    *bar = std::make_unique<Progress>(std::string(phase), bytes, ProgressUnit::kBytes);
  };
  observer.advance = [bar](std::uint64_t bytes) {
    if (*bar) (*bar)->advance(bytes);
  };
  observer.end = [bar] { *bar = nullptr; };
  return observer;
}

}  // namespace sinew::cli

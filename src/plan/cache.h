// The folder that holds every tier of every plan: where it is, what is in it, what to remove.
//
//   <root>/digests.json             digests of checkpoints (content_digest.h)
//   <root>/plans/<identity>/        a tier (tier.h)
//   <root>/plans/<identity>.lock    the lock of who writes it (lock.h)
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/file_layer.h"
#include "plan/manifest.h"

namespace sinew {

/// $SINEW_CACHE, else $XDG_CACHE_HOME/sinew, else $HOME/.cache/sinew; a variable that is empty counts as
/// unset, and so does an XDG_CACHE_HOME that is not absolute, as its standard has it. Throws Error (kUsage)
/// when none is set.
std::string cache_root();
/// Where the tier of an identity lies.
std::string tier_folder(const std::string& root, const Identity& identity);

using FileTime = std::chrono::system_clock::time_point;

struct TierInfo {
  std::string folder;
  Identity identity;        // empty when there is no readable manifest
  std::uint64_t bytes = 0;  // of all files in the folder
  FileTime built;           // the marker's time, else the folder's
  FileTime last_used;       // never before `built`
  bool complete = false;
  std::string why_empty;  // when it is not complete
  bool in_use = false;    // by a reader or a writer
};
/// Every tier under a root, complete or not, by folder; none when there is no such folder. Takes no lock.
std::vector<TierInfo> list_tiers(const std::string& root);

/// What to remove: what is not complete and not being written, whatever the rule, for it is of no use; tiers
/// not used for longer than `unused_for`; then those longest unused, until all that is left has `total_bytes`
/// at most.
struct PruneRule {
  std::optional<std::chrono::seconds> unused_for;
  std::optional<std::uint64_t> total_bytes;
};
struct PruneResult {
  std::vector<TierInfo> removed;
  std::vector<TierInfo> in_use;                          // would have gone, but somebody reads or writes them
  std::vector<std::pair<TierInfo, std::string>> failed;  // and what the system said
};
PruneResult prune(const std::string& root, const PruneRule& rule, FileLayer& files = system_files());

}  // namespace sinew

// The folder that holds every tier of every plan: where it is, what is in it, what to remove.
//
//   <root>/digests.json             digests of checkpoints (content_digest.h)
//   <root>/plans/<identity>/        a tier (tier.h)
//   <root>/plans/<identity>.lock    the lock of who writes it (lock.h)
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/content_digest.h"
#include "plan/file_layer.h"
#include "plan/manifest.h"
#include "plan/tier.h"

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
  Identity identity;        // of its manifest, else empty; without a marker only when the folder has its name
  std::size_t tensors = 0;  // as the manifest has them
  std::uint64_t bytes = 0;  // of all files in the folder
  FileTime built;           // the marker's time, else the folder's
  FileTime last_used;       // never before `built`
  bool complete = false;
  std::string why_empty;       // when it is not complete
  std::string wrong_path;      // the file or folder that `why_empty` is about
  bool damaged = false;        // not complete, and no interrupted or older build explains it
  bool in_use = false;         // by a reader or a writer
  bool being_written = false;  // by a writer
};
/// Every tier under a root, complete or not, by folder; none when there is no such folder. Takes no lock, and
/// counts as no use. A writer takes the marker away first and puts it back last, so a tier without one is
/// unfinished, never damaged; so is what another version of sinew wrote. A marker that is not of its
/// manifest, a manifest that cannot be read, or an identity that is not of the folder's name is damage.
/// Throws Error (kIo) when the folder cannot be listed.
std::vector<TierInfo> list_tiers(const std::string& root);

/// Whole: tier.complete without damages. Cold: neither. Damaged: with damages, of the tier's tensors or (then
/// the only one) of its manifest or marker.
struct TierCheck {
  TierInfo tier;  // as it is now
  std::vector<Damage> damages;
};
/// Reads every file of a tier against its digests. Counts as no use, and what a writer changes meanwhile is
/// no damage: the tier is then read again or, after three tries, cold. Progress ends at `tier.bytes` unless
/// the tier changed.
TierCheck check_tier(const TierInfo& tier, const ByteProgress& progress = {},
                     FileLayer& files = system_files());

/// What to remove: what is not complete and not being written, whatever the rule, for it is of no use; tiers
/// not used for longer than `unused_for`; then those longest unused, until all that is left has `total_bytes`
/// at most. `only`, when there is one, says which tiers the rule is about: others stay and do not count.
struct PruneRule {
  std::optional<std::chrono::seconds> unused_for = {};
  std::optional<std::uint64_t> total_bytes = {};
  std::function<bool(const TierInfo&)> only = {};
  bool dry_run = false;  // nothing is removed; the result says what would be
};
struct PruneResult {
  std::vector<TierInfo> removed;
  std::vector<TierInfo> in_use;                          // would have gone, but somebody reads or writes them
  std::vector<std::pair<TierInfo, std::string>> failed;  // and what the system said
};
PruneResult prune(const std::string& root, const PruneRule& rule, FileLayer& files = system_files());

}  // namespace sinew

#include "plan/cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "plan/lock.h"
#include "plan/tier_state.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string inside(const std::string& folder, std::string_view name) {
  return folder + "/" + std::string(name);
}

std::optional<FileTime> time_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  const auto since =
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return FileTime(std::chrono::duration_cast<FileTime::duration>(since));
}

/// Names of everything in a folder; none when it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    out.push_back(at->path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

TierInfo describe(const std::string& folder) {
  TierInfo out;
  out.folder = folder;
  TierHead head = read_head(folder);
  out.complete = head.why.empty();
  out.why_empty = std::move(head.why);
  out.identity = std::move(head.manifest.identity);
  for (const std::string& name : names_in(folder)) {
    struct stat info{};
    if (::lstat(inside(folder, name).c_str(), &info) == 0 && S_ISREG(info.st_mode))
      out.bytes += static_cast<std::uint64_t>(info.st_size);
  }
  const auto marker = time_of(inside(folder, kMarkerFile));
  out.built = marker ? *marker : time_of(folder).value_or(FileTime());
  out.last_used = std::max(out.built, time_of(inside(folder, kUseFile)).value_or(out.built));
  out.in_use = UseLock::is_held(inside(folder, kUseFile)) || TierLock::is_held(lock_path(folder));
  return out;
}

/// Locks of tiers that are gone.
void remove_stray_locks(const std::string& plans, FileLayer& files) {
  for (const std::string& name : names_in(plans)) {
    const fs::path path = inside(plans, name);
    std::error_code ignored;
    if (path.extension() != ".lock" || !Digest::parse(path.stem().string())) continue;
    if (fs::exists(inside(plans, path.stem().string()), ignored)) continue;
    try {
      if (const auto lock = TierLock::try_acquire(path.string())) files.remove(path.string());
    } catch (const Error& error) {
      log(LogLevel::kInfo, "{}", error.what());  // an empty file more
    }
  }
}

/// False when somebody uses it. The marker goes first, so that what a crash leaves is cold.
bool remove_tier(const std::string& folder, FileLayer& files) {
  const auto writer = TierLock::try_acquire(lock_path(folder));
  if (!writer) return false;
  const UseLock readers = UseLock::take_alone(inside(folder, kUseFile));
  if (readers.state() == UseLock::State::kRefused) return false;
  files.remove(inside(folder, kMarkerFile));
  files.sync_folder(folder);
  for (const std::string& name : names_in(folder)) {
    // Readers that come now meet the lock, until the last.
    if (name != kUseFile) files.remove(inside(folder, name));
  }
  files.remove(inside(folder, kUseFile));
  files.remove_folder(folder);
  files.remove(lock_path(folder));
  return true;
}

}  // namespace

std::string cache_root() {
  if (auto root = variable("SINEW_CACHE"); !root.empty()) return root;
  if (const auto caches = variable("XDG_CACHE_HOME"); caches.starts_with('/')) return caches + "/sinew";
  if (const auto home = variable("HOME"); !home.empty()) return home + "/.cache/sinew";
  throw Error(ErrorCode::kUsage,
              "no folder for the cache: none of SINEW_CACHE, XDG_CACHE_HOME and HOME is set",
              "set SINEW_CACHE to a folder");
}

std::string tier_folder(const std::string& root, const Identity& identity) {
  return fmt::format("{}/plans/{}", root, digest_of(identity).hex());
}

std::vector<TierInfo> list_tiers(const std::string& root) {
  std::vector<TierInfo> out;
  const std::string plans = root + "/plans";
  for (const std::string& name : names_in(plans)) {
    // Nothing else is a tier, whatever it is and whoever put it there.
    std::error_code ignored;
    if (Digest::parse(name) && fs::is_directory(fs::symlink_status(inside(plans, name), ignored)))
      out.push_back(describe(inside(plans, name)));
  }
  return out;
}

PruneResult prune(const std::string& root, const PruneRule& rule, FileLayer& files) {
  std::vector<TierInfo> tiers = list_tiers(root);
  std::ranges::sort(tiers, {}, [](const TierInfo& tier) { return std::pair(tier.last_used, tier.folder); });
  std::uint64_t total = 0;
  for (const TierInfo& tier : tiers) total += tier.bytes;
  const FileTime now = std::chrono::system_clock::now();
  PruneResult out;
  for (TierInfo& tier : tiers) {
    const bool old = rule.unused_for && now - tier.last_used > *rule.unused_for;
    const bool too_much = rule.total_bytes && total > *rule.total_bytes;
    if (tier.complete && !old && !too_much) continue;
    try {
      if (remove_tier(tier.folder, files)) {
        total -= tier.bytes;
        out.removed.push_back(std::move(tier));
      } else {
        tier.in_use = true;
        out.in_use.push_back(std::move(tier));
      }
    } catch (const Error& error) {
      out.failed.emplace_back(std::move(tier), error.what());
    }
  }
  remove_stray_locks(root + "/plans", files);
  return out;
}

}  // namespace sinew

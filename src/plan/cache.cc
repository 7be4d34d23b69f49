#include "plan/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "io/printable.h"
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
  // Nanoseconds in 64 bits end in 2262, file times do not; differences of these two ends still fit.
  constexpr std::int64_t kLastSecond = 9'000'000'000;
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  const auto since = std::chrono::seconds(std::clamp<std::int64_t>(info.st_mtim.tv_sec, 0, kLastSecond)) +
                     std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return FileTime(std::chrono::duration_cast<FileTime::duration>(since));
}

/// Names of everything in a folder, sorted; none when there is no such folder. Throws Error (kIo).
std::vector<std::string> list_names(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    out.push_back(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw fail(ErrorCode::kIo, "{}: cannot list the folder: {}", folder, error.message());
  std::ranges::sort(out);
  return out;
}

/// The same; none when it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  try {
    return list_names(folder);
  } catch (const Error&) {
    return {};
  }
}

/// The format of another version of sinew that marker and manifest agree on, else empty: a marker alone could
/// be this version's, with a flipped bit.
std::string other_format(const std::string& marker, const std::string& manifest) {
  const std::string format = marker.substr(0, marker.find(' '));
  if (format == kTierFormat || !format.starts_with("sinew-tier-")) return {};
  return manifest.find(fmt::format("\"format\": \"{}\"", format)) == std::string::npos ? "" : format;
}

/// What a manifest's text says, or what is wrong with it.
std::pair<std::optional<Manifest>, std::string> parsed(const std::string& text) {
  try {
    return {parse_manifest(text, "manifest"), ""};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

/// Says of a tier without a good head why that is.
void explain(TierHead head, TierInfo& out) {
  out.why_empty = std::move(head.why);
  out.wrong_path = std::move(head.path);
  constexpr std::size_t kMaxMarkerBytes = 4096;
  const std::string marker_path = inside(out.folder, kMarkerFile);
  const std::string manifest_path = inside(out.folder, kManifestFile);
  const auto marker = read_small_file(marker_path, kMaxMarkerBytes);
  const auto manifest = read_small_file(manifest_path, kMaxManifestBytes);
  std::error_code ignored;
  if (out.being_written) {
    out.why_empty = "is being written";
    out.wrong_path = out.folder;
  } else if (!marker && fs::exists(fs::symlink_status(marker_path, ignored))) {
    out.damaged = true;
    out.why_empty = "no readable marker";
    out.wrong_path = marker_path;
  } else if (marker) {
    const std::string other = manifest ? other_format(*marker, *manifest) : std::string();
    out.damaged = other.empty();
    if (!other.empty()) {
      out.why_empty = fmt::format("was made by another version of sinew: format '{}', expected '{}'",
                                  printable(other), kTierFormat);
    }
  }
  if (!manifest) return;
  auto [said, wrong] = parsed(*manifest);
  if (!said && out.damaged && marker && marker->size() == marker_text({}).size()) {
    // Of the two that do not fit, it is this one; when both could be right, the marker stands for both.
    out.why_empty = std::move(wrong);
    out.wrong_path = manifest_path;
  }
  if (!said || digest_of(said->identity).hex() != fs::path(out.folder).filename()) return;
  out.identity = std::move(said->identity);
  out.tensors = said->files.size();
}

TierInfo describe(const std::string& folder) {
  TierInfo out;
  out.folder = folder;
  TierHead head = read_head(folder);
  // Once more: a writer that ended between the two reads leaves one tier's marker and another's manifest.
  if (!head.why.empty()) head = read_head(folder);
  if (head.why.empty() && digest_of(head.manifest.identity).hex() != fs::path(folder).filename()) {
    head.why = "its identity is not that of the folder's name";
    head.path = inside(folder, kManifestFile);
  }
  out.being_written = TierLock::is_held(lock_path(folder));
  out.in_use = out.being_written || UseLock::is_held(inside(folder, kUseFile));
  out.complete = head.why.empty();
  if (out.complete) {
    out.identity = std::move(head.manifest.identity);
    out.tensors = head.manifest.files.size();
  } else {
    explain(std::move(head), out);
  }
  for (const std::string& name : names_in(folder)) {
    struct stat info{};
    if (::lstat(inside(folder, name).c_str(), &info) == 0 && S_ISREG(info.st_mode))
      out.bytes += static_cast<std::uint64_t>(info.st_size);
  }
  const auto marker = time_of(inside(folder, kMarkerFile));
  out.built = marker ? *marker : time_of(folder).value_or(FileTime());
  out.last_used = std::max(out.built, time_of(inside(folder, kUseFile)).value_or(out.built));
  return out;
}

/// Reads a tier without noting a use: a cache that is verified every night would else never grow old.
std::vector<Damage> read_unnoted(const TierInfo& info, const ByteProgress& progress, FileLayer& files) {
  return Tier(info.folder, info.identity, files, TierUse::kUnnoted).verify(progress);
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
  for (const std::string& name : list_names(plans)) {
    // Nothing else is a tier, whatever it is and whoever put it there.
    std::error_code ignored;
    if (Digest::parse(name) && fs::is_directory(fs::symlink_status(inside(plans, name), ignored)))
      out.push_back(describe(inside(plans, name)));
  }
  return out;
}

TierCheck check_tier(const TierInfo& tier, const ByteProgress& progress, FileLayer& files) {
  constexpr int kTries = 3;
  std::uint64_t done = 0;
  // A second try tells its bytes once more, but no more than there are.
  const auto advance = [&](std::uint64_t bytes) {
    const std::uint64_t now = std::min(bytes, tier.bytes - done);
    done += now;
    if (progress && now > 0) progress(now);
  };
  TierCheck out;
  out.tier = describe(tier.folder);
  for (int i = 0; i < kTries; ++i) {
    if (!out.tier.complete) break;
    out.damages = read_unnoted(out.tier, advance, files);
    if (out.damages.empty()) break;
    TierInfo after = describe(tier.folder);
    const bool same = after.complete && !after.being_written && after.built == out.tier.built;
    out.tier = std::move(after);
    if (same) break;
    out.damages.clear();
    if (i + 1 < kTries) continue;
    out.tier.complete = out.tier.damaged = false;
    out.tier.why_empty = "is being written";
  }
  if (out.tier.damaged) out.damages.push_back({{}, out.tier.wrong_path, out.tier.why_empty});
  advance(tier.bytes);
  return out;
}

PruneResult prune(const std::string& root, const PruneRule& rule, FileLayer& files) {
  std::vector<TierInfo> tiers = list_tiers(root);
  if (rule.only) std::erase_if(tiers, [&](const TierInfo& tier) { return !rule.only(tier); });
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
      if (rule.dry_run ? !tier.in_use : remove_tier(tier.folder, files)) {
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
  if (!rule.dry_run) remove_stray_locks(root + "/plans", files);
  return out;
}

}  // namespace sinew

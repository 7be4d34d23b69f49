// Opening a tier and reading from it; writing is in tier_write.cc.
#include "plan/tier.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "plan/tier_state.h"

namespace sinew {
namespace {

constexpr std::size_t kMaxMarkerBytes = 4096;

}  // namespace

TierHead read_head(const std::string& folder) {
  TierHead head;
  head.path = folder;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    head.why = "no such folder";
    return head;
  }
  head.path = folder + "/" + std::string(kMarkerFile);
  const auto marker = read_small_file(head.path, kMaxMarkerBytes);
  const std::string manifest_path = folder + "/" + std::string(kManifestFile);
  const auto text = read_small_file(manifest_path, kMaxManifestBytes);
  if (!marker) {
    head.why = "was not finished: no marker";
    return head;
  }
  if (text) head.digest = digest_of(*text);
  if (text && *marker != marker_text(head.digest)) {
    head.why = "the marker is not the manifest's";
    return head;
  }
  head.path = manifest_path;
  if (!text) {
    head.why = "no readable manifest";
    return head;
  }
  try {
    head.manifest = parse_manifest(*text, "manifest");
  } catch (const Error& error) {
    head.why = error.what();
  }
  return head;
}

void Tier::State::open() {
  read_only = !files.writable(folder);
  // Before the marker: whoever removes the tier takes the marker first, and cannot begin while this is held.
  use = UseLock::share(path(kUseFile));
  if (use.state() == UseLock::State::kRefused) {
    why = "is being removed";
    return;
  }
  TierHead head = read_head(folder);
  if (head.why.empty()) head.why = difference(head.manifest.identity, identity);
  if (!head.why.empty()) {
    why = std::move(head.why);
    log(LogLevel::kInfo, "{}: cold: {}", folder, why);
    return;
  }
  complete = true;
  digest = head.digest;
  for (const auto& [key, file] : head.manifest.files) {
    entries.emplace_hint(entries.end(), key, std::make_shared<Entry>(file));
  }
  verified = load_remembered_digests(path(kVerifiedFile));
  note_use();
}

std::string Tier::State::load(const TierKey& key, Entry& entry, bool check_always) {
  const std::string where = path(key);
  const std::int64_t begun = file_time_now();
  const auto stamp = stamp_of(where);
  try {
    entry.map = MappedFile::open(where);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    return std::string(text.starts_with(where + ": ") ? text.substr(where.size() + 2) : text);
  }
  const std::size_t size = entry.map.bytes().size();
  if (size != entry.file.file_bytes) {
    // Unmapped at once: bytes beyond the end of a cut file are a signal, not an error.
    entry.map = MappedFile();
    return fmt::format("{} bytes, expected {}", size, entry.file.file_bytes);
  }
  // A file that was replaced while it was opened has no stamp that can be trusted.
  const bool steady = stamp && stamp == stamp_of(where);
  if (steady && !check_always && is_verified(key, {*stamp, entry.file.digest})) return {};
  std::string reason = check(key, entry, entry.map, steady ? *stamp : FileStamp{}, begun);
  if (!reason.empty()) entry.map = MappedFile();
  entry.checked = true;
  return reason;
}

std::string Tier::State::check(const TierKey& key, const Entry& entry, const MappedFile& map,
                               const FileStamp& stamp, std::int64_t begun) {
  const Digest found = digest_of(map.bytes());
  if (found != entry.file.digest) {
    forget(key);
    return fmt::format("checksum is {}, expected {}", found.hex(), entry.file.digest.hex());
  }
  if (stamp != FileStamp{} && is_settled(stamp, begun)) remember(key, {stamp, found});
  return {};
}

bool Tier::State::is_verified(const TierKey& key, const RememberedDigest& whole) {
  const std::scoped_lock lock(mutex);
  const auto at = verified.find(file_name(key));
  if (at == verified.end() || at->second != whole) return false;
  confirmed.insert(at->first);
  return true;
}

/// The note on disk is written when every file has had its turn, not after each.
void Tier::State::remember(const TierKey& key, const RememberedDigest& whole) {
  bool all = false;
  {
    const std::scoped_lock lock(mutex);
    const std::string name = file_name(key);
    RememberedDigest& known = verified[name];
    verified_changed = verified_changed || known != whole;
    known = whole;
    confirmed.insert(name);
    all = confirmed.size() == entries.size();
  }
  if (all) store_verified();
}

void Tier::State::forget(const TierKey& key) {
  const std::scoped_lock lock(mutex);
  if (verified.erase(file_name(key)) > 0) verified_changed = true;
}

bool Tier::State::store_verified() noexcept {
  try {
    std::string text;
    {
      const std::scoped_lock lock(mutex);
      if (!verified_changed || !complete || read_only) return false;
      verified_changed = false;
      text = to_text(verified);
    }
    publish(files, path(kVerifiedFile), text);
    return true;
  } catch (...) {
    return false;
  }
}

Tier::Tier(const std::string& folder, const Identity& identity, FileLayer& files, TierUse noting)
    : state_(std::make_unique<State>(folder, identity, files, noting)) {
  state_->open();
}

Tier::~Tier() {
  state_->store_verified();
  // Again: a session may have used it for months.
  if (state_->complete) state_->note_use();
}

bool Tier::complete() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->complete;
}

std::string Tier::why_empty() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->why;
}

bool Tier::read_only() const { return state_->read_only; }

const std::string& Tier::folder() const { return state_->folder; }

std::vector<TierKey> Tier::keys() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<TierKey> out;
  out.reserve(state_->entries.size());
  for (const auto& [key, entry] : state_->entries) out.push_back(key);
  return out;
}

std::optional<TierFile> Tier::info(const TierKey& key) const {
  const std::scoped_lock lock(state_->mutex);
  const auto at = state_->entries.find(key);
  if (at == state_->entries.end()) return std::nullopt;
  return at->second->file;
}

std::uint64_t Tier::bytes() const {
  const std::scoped_lock lock(state_->mutex);
  std::uint64_t sum = 0;
  for (const auto& [key, entry] : state_->entries) sum += entry->file.data_bytes();
  return sum;
}

std::optional<TensorView> Tier::find(const TierKey& key) {
  std::shared_ptr<Entry> entry;
  bool always = false;
  {
    const std::scoped_lock lock(state_->mutex);
    const auto at = state_->entries.find(key);
    if (at == state_->entries.end()) return std::nullopt;
    entry = at->second;
    always = state_->always;
  }
  // One lock per tensor: several threads may read, and check, several at once.
  const std::scoped_lock lock(entry->mutex);
  if (entry->found == Entry::Found::kNotYet ||
      (always && !entry->checked && entry->found == Entry::Found::kWhole)) {
    std::string reason;
    if (entry->found == Entry::Found::kWhole) {
      // Mapped, and views are out: the same bytes are checked in place.
      reason = state_->check(key, *entry, entry->map, {}, 0);
      entry->checked = true;
    } else {
      reason = state_->load(key, *entry, always);
    }
    entry->found = reason.empty() ? Entry::Found::kWhole : Entry::Found::kDamaged;
    if (!reason.empty()) {
      log(LogLevel::kWarning, "{}: {}; tensor '{}' will be made again", state_->path(key), reason,
          encode_text(to_string(key)));
      const std::scoped_lock state_lock(state_->mutex);
      state_->damages.push_back({key, state_->path(key), std::move(reason)});
    }
  }
  if (entry->found != Entry::Found::kWhole) return std::nullopt;
  const std::span<const std::byte> bytes = entry->map.bytes();
  return TensorView(entry->file.dtype, entry->file.shape,
                    bytes.data() + (bytes.size() - entry->file.data_bytes()));
}

void Tier::verify_always() {
  const std::scoped_lock lock(state_->mutex);
  state_->always = true;
}

std::vector<Damage> Tier::damages() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->damages;
}

void Tier::prefault(const TierKey& key) {
  const auto view = find(key);
  if (!view || view->bytes() == 0) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(view->data) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(view->data) + view->bytes();
  auto* const first =
      const_cast<std::byte*>(view->data) - (reinterpret_cast<std::uintptr_t>(view->data) - begin);
#ifdef MADV_POPULATE_READ  // Linux 5.14
  if (::madvise(first, end - begin, MADV_POPULATE_READ) == 0) return;
#endif
  ::madvise(first, end - begin, MADV_WILLNEED);  // advice: failure changes nothing
}

void Tier::release(const TierKey& key) {
  std::shared_ptr<Entry> entry;
  {
    const std::scoped_lock lock(state_->mutex);
    const auto at = state_->entries.find(key);
    if (at == state_->entries.end()) return;
    entry = at->second;
  }
  const std::scoped_lock lock(entry->mutex);
  entry->map.release(entry->map.bytes().data(), entry->map.bytes().size());
}

std::vector<Damage> Tier::verify(const ByteProgress& progress) {
  std::vector<Damage> out;
  std::vector<std::pair<TierKey, std::shared_ptr<Entry>>> all;
  {
    const std::scoped_lock lock(state_->mutex);
    TierHead head = read_head(state_->folder);
    if (head.why.empty()) head.why = difference(head.manifest.identity, state_->identity);
    if (head.why.empty() && (!state_->complete || head.digest != state_->digest))
      head.why = "was replaced since the tier was opened";
    if (!head.why.empty()) out.push_back({{}, head.path, head.why});
    all.assign(state_->entries.begin(), state_->entries.end());
  }
  for (const auto& [key, entry] : all) {
    // A map of its own: what find() handed out stays, and no more than one file is in memory on account of
    // this.
    Entry fresh(entry->file);
    if (std::string reason = state_->load(key, fresh, true); !reason.empty())
      out.push_back({key, state_->path(key), std::move(reason)});
    if (progress) progress(entry->file.file_bytes);
  }
  state_->store_verified();
  return out;
}

}  // namespace sinew

// Writing a tier.
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "plan/tier.h"
#include "plan/tier_state.h"

namespace sinew {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

/// False, said once, when nothing can be written.
bool Tier::State::may_write() {
  if (!read_only) return true;
  const std::scoped_lock lock(mutex);
  if (!std::exchange(said_read_only, true))
    log(LogLevel::kWarning, "{}: cannot be written to; prepared weights are not kept", folder);
  return false;
}

/// From here to finish() the tier is cold for whoever opens it. The marker's removal must be on disk before
/// the first file changes: after a loss of power an old marker would vouch for a mixture.
void Tier::State::begin_rewrite() {
  const std::scoped_lock lock(mutex);
  if (rewriting) return;
  complete = false;
  why = "is being written";
  files.make_folder(folder);
  files.remove(path(kMarkerFile));
  files.remove(path(kVerifiedFile));
  files.sync_folder(folder);
  rewriting = true;
}

void Tier::put(const TierKey& key, const TensorView& tensor) {
  State& s = *state_;
  if (!s.may_write()) return;
  s.begin_rewrite();
  Tensor row_major;
  std::span<const std::byte> data(tensor.data, tensor.bytes());
  if (!tensor.contiguous()) {
    row_major = convert(tensor, tensor.dtype);
    data = {row_major.data(), row_major.view().bytes()};
  }
  const std::string header = tensor_header(key, tensor.dtype, tensor.shape, digest_of(data));
  Digester whole;
  whole.update(header);
  whole.update(data);
  const std::span<const std::byte> parts[] = {bytes_of(header), data};
  publish(s.files, s.path(key), parts);
  const std::scoped_lock lock(s.mutex);
  s.written[key] = {tensor.dtype, tensor.shape, header.size() + data.size(), whole.digest()};
}

/// Removes what is no part of the tier: files of other plans and formats, temporaries of the dead.
void Tier::State::sweep(const Manifest& manifest) {
  std::set<std::string> mine = {std::string(kManifestFile), std::string(kMarkerFile),
                                std::string(kVerifiedFile), std::string(kUseFile)};
  for (const auto& [key, file] : manifest.files) mine.insert(file_name(key));
  std::vector<std::string> strays;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = item.path().filename().string();
    std::error_code ignored;
    const bool is_folder = item.is_directory(ignored) && !item.is_symlink(ignored);
    if (is_folder || mine.contains(name)) continue;
    if (is_temporary(name) && !is_dead_temporary(name)) continue;
    strays.push_back(name);
  }
  for (const std::string& name : strays) {
    files.remove(path(name));
    log(LogLevel::kInfo, "{}: removed: no part of this tier", path(name));
  }
}

void Tier::finish(std::span<const TierKey> keep) {
  State& s = *state_;
  if (!s.may_write()) return;
  Manifest manifest;
  manifest.identity = s.identity;
  std::vector<std::pair<TierKey, std::shared_ptr<Entry>>> kept;
  std::size_t before = 0;
  bool nothing_was_put = false;
  {
    const std::scoped_lock lock(s.mutex);
    for (const TierKey& key : keep) {
      if (const auto fresh = s.written.find(key); fresh != s.written.end()) {
        manifest.files[key] = fresh->second;
      } else if (const auto old = s.entries.find(key); old != s.entries.end()) {
        kept.emplace_back(key, old->second);
      }
    }
    before = s.entries.size();
    nothing_was_put = s.complete;
  }
  for (const auto& [key, entry] : kept) {
    // Not under the tier's lock: who finds a file holds the entry's first.
    const std::scoped_lock lock(entry->mutex);
    if (entry->found != Entry::Found::kDamaged) manifest.files[key] = entry->file;
  }
  const bool same = nothing_was_put && manifest.files.size() == before;
  if (!same) s.begin_rewrite();
  s.sweep(manifest);
  if (same) return;

  const std::string text = to_text(manifest);
  const Digest digest = digest_of(text);
  publish(s.files, s.path(kManifestFile), text);
  std::error_code ignored;
  if (!std::filesystem::exists(s.path(kUseFile), ignored)) s.files.create(s.path(kUseFile));
  s.files.sync_folder(s.folder);
  publish(s.files, s.path(kMarkerFile), marker_text(digest));
  s.files.sync_folder(s.folder);
  s.adopt(manifest, digest);
}

void Tier::State::adopt(const Manifest& manifest, const Digest& manifest_digest) {
  const std::scoped_lock lock(mutex);
  auto old = std::exchange(entries, {});
  for (const auto& [key, file] : manifest.files) {
    const auto at = old.find(key);
    const bool kept = at != old.end() && !written.contains(key);
    entries.emplace_hint(entries.end(), key, kept ? at->second : std::make_shared<Entry>(file));
    if (kept) old.erase(at);
  }
  for (auto& [key, entry] : old) retired.push_back(std::move(entry));
  std::set<std::string> untouched;
  for (const auto& [key, file] : manifest.files) {
    if (!written.contains(key)) untouched.insert(file_name(key));
  }
  std::erase_if(verified, [&](const auto& item) { return !untouched.contains(item.first); });
  std::erase_if(confirmed, [&](const std::string& name) { return !untouched.contains(name); });
  verified_changed = !verified.empty();  // the note on disk went with the marker
  written.clear();
  damages.clear();
  why.clear();
  digest = manifest_digest;
  complete = true;
  rewriting = false;
  use = UseLock::share(path(kUseFile));
  note_use();
}

}  // namespace sinew

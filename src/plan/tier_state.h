// The inside of a Tier, for the files that make it up.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"
#include "plan/lock.h"
#include "plan/remembered_digests.h"
#include "plan/tier.h"

namespace sinew {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kMarkerFile = ".complete";
inline constexpr std::string_view kVerifiedFile = ".verified";
inline constexpr std::string_view kUseFile = ".use";

/// A marker and the manifest that fits it, as read from a folder; `why` says what is wrong, else it is empty.
struct TierHead {
  Manifest manifest;
  Digest digest;
  std::string why;
  std::string path;  // of what is wrong
};
TierHead read_head(const std::string& folder);

/// One file of the tier, mapped at the first find(). `mutex` guards what follows it.
struct Tier::Entry {
  explicit Entry(const TierFile& expected) : file(expected) {}
  const TierFile file;
  std::mutex mutex;
  enum class Found : std::uint8_t { kNotYet, kWhole, kDamaged } found = Found::kNotYet;
  bool checked = false;
  MappedFile map;
};

struct Tier::State {
  State(const std::string& where, const Identity& who, FileLayer& layer, TierUse noting)
      : folder(where), identity(who), files(layer), is_use(noting == TierUse::kNoted) {}

  std::string path(std::string_view name) const { return folder + "/" + std::string(name); }
  std::string path(const TierKey& key) const { return path(file_name(key)); }
  void open();
  /// The tier's last use is now.
  void note_use() const {
    if (is_use) use.touch();
  }

  /// Maps and checks an entry; the caller holds its mutex. Empty, or what is wrong.
  std::string load(const TierKey& key, Entry& entry, bool check_always);
  /// The digest of an entry's bytes against the manifest's; remembers it when `stamp` is still the file's.
  std::string check(const TierKey& key, const Entry& entry, const MappedFile& map, const FileStamp& stamp,
                    std::int64_t begun);
  bool is_verified(const TierKey& key, const RememberedDigest& whole);
  void remember(const TierKey& key, const RememberedDigest& whole);
  void forget(const TierKey& key);
  /// Writes .verified when there is something new; false when not. It is a note that saves time: a tier
  /// without it is checked again.
  bool store_verified() noexcept;

  bool may_write();
  void begin_rewrite();
  void sweep(const Manifest& manifest);
  /// The tier in memory becomes the one on disk.
  void adopt(const Manifest& manifest, const Digest& manifest_digest);

  const std::string folder;
  const Identity identity;
  FileLayer& files;
  const bool is_use;
  bool read_only = false;

  mutable std::mutex mutex;  // guards all that follows
  bool complete = false;
  bool always = false;
  bool rewriting = false;
  bool said_read_only = false;
  bool verified_changed = false;
  std::string why;
  Digest digest;  // of the manifest
  std::map<TierKey, std::shared_ptr<Entry>> entries;
  std::map<TierKey, TierFile> written;
  std::vector<Damage> damages;
  std::vector<std::shared_ptr<Entry>> retired;  // replaced, but views into them are out
  RememberedDigests verified;                   // by file name
  std::set<std::string> confirmed;              // those of them that this process has looked at
  UseLock use;
};

}  // namespace sinew

// One tier of the cache: tensors of one plan as safetensors files, a manifest, a marker.
//
//   <tensor>.safetensors   one tensor each; its own checksum in the metadata
//   manifest.json          identity, and name, dtype, shape, size and digest of every file; sorted
//   .complete              the manifest's digest: written last, removed first
//   .verified              which files were read against their digests since they were written
//   (remembered_digests.h) .use                   the lock of readers (UseLock); its time is the tier's last
//   use
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/content_digest.h"
#include "plan/file_layer.h"
#include "plan/manifest.h"
#include "tensor/tensor.h"

namespace sinew {

struct Damage {
  TierKey key;  // empty when it is the manifest or the marker
  std::string path;
  std::string reason;  // "checksum is ..., expected ...", "12 bytes, expected 16", "no such file", ...
};

/// Whether opening and closing a tier counts as its use.
enum class TierUse : std::uint8_t { kNoted, kUnnoted };

/// Readers never block and never see a half-written state; one process writes at a time (TierLock), and opens
/// the tier again once it has the lock. Opening reads manifest and marker only; a tier that is missing,
/// unfinished, of another identity, unreadable or damaged in either counts as empty, never as an error.
///
/// All but put() and finish() may be called by several threads at once; put() by several, with none in
/// finish().
class Tier {
 public:
  /// `folder` need not exist. `files` must outlive the tier.
  Tier(const std::string& folder, const Identity& identity, FileLayer& files = system_files(),
       TierUse noting = TierUse::kNoted);
  ~Tier();
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  /// A marker that fits a manifest that fits the identity; which tensors it has is in keys().
  bool complete() const;
  /// Why it is not complete, for a message: "no such folder", "transform is '3', expected '4'", ...; else
  /// empty.
  std::string why_empty() const;
  /// Nothing can be written there: put() and finish() do nothing, and say so once in the log.
  bool read_only() const;
  const std::string& folder() const;
  /// Sorted.
  std::vector<TierKey> keys() const;
  /// What the manifest says of a tensor: dtype, shape, sizes; nothing for an unknown key.
  std::optional<TierFile> info(const TierKey& key) const;
  /// Sum of the tensors' bytes as the manifest has them, without headers.
  std::uint64_t bytes() const;

  /// The tensor's bytes in place: mapped, on a 64-byte boundary, valid as long as the Tier. Nothing when
  /// there is none, its size is not the manifest's or, when it is checked, its checksum: then the reason is
  /// in damages(), and the tensor counts as cold. Checked: the first use after the file was written or
  /// touched in any way (its stamp tells), and always after verify_always().
  std::optional<TensorView> find(const TierKey& key);
  /// Whatever is found from now on is checked, whatever is remembered.
  void verify_always();
  std::vector<Damage> damages() const;
  /// Reads the pages of a tensor now, so that the first use does not wait for them. Does nothing for what
  /// find() does not give.
  void prefault(const TierKey& key);
  /// Lets a found tensor's pages go; they come back when touched.
  void release(const TierKey& key);

  /// Writes a tensor's file: temporary name, fsync, rename. It becomes part of the tier, for find() too, with
  /// finish(). The first put() takes the marker away. Throws Error (kIo); the tier on disk is then cold or as
  /// it was.
  void put(const TierKey& key, const TensorView& tensor);
  /// Makes a tier of what was put and of what was there and is not damaged, as far as `keep` names it:
  /// removes every other file of the folder, writes the manifest, syncs the folder, writes the marker last.
  /// With nothing to change only stray files are removed.
  void finish(std::span<const TierKey> keep);

  /// Reads manifest, marker and every file against their digests; remembers what is whole, for find().
  std::vector<Damage> verify(const ByteProgress& progress = {});

 private:
  struct State;
  struct Entry;
  std::unique_ptr<State> state_;
};

}  // namespace sinew

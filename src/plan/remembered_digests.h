// Digests of files that were read once, kept with what tells a changed file: nobody reads gigabytes twice.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "plan/digest.h"

namespace sinew {

/// What tells a file apart from an earlier one under its name. Times in nanoseconds since 1970.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;
  std::int64_t changed = 0;  // ctime: no program can set it back
  auto operator<=>(const FileStamp&) const = default;
};

struct RememberedDigest {
  FileStamp stamp;
  Digest digest;
  bool operator==(const RememberedDigest&) const = default;
};
/// By absolute path.
using RememberedDigests = std::map<std::string, RememberedDigest>;

/// The stamp of a regular file; nothing when there is none.
std::optional<FileStamp> stamp_of(const std::string& path);
std::optional<FileStamp> stamp_of(int descriptor);

/// The clock of file times, now.
std::int64_t file_time_now();
/// Whether a file with this stamp, read from `begun` on, cannot have changed since without a change of its
/// stamp: a change within one tick of the clock of file times leaves no trace.
bool is_settled(const FileStamp& stamp, std::int64_t begun);

/// JSON, sorted.
std::string to_text(const RememberedDigests& digests);
/// Takes what to_text() wrote and nothing else. Throws Error (kLimit, kFormat) that begins with `name`, the
/// file.
RememberedDigests parse_remembered_digests(std::string_view text, const std::string& name);

/// The same from a file; one that is missing, too large or damaged counts as empty.
RememberedDigests load_remembered_digests(const std::string& path);

}  // namespace sinew

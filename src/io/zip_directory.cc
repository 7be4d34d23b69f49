// The records of a zip archive: end record, central directory, local headers.
#include "io/zip_directory.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "io/bytes.h"

namespace sinew {
namespace {

// APPNOTE 6.3 section 4.3: signatures and fixed sizes of the records.
constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kCentralSignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::size_t kLocalSize = 30;
constexpr std::size_t kCentralSize = 46;
constexpr std::size_t kEndSize = 22;
constexpr std::size_t kEnd64Size = 56;
constexpr std::size_t kLocator64Size = 20;
constexpr std::size_t kMaxComment = 0xffff;
// "The real value is in the zip64 record".
constexpr std::uint16_t kSee64Short = 0xffff;
constexpr std::uint32_t kSee64 = 0xffffffff;
constexpr std::uint16_t kZip64Extra = 1;

constexpr std::uint16_t kFlagEncrypted = 1U << 0;
constexpr std::uint16_t kFlagDescriptor = 1U << 3;
constexpr std::uint16_t kFlagPatch = 1U << 5;
constexpr std::uint16_t kFlagStrongEncryption = 1U << 6;
constexpr std::uint16_t kFlagMasked = 1U << 13;

// A checkpoint has some thousand tensors; a million entries cost about 100 MB of names and records.
constexpr std::uint64_t kMaxEntries = 1'000'000;

using Bytes = std::span<const std::byte>;

/// Where the central directory lies and how many entries it claims.
struct Directory {
  std::uint64_t offset;
  std::uint64_t size;
  std::uint64_t count;
};

[[noreturn]] void refuse_disks(const std::string& file) {
  throw fail(ErrorCode::kUnsupported, "{}: zip archive is spread over several disks", file);
}

/// The end record, which is the last thing in the file but for its comment.
std::size_t find_end(Bytes bytes, const std::string& file) {
  if (bytes.size() < kEndSize) {
    throw fail(ErrorCode::kFormat, "{}: {} bytes are too few for a zip archive", file, bytes.size());
  }
  const std::size_t last = bytes.size() - kEndSize;
  const std::size_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (load<std::uint32_t>(bytes, at) != kEndSignature) continue;
    if (load<std::uint16_t>(bytes, at + 20) == last - at) return at;
  }
  throw fail(ErrorCode::kFormat, "{}: no end-of-central-directory record: not a zip archive, or truncated",
             file);
}

/// The zip64 end record that the locator in front of `end` points to, or nothing when there is no locator.
std::optional<std::size_t> find_end64(Bytes bytes, std::size_t end, const std::string& file) {
  if (end < kLocator64Size) return std::nullopt;
  const std::size_t locator = end - kLocator64Size;
  if (load<std::uint32_t>(bytes, locator) != kLocator64Signature) return std::nullopt;
  if (load<std::uint32_t>(bytes, locator + 4) != 0 || load<std::uint32_t>(bytes, locator + 16) > 1)
    refuse_disks(file);
  const auto at = load<std::uint64_t>(bytes, locator + 8);
  if (at > locator || locator - at < kEnd64Size || load<std::uint32_t>(bytes, at) != kEnd64Signature) {
    throw fail(ErrorCode::kFormat, "{}: zip64 locator points to byte {}, where there is no zip64 end record",
               file, at);
  }
  const auto size = load<std::uint64_t>(bytes, at + 4);  // without the signature and this field
  if (size != locator - at - 12) {
    throw fail(ErrorCode::kFormat, "{}: zip64 end record at byte {} declares {} bytes, expected {}", file, at,
               size, locator - at - 12);
  }
  return at;
}

Directory read_end(Bytes bytes, const std::string& file) {
  const std::size_t end = find_end(bytes, file);
  const auto disk = load<std::uint16_t>(bytes, end + 4);
  const auto directory_disk = load<std::uint16_t>(bytes, end + 6);
  const auto count_here = load<std::uint16_t>(bytes, end + 8);
  const auto count = load<std::uint16_t>(bytes, end + 10);
  const auto size = load<std::uint32_t>(bytes, end + 12);
  const auto offset = load<std::uint32_t>(bytes, end + 16);
  Directory out{offset, size, count};
  std::uint64_t limit = end;

  const auto end64 = find_end64(bytes, end, file);
  if (end64) {
    if (load<std::uint32_t>(bytes, *end64 + 16) != 0 || load<std::uint32_t>(bytes, *end64 + 20) != 0) {
      refuse_disks(file);
    }
    const Directory wide{load<std::uint64_t>(bytes, *end64 + 48), load<std::uint64_t>(bytes, *end64 + 40),
                         load<std::uint64_t>(bytes, *end64 + 32)};
    if (load<std::uint64_t>(bytes, *end64 + 24) != wide.count) refuse_disks(file);
    // Two records that tell different stories would let two readers see two different archives.
    if ((count != kSee64Short && count != wide.count) || (size != kSee64 && size != wide.size) ||
        (offset != kSee64 && offset != wide.offset)) {
      throw fail(ErrorCode::kFormat, "{}: the zip64 end record contradicts the end record", file);
    }
    out = wide;
    limit = *end64;
  } else {
    if (disk != 0 || directory_disk != 0 || count_here != count) refuse_disks(file);
    if (count == kSee64Short || size == kSee64 || offset == kSee64) {
      throw fail(ErrorCode::kFormat, "{}: the end record asks for a zip64 record, and there is none", file);
    }
  }
  if (out.offset > limit || out.size != limit - out.offset) {
    throw fail(
        ErrorCode::kFormat,
        "{}: central directory of {} bytes at byte {} does not end where the end record starts (byte {})",
        file, out.size, out.offset, limit);
  }
  if (out.count > out.size / kCentralSize) {
    throw fail(ErrorCode::kFormat, "{}: central directory of {} bytes cannot hold the {} entries it declares",
               file, out.size, out.count);
  }
  if (out.count > kMaxEntries) {
    throw fail(ErrorCode::kLimit, "{}: zip archive with {} entries, at most {} are read", file, out.count,
               kMaxEntries);
  }
  return out;
}

void check_name(std::string_view name, const std::string& file) {
  const char* problem = nullptr;
  if (name.empty()) problem = "is empty";
  if (name.starts_with('/')) problem = "is an absolute path";
  for (const char c : name) {
    if (c == '\\') problem = "has a backslash";
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) problem = "has a control character";
  }
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    if (name.substr(at, slash - at) == "..") problem = "climbs out with '..'";
    at = slash + 1;
  }
  if (problem != nullptr)
    throw fail(ErrorCode::kFormat, "{}: zip entry name {} {}", file, quoted(name), problem);
}

/// The zip64 extra field (id 1) of a header's extra area, or an empty span.
Bytes zip64_extra(Bytes extra, std::string_view name, const std::string& file) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const auto id = load<std::uint16_t>(extra, at);
    const std::size_t size = load<std::uint16_t>(extra, at + 2);
    if (size > extra.size() - at - 4) break;
    if (id == kZip64Extra) return extra.subspan(at + 4, size);
    at += 4 + size;
  }
  throw fail(ErrorCode::kFormat, "{}: zip entry {} needs a zip64 extra field and has none", file,
             quoted(name));
}

/// Takes the 64-bit values that replace 32-bit fields, in the order APPNOTE 4.5.3 fixes.
class Zip64Fields {
 public:
  Zip64Fields(Bytes extra, std::string_view name, const std::string& file)
      : extra_(extra), name_(name), file_(file) {}
  std::uint64_t take(std::uint32_t field) {
    if (field != kSee64) return field;
    if (at_ == 0) extra_ = zip64_extra(extra_, name_, file_);
    if (extra_.size() - at_ < 8) {
      throw fail(ErrorCode::kFormat, "{}: zip entry {}: zip64 extra field of {} bytes is too short", file_,
                 quoted(name_), extra_.size());
    }
    at_ += 8;
    return load<std::uint64_t>(extra_, at_ - 8);
  }

 private:
  Bytes extra_;
  std::string_view name_;
  const std::string& file_;
  std::size_t at_ = 0;
};

/// The entry at `at` of the central directory; moves `at` to the next.
ZipDirectoryEntry read_central(Bytes directory, std::size_t& at, std::size_t index, const std::string& file) {
  if (directory.size() - at < kCentralSize || load<std::uint32_t>(directory, at) != kCentralSignature) {
    throw fail(ErrorCode::kFormat, "{}: central directory breaks off or is damaged at entry {}", file, index);
  }
  const Bytes head = directory.subspan(at, kCentralSize);
  const std::size_t name_size = load<std::uint16_t>(head, 28);
  const std::size_t extra_size = load<std::uint16_t>(head, 30);
  const std::size_t comment_size = load<std::uint16_t>(head, 32);
  if (name_size + extra_size + comment_size > directory.size() - at - kCentralSize) {
    throw fail(ErrorCode::kFormat, "{}: central directory entry {} runs past the end of the directory", file,
               index);
  }
  ZipDirectoryEntry out;
  ZipArchive::Entry& entry = out.entry;
  entry.name = as_text(directory.subspan(at + kCentralSize, name_size));
  check_name(entry.name, file);
  out.flags = load<std::uint16_t>(head, 8);
  entry.method = load<std::uint16_t>(head, 10);
  entry.crc32 = load<std::uint32_t>(head, 16);
  Zip64Fields wide(directory.subspan(at + kCentralSize + name_size, extra_size), entry.name, file);
  entry.size = wide.take(load<std::uint32_t>(head, 24));
  entry.compressed_size = wide.take(load<std::uint32_t>(head, 20));
  out.local_offset = wide.take(load<std::uint32_t>(head, 42));
  const auto disk = load<std::uint16_t>(head, 34);
  if (disk != 0) refuse_disks(file);
  at += kCentralSize + name_size + extra_size + comment_size;
  return out;
}

void check_method(const ZipDirectoryEntry& central, const std::string& file) {
  const ZipArchive::Entry& entry = central.entry;
  if ((central.flags & (kFlagEncrypted | kFlagStrongEncryption | kFlagMasked)) != 0) {
    throw fail(ErrorCode::kUnsupported, "{}: zip entry {} is encrypted", file, quoted(entry.name));
  }
  if ((central.flags & kFlagPatch) != 0) {
    throw fail(ErrorCode::kUnsupported, "{}: zip entry {} is a patch", file, quoted(entry.name));
  }
  if (entry.method != 0 && entry.method != 8) {
    throw fail(ErrorCode::kUnsupported,
               "{}: zip entry {} uses compression method {}, expected 0 (stored) or 8 (deflate)", file,
               quoted(entry.name), entry.method);
  }
  if (entry.method == 0 && entry.size != entry.compressed_size) {
    throw fail(ErrorCode::kFormat, "{}: stored zip entry {} declares {} bytes in the archive and {} outside",
               file, quoted(entry.name), entry.compressed_size, entry.size);
  }
}

/// Compares a size of the local header with the central one. Under flag bit 3 the real value follows the
/// data, and the local field is zero (or filled in all the same).
void check_local_field(const char* field, std::uint64_t local, const ZipDirectoryEntry& central,
                       std::uint64_t expected, const std::string& file) {
  const bool deferred = (central.flags & kFlagDescriptor) != 0 && local == 0;
  if (local == expected || deferred) return;
  throw fail(ErrorCode::kFormat, "{}: zip entry {}: local header gives {} {}, the central directory {}", file,
             quoted(central.entry.name), field, local, expected);
}

/// Reads the local header, checks it against the central entry, and finds the data.
void read_local(Bytes before_directory, ZipDirectoryEntry& central, const std::string& file) {
  ZipArchive::Entry& entry = central.entry;
  const std::uint64_t at = central.local_offset;
  if (at > before_directory.size() || before_directory.size() - at < kLocalSize ||
      load<std::uint32_t>(before_directory, at) != kLocalSignature) {
    throw fail(ErrorCode::kFormat, "{}: zip entry {}: no local header at byte {}", file, quoted(entry.name),
               at);
  }
  const Bytes head = before_directory.subspan(at, kLocalSize);
  const Bytes rest = before_directory.subspan(at + kLocalSize);
  const std::size_t name_size = load<std::uint16_t>(head, 26);
  const std::size_t extra_size = load<std::uint16_t>(head, 28);
  if (name_size + extra_size > rest.size() || entry.compressed_size > rest.size() - name_size - extra_size) {
    throw fail(ErrorCode::kFormat,
               "{}: zip entry {} of {} bytes at byte {} runs past the data area ({} bytes)", file,
               quoted(entry.name), entry.compressed_size, at, before_directory.size());
  }
  if (as_text(rest.first(name_size)) != entry.name) {
    throw fail(ErrorCode::kFormat, "{}: zip entry {}: local header gives the name {}", file,
               quoted(entry.name), quoted(as_text(rest.first(name_size))));
  }
  const auto flags = load<std::uint16_t>(head, 6);
  if (((flags ^ central.flags) & (kFlagEncrypted | kFlagDescriptor | kFlagPatch)) != 0) {
    throw fail(ErrorCode::kFormat,
               "{}: zip entry {}: local header gives flags {:#x}, the central directory {:#x}", file,
               quoted(entry.name), flags, central.flags);
  }
  const auto method = load<std::uint16_t>(head, 8);
  if (method != entry.method) {
    throw fail(ErrorCode::kFormat, "{}: zip entry {}: local header gives method {}, the central directory {}",
               file, quoted(entry.name), method, entry.method);
  }
  Zip64Fields wide(rest.subspan(name_size, extra_size), entry.name, file);
  const std::uint64_t size = wide.take(load<std::uint32_t>(head, 22));
  const std::uint64_t compressed_size = wide.take(load<std::uint32_t>(head, 18));
  check_local_field("CRC", load<std::uint32_t>(head, 14), central, entry.crc32, file);
  check_local_field("size", size, central, entry.size, file);
  check_local_field("compressed size", compressed_size, central, entry.compressed_size, file);
  entry.data_offset = at + kLocalSize + name_size + extra_size;
}

/// Entries whose bytes are shared are how small archives expand without bound; none that we read has them.
void check_overlap(const std::vector<ZipDirectoryEntry>& entries, const std::string& file) {
  std::vector<std::uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return entries[a].local_offset < entries[b].local_offset;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ZipDirectoryEntry& earlier = entries[order[i - 1]];
    const ZipDirectoryEntry& later = entries[order[i]];
    if (later.local_offset < earlier.entry.data_offset + earlier.entry.compressed_size) {
      throw fail(ErrorCode::kFormat, "{}: zip entries {} and {} overlap", file, quoted(earlier.entry.name),
                 quoted(later.entry.name));
    }
  }
}

}  // namespace

std::vector<ZipDirectoryEntry> read_zip_directory(std::span<const std::byte> bytes, const std::string& file) {
  const Directory where = read_end(bytes, file);
  const Bytes directory = bytes.subspan(where.offset, where.size);
  const Bytes before_directory = bytes.first(where.offset);
  std::vector<ZipDirectoryEntry> found;
  found.reserve(where.count);
  std::size_t at = 0;
  for (std::size_t i = 0; i < where.count; ++i) {
    ZipDirectoryEntry central = read_central(directory, at, i, file);
    check_method(central, file);
    read_local(before_directory, central, file);
    found.push_back(std::move(central));
  }
  if (at != directory.size()) {
    throw fail(ErrorCode::kFormat, "{}: central directory has {} bytes after its {} declared entries", file,
               directory.size() - at, where.count);
  }
  check_overlap(found, file);
  return found;
}

}  // namespace sinew

// Zip archives as torch writes them: a central directory, stored entries, zip64 (APPNOTE 6.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

/// Reads the central directory of an archive that lies in memory. Every offset and size is checked against
/// the file and against the local header (whose sizes may be absent under data-descriptor flag bit 3);
/// entries may not overlap. Names with `..`, a leading `/`, a backslash, a NUL or a control character are
/// refused: an entry is a key, never a path. Duplicate names, encryption, several disks and methods other
/// than stored and deflated are refused as well.
class ZipArchive {
 public:
  struct Entry {
    std::string name;
    std::uint16_t method = 0;  // 0 stored, 8 deflated
    std::uint32_t crc32 = 0;
    std::uint64_t compressed_size = 0;
    std::uint64_t size = 0;
    std::uint64_t data_offset = 0;  // of the first data byte, from the start of the file
  };

  /// `bytes` must outlive the archive; `name` stands for the file in messages. Throws Error (kFormat, kLimit,
  /// kUnsupported) naming the entry and the field.
  ZipArchive(std::span<const std::byte> bytes, std::string name);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  /// The bytes of a stored entry, in place. Throws Error (kUnsupported) for a deflated one.
  std::span<const std::byte> stored(const Entry& entry) const;
  /// The contents of any entry, inflated when needed, at most `limit` bytes (kLimit), its CRC checked
  /// (kFormat).
  std::vector<std::byte> read(const Entry& entry, std::uint64_t limit) const;
  /// The first `count` bytes of any entry (fewer when it is shorter), inflated when needed, with nothing else
  /// checked: enough to look at a header before memory is taken for the rest.
  std::vector<std::byte> read_prefix(const Entry& entry, std::uint64_t count) const;
  /// Throws Error (kFormat) when the CRC of the entry's contents is not the recorded one.
  void check_crc(const Entry& entry) const;

 private:
  void index_names();
  void check_ratio(const Entry& entry) const;
  void compare_crc(const Entry& entry, std::uint32_t found) const;
  void visit_contents(const Entry& entry, const std::function<void(std::span<const std::byte>)>& visit) const;

  std::span<const std::byte> bytes_;
  std::string name_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> by_name_;  // positions in entries_, ordered by name
};

}  // namespace sinew

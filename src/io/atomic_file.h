// Files that appear whole or not at all: temporary name in the same folder, fsync, rename, fsync of the
// folder.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

/// Writes go to `<path>.tmp-<pid>-<n>`; commit() publishes them under `path`, replacing what was there.
/// Destroyed without commit(), it leaves no trace. Throws Error (kIo, with the system's reason) from every
/// call but the destructor.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Overwrites bytes already written, at `offset` from the start.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

/// One call for small files.
void write_file_atomically(const std::string& path, std::string_view contents);

}  // namespace sinew

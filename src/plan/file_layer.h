// What the cache asks of a file system when it writes, one call each, so that tests can make any of them
// fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

/// A file being written.
class OutputFile {
 public:
  virtual ~OutputFile() = default;  // closes; the file stays
  /// All of it, or Error.
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void sync() = 0;
};

/// Every call that changes something throws Error (kIo) with the path and the system's reason.
class FileLayer {
 public:
  virtual ~FileLayer() = default;
  virtual std::unique_ptr<OutputFile> create(const std::string& path) = 0;  // must not exist
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;         // none there: fine
  virtual void remove_folder(const std::string& path) = 0;  // an empty one; none there: fine
  virtual void make_folder(const std::string& path) = 0;    // and its parents
  /// Renames, removals and new names in the folder are on disk afterwards.
  virtual void sync_folder(const std::string& path) = 0;
  /// Free for this user on the file system that holds `path` or its nearest parent.
  virtual std::uint64_t free_bytes(const std::string& path) = 0;
  /// Whether this user may make files in `path` or, when it does not exist, in its nearest parent.
  virtual bool writable(const std::string& path) = 0;
};

/// The operating system's.
FileLayer& system_files();

/// Throws Error (kIo: the folder, needed, free) when the file system cannot take `bytes` more.
void require_space(FileLayer& files, const std::string& folder, std::uint64_t bytes);

/// Writes a whole file: temporary name beside it, fsync, rename. A failure leaves what was there before and,
/// if the system lets it, no temporary. The name is on disk only after sync_folder().
void publish(FileLayer& files, const std::string& path, std::span<const std::span<const std::byte>> parts);
void publish(FileLayer& files, const std::string& path, std::string_view text);

/// True for the name of a temporary of publish() whose process is gone: what is left of a crash.
bool is_dead_temporary(std::string_view file_name);
/// True for the name of any temporary of publish().
bool is_temporary(std::string_view file_name);

/// The contents of a small regular file; nothing when there is none, it cannot be read or has more than
/// `most` bytes.
std::optional<std::string> read_small_file(const std::string& path, std::size_t most);

}  // namespace sinew

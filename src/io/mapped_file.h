// Read-only memory maps of whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sinew {

/// A regular file mapped read-only and private. Movable; the bytes keep their address. An empty file has no
/// bytes. The file must not be shortened while it is mapped (the system answers a touch of a lost page with
/// SIGBUS); files are replaced by rename (AtomicFile), which leaves existing maps alone.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Error: kNotFound (no such file), kFormat (a folder, FIFO or device), kIo (open, stat or mmap
  /// failed).
  static MappedFile open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Tells the kernel that [data, data + size) will not be read soon, so that the pages stop counting as
  /// resident. The contents stay valid; they are read from the file again when touched. Memory outside the
  /// map is left alone, so that callers need not know whether a tensor is mapped or was copied.
  void release(const void* data, std::size_t size) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sinew

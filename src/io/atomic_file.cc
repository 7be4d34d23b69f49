#include "io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace sinew {
namespace {

// Left-overs of a crashed process whose number came round again occupy names; a few tries get past them.
constexpr int kNameTries = 64;

std::string reason(int error_number) { return std::generic_category().message(error_number); }

/// The folder that holds `path`, in a form that open() takes.
std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Error cannot_create(const std::string& path, int error_number) {
  const std::string folder = folder_of(path);
  std::error_code ignored;
  if (error_number == ENOENT && !std::filesystem::exists(folder, ignored)) {
    return {ErrorCode::kIo, fmt::format("cannot write {}: the folder {} does not exist", path, folder),
            "create the folder first"};
  }
  if (error_number == ENOTDIR)
    return fail(ErrorCode::kIo, "cannot write {}: {} is not a folder", path, folder);
  return fail(ErrorCode::kIo, "cannot write {}: {}", path, reason(error_number));
}

/// Opens a new file beside `path` and says its name.
std::pair<int, std::string> create_temporary(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  int error_number = EEXIST;
  for (int i = 0; i < kNameTries && error_number == EEXIST; ++i) {
    std::string name = fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
    int fd = -1;
    do {
      fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      error_number = fd < 0 ? errno : 0;
    } while (error_number == EINTR);
    if (fd >= 0) return {fd, std::move(name)};
  }
  throw cannot_create(path, error_number);
}

/// Writes everything: short writes go on, interrupted ones are repeated. `write_some(data, size, done)` is
/// one call.
template <typename WriteSome>
void write_all(const std::string& path, std::span<const std::byte> bytes, WriteSome&& write_some) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write_some(bytes.data() + done, bytes.size() - done, done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      throw fail(ErrorCode::kIo, "cannot write {}: {} after {} of {} bytes", path,
                 n == 0 ? "nothing was taken" : reason(errno), done, bytes.size());
    }
  }
}

/// The rename is on disk only once the folder is. Some network file systems refuse fsync on folders (EINVAL);
/// there is nothing more to be done there.
void sync_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw fail(ErrorCode::kIo, "{}: cannot open the folder {}: {}", path, folder, reason(errno));
  const int error_number = ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  if (error_number != 0 && error_number != EINVAL) {
    throw fail(ErrorCode::kIo, "{}: cannot sync the folder {}: {}", path, folder, reason(error_number));
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  // A name that ends in a slash (or is empty) would put a hidden temporary inside the folder it names.
  if (path.empty() || path.back() == '/')
    throw fail(ErrorCode::kIo, "cannot write '{}': not a file name", path);
  std::tie(fd_, temporary_) = create_temporary(path);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write_all(path_, bytes,
            [&](const std::byte* data, std::size_t size, std::size_t) { return ::write(fd_, data, size); });
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::write_at(std::size_t offset, std::span<const std::byte> bytes) {
  assert(offset + bytes.size() <= static_cast<std::size_t>(::lseek(fd_, 0, SEEK_CUR)));
  write_all(path_, bytes, [&](const std::byte* data, std::size_t size, std::size_t done) {
    return ::pwrite(fd_, data, size, static_cast<off_t>(offset + done));
  });
}

void AtomicFile::commit() {
  if (fd_ < 0) throw fail(ErrorCode::kIo, "cannot commit {}: it is closed already", path_);
  if (::fsync(fd_) != 0) throw fail(ErrorCode::kIo, "cannot sync {}: {}", path_, reason(errno));
  // close() may be where a network file system reports a full disk; the descriptor is gone either way.
  if (::close(std::exchange(fd_, -1)) != 0)
    throw fail(ErrorCode::kIo, "cannot close {}: {}", path_, reason(errno));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw fail(ErrorCode::kIo, "cannot publish {}: {}", path_, reason(errno));
  }
  temporary_.clear();
  sync_folder(path_);
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace sinew

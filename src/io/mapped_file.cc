#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace sinew {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

/// Closes on every way out; the mapping outlives its descriptor.
struct Descriptor {
  int fd;
  explicit Descriptor(int value) : fd(value) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace

MappedFile MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever, before fstat can refuse it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) {
    const int code = errno;
    if (code == ENOENT || code == ENOTDIR) throw fail(ErrorCode::kNotFound, "{}: no such file", path);
    throw fail(ErrorCode::kIo, "{}: cannot open: {}", path, reason(code));
  }
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) throw fail(ErrorCode::kIo, "{}: cannot stat: {}", path, reason(errno));
  if (S_ISDIR(info.st_mode)) throw fail(ErrorCode::kFormat, "{}: is a folder, expected a file", path);
  if (!S_ISREG(info.st_mode)) {
    throw fail(ErrorCode::kFormat, "{}: is not a regular file (a FIFO, socket or device)", path);
  }

  MappedFile out;
  out.path_ = path;
  out.size_ = static_cast<std::size_t>(info.st_size);
  if (out.size_ == 0) return out;  // mmap refuses empty ranges
  void* data = ::mmap(nullptr, out.size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    const int code = errno;
    out.size_ = 0;
    throw fail(ErrorCode::kIo, "{}: cannot map {} bytes: {}", path, info.st_size, reason(code));
  }
  out.data_ = static_cast<const std::byte*>(data);
  return out;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::release(const void* data, std::size_t size) const {
  const auto* first = static_cast<const std::byte*>(data);
  // std::less: the order of unrelated pointers is only defined through it.
  const std::less<> before;
  if (data_ == nullptr || before(first, data_) || !before(first, data_ + size_)) return;
  const auto begin = static_cast<std::size_t>(first - data_);
  const std::size_t end = begin + std::min(size, size_ - begin);
  // Whole pages only: the page at each edge may hold a neighbour that is still in use.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t from = (begin + page - 1) / page * page;
  const std::size_t to = end == size_ ? end : end / page * page;
  if (from >= to) return;
  ::madvise(const_cast<std::byte*>(data_ + from), to - from,
            MADV_DONTNEED);  // advice: failure changes nothing
}

}  // namespace sinew

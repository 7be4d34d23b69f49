#include "plan/file_layer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/checked.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/text.h"
#include "plan/process.h"

namespace sinew {
namespace {

constexpr std::string_view kTemporary = ".tmp-";

std::string reason(int error_number) { return std::generic_category().message(error_number); }

/// `path` or the nearest folder above it that exists.
std::string nearest_existing(const std::string& path) {
  std::filesystem::path at(path.empty() ? "." : path);
  std::error_code ignored;
  while (!std::filesystem::exists(at, ignored)) {
    const auto parent = at.parent_path();
    if (parent.empty() || parent == at) return parent.empty() ? "." : parent.string();
    at = parent;
  }
  return at.string();
}

class SystemOutput final : public OutputFile {
 public:
  explicit SystemOutput(const std::string& path) : path_(path) {
    do {
      fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) throw fail(ErrorCode::kIo, "cannot write {}: {}", path, reason(errno));
  }
  ~SystemOutput() override { ::close(fd_); }
  SystemOutput(const SystemOutput&) = delete;
  SystemOutput& operator=(const SystemOutput&) = delete;

  void write(std::span<const std::byte> bytes) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (n == 0 || errno != EINTR) {
        throw fail(ErrorCode::kIo, "cannot write {}: {} after {} of {} bytes", path_,
                   n == 0 ? "nothing was taken" : reason(errno), done, bytes.size());
      }
    }
  }

  void sync() override {
    int status = 0;
    do {
      status = ::fsync(fd_);
    } while (status != 0 && errno == EINTR);
    if (status != 0) throw fail(ErrorCode::kIo, "cannot sync {}: {}", path_, reason(errno));
  }

 private:
  std::string path_;
  int fd_ = -1;
};

class SystemFiles final : public FileLayer {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path) override {
    return std::make_unique<SystemOutput>(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      throw fail(ErrorCode::kIo, "cannot publish {}: {}", to, reason(errno));
  }
  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      throw fail(ErrorCode::kIo, "cannot remove {}: {}", path, reason(errno));
  }
  void remove_folder(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0 && errno != ENOENT)
      throw fail(ErrorCode::kIo, "cannot remove the folder {}: {}", path, reason(errno));
  }
  void make_folder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw fail(ErrorCode::kIo, "cannot make the folder {}: {}", path, error.message());
  }
  /// Some network file systems refuse fsync on folders (EINVAL); there is nothing more to be done there.
  void sync_folder(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) throw fail(ErrorCode::kIo, "cannot open the folder {}: {}", path, reason(errno));
    const int error_number = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    if (error_number != 0 && error_number != EINVAL)
      throw fail(ErrorCode::kIo, "cannot sync the folder {}: {}", path, reason(error_number));
  }
  std::uint64_t free_bytes(const std::string& path) override {
    struct statvfs info{};
    const std::string at = nearest_existing(path);
    if (::statvfs(at.c_str(), &info) != 0)
      throw fail(ErrorCode::kIo, "cannot ask {} for its free space: {}", at, reason(errno));
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  }
  bool writable(const std::string& path) override {
    const std::string at = nearest_existing(path);
    std::error_code ignored;
    return std::filesystem::is_directory(at, ignored) && ::access(at.c_str(), W_OK | X_OK) == 0;
  }
};

/// A name no other process and no earlier process with this one's number has used.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const ProcessId self = this_process();
  return fmt::format("{}{}{}-{}-{}", path, kTemporary, self.pid, self.start, counter.fetch_add(1));
}

bool try_remove(FileLayer& files, const std::string& path) noexcept {
  try {
    files.remove(path);
    return true;
  } catch (...) {
    return false;
  }
}

/// The process that a temporary's name carries.
std::optional<ProcessId> owner_of(std::string_view file_name) {
  const std::size_t at = file_name.rfind(kTemporary);
  if (at == std::string_view::npos) return std::nullopt;
  const auto parts = split(file_name.substr(at + kTemporary.size()), '-');
  std::uint64_t numbers[3] = {};
  if (parts.size() != 3) return std::nullopt;
  for (std::size_t i = 0; i < 3; ++i) {
    const char* const end = parts[i].data() + parts[i].size();
    const auto [stop, error] = std::from_chars(parts[i].data(), end, numbers[i]);
    if (error != std::errc() || stop != end) return std::nullopt;
  }
  return ProcessId{static_cast<std::int64_t>(numbers[0]), numbers[1]};
}

}  // namespace

FileLayer& system_files() {
  static SystemFiles files;
  return files;
}

void require_space(FileLayer& files, const std::string& folder, std::uint64_t bytes) {
  const std::uint64_t free = files.free_bytes(folder);
  if (free >= bytes) return;
  throw Error(ErrorCode::kIo,
              fmt::format("{}: {} ({} bytes) are needed, {} ({} bytes) are free", folder,
                          human_bytes(static_cast<double>(bytes)), bytes,
                          human_bytes(static_cast<double>(free)), free),
              "make room (sinew plan prune), or point SINEW_CACHE at another file system");
}

void publish(FileLayer& files, const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const std::string temporary = temporary_name(path);
  try {
    {
      const auto file = files.create(temporary);
      for (const auto part : parts) file->write(part);
      file->sync();
    }
    files.rename(temporary, path);
  } catch (...) {
    // Where that fails too, the sweep of a later process takes it away; the first failure is the one to tell.
    try_remove(files, temporary);
    throw;
  }
}

void publish(FileLayer& files, const std::string& path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  publish(files, path, std::span(&bytes, 1));
}

bool is_temporary(std::string_view file_name) { return owner_of(file_name).has_value(); }

bool is_dead_temporary(std::string_view file_name) {
  const auto owner = owner_of(file_name);
  return owner && !is_alive(*owner);
}

std::optional<std::string> read_small_file(const std::string& path, std::size_t most) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer before fstat can refuse it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat info{};
  std::optional<std::string> out;
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) <= most) {
    out.emplace(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t done = 0;
    while (done < out->size()) {
      const ssize_t n = ::read(fd, out->data() + done, out->size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (done != out->size()) out.reset();
  }
  ::close(fd);
  return out;
}

}  // namespace sinew

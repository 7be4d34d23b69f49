#include "plan/content_digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "plan/remembered_digests.h"

namespace sinew {
namespace {

constexpr std::size_t kMostRemembered = 4096;
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

std::string reason(int error_number) { return std::generic_category().message(error_number); }

/// A checkpoint's file, open.
class Input {
 public:
  explicit Input(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) {
      const bool missing = errno == ENOENT || errno == ENOTDIR;
      if (missing) throw fail(ErrorCode::kNotFound, "{}: no such file", path);
      throw fail(ErrorCode::kIo, "{}: cannot open: {}", path, reason(errno));
    }
  }
  ~Input() { ::close(fd_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  FileStamp stamp() const {
    const auto out = stamp_of(fd_);
    if (!out) throw fail(ErrorCode::kFormat, "{}: is not a regular file", path_);
    return *out;
  }

  Digest digest(const ByteProgress& progress) const {
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);  // advice: failure changes nothing
    const auto buffer = std::make_unique<std::byte[]>(kChunkBytes);
    Digester digester;
    while (true) {
      const ssize_t n = ::read(fd_, buffer.get(), kChunkBytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw fail(ErrorCode::kIo, "{}: cannot read: {}", path_, reason(errno));
      if (n == 0) return digester.digest();
      digester.update(std::span<const std::byte>(buffer.get(), static_cast<std::size_t>(n)));
      if (progress) progress(static_cast<std::uint64_t>(n));
    }
  }

 private:
  std::string path_;
  int fd_ = -1;
};

/// One path for a file, however it was reached.
std::string absolute(const std::string& path) {
  std::error_code error;
  const auto out = std::filesystem::canonical(path, error);
  return error ? path : out.string();
}

/// Adds to what is there by now: another process may have written since it was read.
void store(FileLayer& files, const std::string& cache, const RememberedDigests& fresh) {
  const std::string path = cache + "/digests.json";
  try {
    RememberedDigests all = load_remembered_digests(path);
    for (const auto& [file, digest] : fresh) all.insert_or_assign(file, digest);
    std::erase_if(all, [](const auto& item) {
      std::error_code ignored;
      return !std::filesystem::exists(item.first, ignored);
    });
    // Only a cache of thousands of living checkpoints gets here; what is dropped is computed again.
    while (all.size() > kMostRemembered)
      all.erase(fresh.contains(all.begin()->first) ? std::prev(all.end()) : all.begin());
    files.make_folder(cache);
    publish(files, path, to_text(all));
  } catch (const Error& error) {
    log(LogLevel::kInfo, "digests of checkpoints are not remembered: {}", error.what());
  }
}

}  // namespace

Digest content_digest(std::span<const std::string> paths, const std::string& cache, bool always,
                      const ByteProgress& progress, FileLayer& files) {
  RememberedDigests known;
  if (!cache.empty() && !always) known = load_remembered_digests(cache + "/digests.json");
  RememberedDigests fresh;
  Digester all;
  for (const std::string& path : paths) {
    const Input input(path);
    const FileStamp stamp = input.stamp();
    const std::string key = absolute(path);
    const auto at = known.find(key);
    Digest digest;
    if (at != known.end() && at->second.stamp == stamp) {
      digest = at->second.digest;
      if (progress) progress(stamp.size);
    } else {
      const std::int64_t begun = file_time_now();
      digest = input.digest(progress);
      if (input.stamp() != stamp)
        throw Error(ErrorCode::kIo, fmt::format("{}: changed while it was read", path),
                    "try again when it is whole");
      if (is_settled(stamp, begun)) fresh.emplace(key, RememberedDigest{stamp, digest});
    }
    all.update(fmt::format("{} {}\n", stamp.size, digest.hex()));
  }
  if (!cache.empty() && !fresh.empty()) store(files, cache, fresh);
  return all.digest();
}

std::uint64_t bytes_of_files(std::span<const std::string> paths) {
  std::uint64_t sum = 0;
  for (const std::string& path : paths) {
    std::error_code missing;
    const std::uintmax_t size = std::filesystem::file_size(path, missing);
    if (!missing) sum += size;
  }
  return sum;
}

}  // namespace sinew

#include "plan/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "plan/file_layer.h"

namespace sinew {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr double kRepeat = 10;  // seconds between messages
constexpr std::size_t kMaxOwnerText = 64;

std::string reason(int error_number) { return std::generic_category().message(error_number); }

std::int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

/// Whether `path` still names the open file; whoever removes it holds its lock, so that this stays true under
/// it.
bool names(const std::string& path, int descriptor) {
  struct stat open{};
  struct stat named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

int open_lock(const std::string& path) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) throw fail(ErrorCode::kIo, "cannot make the lock {}: {}", path, reason(errno));
  return fd;
}

// Locks of the open file (F_OFD_*), not flock(): they can be asked about without being taken, so that a list
// of tiers never makes a reader believe that its tier is being removed.

/// Locks the whole file without waiting: 0, EAGAIN when others are in the way, or another reason.
int set_lock(int fd, short kind) {
  struct flock request{};
  request.l_type = kind;
  request.l_whence = SEEK_SET;
  int status = 0;
  do {
    status = ::fcntl(fd, F_OFD_SETLK, &request);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return 0;
  return errno == EACCES ? EAGAIN : errno;
}

/// Whether anybody holds a lock on the file, without taking one.
bool is_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  struct flock question{};
  question.l_type = F_WRLCK;
  question.l_whence = SEEK_SET;
  const bool held = ::fcntl(fd, F_OFD_GETLK, &question) == 0 && question.l_type != F_UNLCK;
  ::close(fd);
  return held;
}

/// The lock's descriptor, or -1 when another holds it.
int try_lock(const std::string& path) {
  while (true) {
    const int fd = open_lock(path);
    const int error_number = set_lock(fd, F_WRLCK);
    if (error_number == 0 && names(path, fd)) return fd;
    ::close(fd);
    if (error_number == EAGAIN) return -1;
    if (error_number != 0) throw fail(ErrorCode::kIo, "cannot lock {}: {}", path, reason(error_number));
    // Removed between open and lock: once more with the file that is there now.
  }
}

/// "pid seconds-since-1970". It serves messages only, so that failures do not matter.
void write_owner(int fd) {
  const std::string text = fmt::format("{} {}\n", ::getpid(), seconds_now());
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t ignored = ::pwrite(fd, text.data(), text.size(), 0);
}

/// Zeros when it cannot be read, or is not written yet.
LockOwner read_owner(const std::string& path) {
  const auto text = read_small_file(path, kMaxOwnerText);
  LockOwner owner;
  if (!text) return owner;
  std::int64_t since = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, owner.pid);
  if (error != std::errc() || stop == end) return {};
  if (std::from_chars(stop + 1, end, since).ec != std::errc()) return {};
  owner.seconds = static_cast<double>(std::max<std::int64_t>(seconds_now() - since, 0));
  return owner;
}

void say(const LockOwner& owner) {
  if (owner.pid == 0) {
    log(LogLevel::kWarning, "waiting for another process, which is building this plan");
  } else {
    log(LogLevel::kWarning, "waiting for pid {}, which has been building this plan for {:.0f} s", owner.pid,
        owner.seconds);
  }
}

}  // namespace

std::string lock_path(const std::string& folder) { return folder + ".lock"; }

TierLock TierLock::acquire(const std::string& path, const Waiting& waiting) {
  using Clock = std::chrono::steady_clock;
  std::optional<LockOwner> told;
  Clock::time_point when;
  while (true) {
    if (auto lock = try_acquire(path)) return *std::move(lock);
    const LockOwner owner = read_owner(path);
    const std::chrono::duration<double> passed = Clock::now() - when;
    if (!told || told->pid != owner.pid || passed.count() >= kRepeat) {
      waiting ? waiting(owner) : say(owner);
      told = owner;
      when = Clock::now();
    }
    std::this_thread::sleep_for(kPoll);
  }
}

std::optional<TierLock> TierLock::try_acquire(const std::string& path) {
  const int fd = try_lock(path);
  if (fd < 0) return std::nullopt;
  write_owner(fd);
  return TierLock(fd);
}

bool TierLock::is_held(const std::string& path) { return is_locked(path); }

TierLock::~TierLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

TierLock::TierLock(TierLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

TierLock& TierLock::operator=(TierLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

UseLock UseLock::lock(const std::string& path, bool alone) {
  UseLock out;
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    out = UseLock();
    out.descriptor_ = ::open(path.c_str(), (alone ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (out.descriptor_ < 0) return out;
    if (const int error_number = set_lock(out.descriptor_, alone ? F_WRLCK : F_RDLCK); error_number != 0) {
      // A file system without locks protects nothing; the tier is readable all the same.
      out.state_ = error_number == EAGAIN || alone ? State::kRefused : State::kNone;
      return out;
    }
    out.state_ = alone ? State::kAlone : State::kShared;
    if (names(path, out.descriptor_)) return out;
    // Its tier was removed, and perhaps made anew, between open and lock.
  }
  out = UseLock();
  return out;
}

UseLock UseLock::share(const std::string& path) { return lock(path, false); }
UseLock UseLock::take_alone(const std::string& path) { return lock(path, true); }

bool UseLock::is_held(const std::string& path) { return is_locked(path); }

UseLock::~UseLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

UseLock::UseLock(UseLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), state_(std::exchange(other.state_, State::kNone)) {}

UseLock& UseLock::operator=(UseLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(state_, other.state_);
  return *this;
}

void UseLock::touch() const {
  if (descriptor_ >= 0) ::futimens(descriptor_, nullptr);
}

}  // namespace sinew

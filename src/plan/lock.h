// Who may write a tier, and who is using it. Both are advisory locks of the system: they end with their
// process, however it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sinew {

/// What the holder of a lock wrote into its file.
struct LockOwner {
  std::int64_t pid = 0;
  double seconds = 0;  // how long it has held the lock
};

/// The right to write one tier, of one TierLock at a time, in this process or another; readers never take it.
/// The file holds the owner's pid and start, for the message of whoever waits.
class TierLock {
 public:
  /// Called while it waits: at once, for every new owner, and every ten seconds.
  using Waiting = std::function<void(const LockOwner& owner)>;

  /// Waits for the lock whose file is `path` (made with its folders); by default the log says for whom at
  /// kWarning. Who waited must open the tier again: it may be complete now. Throws Error (kIo) when the file
  /// cannot be made or locked.
  static TierLock acquire(const std::string& path, const Waiting& waiting = {});
  /// Nothing when another holds it. Throws as acquire() does.
  static std::optional<TierLock> try_acquire(const std::string& path);
  /// Whether somebody holds it, without taking it.
  static bool is_held(const std::string& path);

  ~TierLock();
  TierLock(TierLock&& other) noexcept;
  TierLock& operator=(TierLock&& other) noexcept;
  TierLock(const TierLock&) = delete;
  TierLock& operator=(const TierLock&) = delete;

 private:
  explicit TierLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// The lock of a tier's folder lies beside it, so that it outlives the folder.
std::string lock_path(const std::string& folder);

/// A tier in use, shared among readers; who removes tiers takes it alone. Nothing here ever waits.
class UseLock {
 public:
  enum class State : std::uint8_t { kNone, kShared, kRefused, kAlone };

  UseLock() = default;
  /// kShared; kNone when there is no such file (nothing then keeps the tier from being removed); kRefused
  /// when somebody holds it alone.
  static UseLock share(const std::string& path);
  /// kAlone; kNone when there is no such file; kRefused when the tier is in use.
  static UseLock take_alone(const std::string& path);
  /// Whether somebody holds it, without taking it.
  static bool is_held(const std::string& path);

  ~UseLock();
  UseLock(UseLock&& other) noexcept;
  UseLock& operator=(UseLock&& other) noexcept;
  UseLock(const UseLock&) = delete;
  UseLock& operator=(const UseLock&) = delete;

  State state() const { return state_; }
  /// Sets the file's times to now, the tier's last use; best effort.
  void touch() const;

 private:
  static UseLock lock(const std::string& path, bool alone);
  int descriptor_ = -1;
  State state_ = State::kNone;
};

}  // namespace sinew

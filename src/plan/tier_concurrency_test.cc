// Processes and threads that meet at one tier. Worth a run under -fsanitize=thread.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/lock.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_.data()) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void signal() const {
    if (::write(ends_[1], "x", 1) != 1) ::_exit(101);
  }
  /// False after a minute: the other side died.
  bool wait() const {
    pollfd entry{ends_[0], POLLIN, 0};
    char byte = 0;
    return ::poll(&entry, 1, 60'000) == 1 && ::read(ends_[0], &byte, 1) == 1;
  }

 private:
  std::array<int, 2> ends_{};
};

constexpr int kBuilt = 1;
constexpr int kWarmAfterWaiting = 2;

/// What a process does that needs a plan. `have_lock` is signalled by who builds, `waits` by who waits; who
/// builds does so only when the other waits.
int prepare(const std::string& folder, const Pipe& have_lock, const Pipe& waits) {
  const TestTensors tensors = test_tensors(1);
  bool waited = false;
  if (Tier(folder, kFirst).complete()) return 10;
  const TierLock lock = TierLock::acquire(lock_path(folder), [&](const LockOwner& owner) {
    if (waited || owner.pid == 0) return;
    waited = true;
    waits.signal();
  });
  Tier tier(folder, kFirst);
  if (tier.complete()) return waited && count_found(tier, tensors) == 4 ? kWarmAfterWaiting : 11;
  have_lock.signal();
  if (!waits.wait()) return 12;
  build(tier, tensors);
  return count_found(tier, tensors) == 4 ? kBuilt : 13;
}

TEST(TierConcurrency, OneProcessBuildsTheOtherWaitsAndIsWarm) {
  const TestFolder folder;
  const Pipe have_lock;
  const Pipe waits;
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 100;
      try {
        code = prepare(folder.file("plans/tier"), have_lock, waits);
      } catch (...) {
        code = 102;
      }
      ::_exit(code);
    }
    return child;
  };
  const auto result = [](pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  const pid_t builder = start();
  ASSERT_GT(builder, 0);
  EXPECT_TRUE(have_lock.wait());
  const pid_t waiter = start();
  ASSERT_GT(waiter, 0);
  EXPECT_EQ(result(builder), kBuilt);
  EXPECT_EQ(result(waiter), kWarmAfterWaiting);
}

TEST(TierConcurrency, ThreadsReadOneTier) {
  const TestFolder folder;
  FaultyFiles files;
  const TestTensors tensors = test_tensors(1);
  {
    Tier tier(folder.file("tier"), kFirst, files);
    build(tier, tensors);
  }
  let_files_settle();
  const std::string bad = folder.file("tier") + "/" + file_name(tensors.begin()->first);
  std::string bytes = contents(bad);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  overwrite(bad, bytes);
  Tier tier(folder.file("tier"), kFirst, files);
  std::atomic<std::size_t> found = 0;
  constexpr std::size_t kThreads = 8;
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      if (i == 3) tier.verify_always();
      for (int round = 0; round < 5; ++round) {
        found += count_found(tier, tensors);
        tier.prefault(tier.keys().back());
        if (tier.damages().size() > 1) ADD_FAILURE() << "damage told twice";
      }
      if (i == 5) {
        EXPECT_EQ(tier.verify().size(), 1U);
      }
      EXPECT_TRUE(tier.complete());
      EXPECT_GT(tier.bytes(), 0U);
    });
  }
  threads.clear();
  EXPECT_EQ(found, kThreads * 5 * 3);
  EXPECT_EQ(tier.damages().size(), 1U);
}

TEST(TierConcurrency, ThreadsPutIntoOneTier) {
  const TestFolder folder;
  FaultyFiles files;
  const TestTensors tensors = test_tensors(1);
  Tier tier(folder.file("tier"), kFirst);
  {
    std::vector<std::jthread> threads;
    threads.reserve(tensors.size());
    for (const auto& [key, tensor] : tensors) threads.emplace_back([&] { tier.put(key, tensor); });
  }
  tier.finish(keys_of(tensors));
  EXPECT_EQ(count_found(tier, tensors), 4U);
}

/// Readers come and go while a writer makes the tier anew, again and again.
TEST(TierConcurrency, ReadersNeverSeeAHalfWrittenTier) {
  const TestFolder folder;
  const std::string path = folder.file("tier");
  const TestTensors first = test_tensors(1);
  const TestTensors second = test_tensors(2);
  std::atomic<bool> done = false;
  std::atomic<int> warm = 0;
  std::vector<std::jthread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        for (const auto& [identity, tensors] : {std::pair(&kFirst, &first), std::pair(&kSecond, &second)}) {
          Tier tier(path, *identity);
          count_found(tier, *tensors);
          warm += tier.complete() ? 1 : 0;
        }
      }
    });
  }
  FaultyFiles files;
  for (int round = 0; round < 20; ++round) {
    Tier tier(path, round % 2 == 0 ? kFirst : kSecond, files);
    build(tier, round % 2 == 0 ? first : second);
  }
  while (warm == 0) std::this_thread::yield();  // the last tier stays
  done = true;
}

}  // namespace
}  // namespace sinew

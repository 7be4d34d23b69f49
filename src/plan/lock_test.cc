#include "plan/lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "io/test_folder.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

TEST(TierLock, OneAtATime) {
  const TestFolder folder;
  const std::string path = folder.file("plans/tier.lock");
  EXPECT_FALSE(TierLock::is_held(path));
  {
    const TierLock lock = TierLock::acquire(path);
    EXPECT_TRUE(TierLock::is_held(path));
    EXPECT_FALSE(TierLock::try_acquire(path));
    TierLock moved = TierLock::acquire(folder.file("other.lock"));
    EXPECT_FALSE(TierLock::try_acquire(folder.file("other.lock")));
  }
  EXPECT_FALSE(TierLock::is_held(path));
  EXPECT_TRUE(TierLock::try_acquire(path));
}

TEST(TierLock, WhoWaitsIsToldForWhom) {
  const TestFolder folder;
  const std::string path = folder.file("tier.lock");
  auto held = std::make_optional(TierLock::acquire(path));
  std::vector<LockOwner> told;
  const TierLock lock = TierLock::acquire(path, [&](const LockOwner& owner) {
    told.push_back(owner);
    held.reset();  // the owner is done
  });
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].pid, ::getpid());
  EXPECT_GE(told[0].seconds, 0);
  EXPECT_FALSE(held);
}

TEST(TierLock, DeadOwnersHoldNothing) {
  const TestFolder folder;
  const std::string path = folder.file("tier.lock");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const TierLock lock = TierLock::acquire(path);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::close(ready[1]);
  int told = 0;
  const TierLock lock = TierLock::acquire(path, [&](const LockOwner& owner) {
    EXPECT_EQ(owner.pid, child);
    ++told;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  });
  EXPECT_EQ(told, 1);
}

TEST(TierLock, ALockThatWasRemovedIsMadeAnew) {
  const TestFolder folder;
  const std::string path = folder.file("tier.lock");
  auto held = std::make_optional(TierLock::acquire(path));
  const TierLock lock = TierLock::acquire(path, [&](const LockOwner&) {
    std::filesystem::remove(path);  // as prune() does, holding it
    held.reset();
  });
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(TierLock::try_acquire(path));
}

TEST(TierLock, OwnersThatCannotBeReadAreNobody) {
  const TestFolder folder;
  const std::string path = folder.file("tier.lock");
  for (const std::string& text : {std::string(), std::string("x"), std::string("12"), std::string("12 x"),
                                  std::string(1000, '1'), std::string("99999999999999999999 1")}) {
    auto held = std::make_optional(TierLock::acquire(path));
    overwrite(path, text);
    int told = 0;
    const TierLock lock = TierLock::acquire(path, [&](const LockOwner& owner) {
      EXPECT_EQ(owner.pid, 0) << text.substr(0, 40);
      ++told;
      held.reset();
    });
    EXPECT_EQ(told, 1);
  }
}

TEST(TierLock, SaysWhatItCannotMake) {
  const TestFolder folder;
  overwrite(folder.file("file"), "x");
  EXPECT_THROW(TierLock::acquire(folder.file("file/tier.lock")), Error);
  EXPECT_THROW(TierLock::try_acquire(folder.file("")), Error);
}

TEST(TierLock, ThreadsTakeTurns) {
  const TestFolder folder;
  const std::string path = folder.file("tier.lock");
  std::atomic<int> inside = 0;
  std::atomic<int> turns = 0;
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 3; ++turn) {
        const TierLock lock = TierLock::acquire(path, [](const LockOwner&) {});
        EXPECT_EQ(++inside, 1);
        ++turns;
        --inside;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(turns, 12);
}

TEST(UseLock, ReadersShareAndKeepRemoversAway) {
  const TestFolder folder;
  const std::string path = folder.file(".use");
  EXPECT_EQ(UseLock::share(path).state(), UseLock::State::kNone);
  EXPECT_EQ(UseLock::take_alone(path).state(), UseLock::State::kNone);
  EXPECT_FALSE(UseLock::is_held(path));
  overwrite(path, "");
  {
    const UseLock one = UseLock::share(path);
    const UseLock two = UseLock::share(path);
    EXPECT_EQ(one.state(), UseLock::State::kShared);
    EXPECT_EQ(two.state(), UseLock::State::kShared);
    EXPECT_TRUE(UseLock::is_held(path));
    EXPECT_TRUE(UseLock::is_held(path)) << "asking took it away";
    EXPECT_EQ(UseLock::take_alone(path).state(), UseLock::State::kRefused);
  }
  EXPECT_FALSE(UseLock::is_held(path));
  const UseLock alone = UseLock::take_alone(path);
  EXPECT_EQ(alone.state(), UseLock::State::kAlone);
  EXPECT_EQ(UseLock::share(path).state(), UseLock::State::kRefused);
  EXPECT_TRUE(UseLock::is_held(path));
}

}  // namespace
}  // namespace sinew

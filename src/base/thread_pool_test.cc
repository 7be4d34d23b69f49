#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"

namespace sinew {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(tasks));
      std::atomic<bool> worker_in_range{true};
      pool.parallel_for(tasks, [&](int task, int worker) {
        ++calls[static_cast<std::size_t>(task)];
        if (worker < 0 || worker >= threads) worker_in_range = false;
      });
      for (const auto& count : calls) EXPECT_EQ(count.load(), 1);
      EXPECT_TRUE(worker_in_range);
    }
  }
}

TEST(ThreadPool, PinnedThreadsStayOnCpusOfTheirOwn) {
  const std::vector<int> before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  const auto threads = static_cast<int>(std::min<std::size_t>(before.size(), 4));
  {
    ThreadPool pool(threads, {.pin = true});
    std::vector<std::vector<int>> seen(static_cast<std::size_t>(threads));
    // A worker that took no task tells nothing; what any worker saw is one CPU, and its own.
    for (int round = 0; round < 100; ++round) {
      pool.parallel_for(2 * threads,
                        [&](int, int worker) { seen[static_cast<std::size_t>(worker)] = allowed_cpus(); });
    }
    EXPECT_EQ(seen[0], std::vector<int>{before[0]});
    for (std::size_t worker = 1; worker < seen.size(); ++worker) {
      if (seen[worker].empty()) continue;
      EXPECT_EQ(seen[worker], std::vector<int>{before[worker]});
    }
  }
  EXPECT_EQ(allowed_cpus(), before) << "the caller is set free again";
  EXPECT_THROW(ThreadPool(static_cast<int>(before.size()) + 1, {.pin = true}), Error);
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(ThreadPool, HotWorkersNeverPark) {
  ThreadPool hot(2, {.hot = true});
  ThreadPool other(2);
  std::atomic<int> tasks{0};
  for (int round = 1; round <= 3; ++round) {
    other.parallel_for(100, [&](int, int) { ++tasks; });
    hot.parallel_for(100, [&](int, int) { ++tasks; });
    // The younger pool's worker ends by parking, however long that takes; the older one had as long.
    while (other.parked() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(hot.parked(), 0);
    EXPECT_EQ(tasks, 200 * round);
  }
}

TEST(ThreadPool, APinnedPoolMayEndOnAnotherThread) {
  const std::vector<int> before = allowed_cpus();
  auto pool = std::make_unique<ThreadPool>(1, PoolOptions{.pin = true});
  EXPECT_EQ(allowed_cpus(), std::vector<int>{before.at(0)});
  std::thread([&] { pool.reset(); }).join();
  EXPECT_EQ(allowed_cpus(), before);
}

// Jobs back to back, where a worker may still be on its way out of the last one, and jobs after a pause long
// enough to park.
TEST(ThreadPool, ManyShortJobs) {
  ThreadPool pool(4);
  std::vector<int> sums(64, 0);
  for (int round = 0; round < 20000; ++round) {
    pool.parallel_for(64, [&](int task, int) { sums[static_cast<std::size_t>(task)] += task; });
    if (round % 4000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (int task = 0; task < 64; ++task) EXPECT_EQ(sums[static_cast<std::size_t>(task)], 20000 * task);
}

TEST(ThreadPool, RefusesSenselessSizes) {
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(1025), Error);
}

}  // namespace
}  // namespace sinew

// The pool that runs kernels: spin for a short while, then park; tasks handed out by a counter.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace sinew {

struct PoolOptions {
  /// Each thread keeps to a CPU of its own as long as the pool lives, the one that makes the pool included,
  /// which is the one that should use it.
  bool pin = false;
  /// Workers never park: the lowest latency after a pause, at the price of their CPUs.
  bool hot = false;
};

/// A fixed team of `size()` threads, the caller included. One parallel_for at a time, from one thread at a
/// time.
///
/// Fork and join cost about 0.2 us while the workers spin; a worker that found no work for kSpins rounds
/// parks and costs a futex wake. The join waits only for workers that took part: a worker that the system
/// keeps off its core does not hold up a job that others have finished.
class ThreadPool {
 public:
  /// `threads` >= 1 counts the caller. Throws Error (kUsage): outside 1..1024; more threads to pin than CPUs.
  /// kUnsupported: the system refuses to pin one.
  explicit ThreadPool(int threads, const PoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Workers that have found no work for a while and sleep. Never any of a hot pool.
  int parked() const { return parked_.load(); }
  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls fn(task, worker) once for each task in [0, tasks), worker in [0, size()). `fn` must not throw. No
  /// allocation, no lock; which worker runs a task varies, so a task's result must depend on the task alone.
  template <typename Fn>
  void parallel_for(int tasks, Fn&& fn) {
    using Body = std::remove_reference_t<Fn>;
    run(tasks, const_cast<void*>(static_cast<const void*>(&fn)),
        [](void* body, int task, int worker) { (*static_cast<Body*>(body))(task, worker); });
  }

 private:
  using Call = void (*)(void*, int, int);
  void run(int tasks, void* body, Call call);
  void work(int worker);
  void end() noexcept;
  void take_tasks(int worker);

  bool hot_;
  std::vector<int> unpinned_;  // CPUs of the thread that made the pool, before it was pinned
  int maker_ = 0;              // that thread

  // The job, published by open_ = true (release) and read by workers that have entered.
  void* body_ = nullptr;
  Call call_ = nullptr;
  int tasks_ = 0;
  std::atomic<int> next_{0};
  std::atomic<bool> open_{false};
  std::atomic<int> inside_{0};           // workers between entering and leaving the current job
  std::atomic<std::uint32_t> epoch_{0};  // bumped for each job; parked workers wait on it
  std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

/// The CPUs this process may use (affinity mask of the calling thread), ascending; empty when the system does
/// not say.
std::vector<int> allowed_cpus();
/// Number of CPUs this process may use (affinity mask), at least 1.
int available_cpus();

}  // namespace sinew

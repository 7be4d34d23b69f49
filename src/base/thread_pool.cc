#include "base/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/error.h"

namespace sinew {
namespace {

// About 100 us of `pause` on Zen 4 (~20 ns each): longer than the serial gaps inside one inference, far
// shorter than the time between two observations of a 30 Hz camera.
constexpr int kSpins = 5000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// The thread (0: the calling one) runs on these CPUs only. False: the system refuses.
bool keep_on(int thread, std::span<const int> cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  return sched_setaffinity(thread, sizeof(set), &set) == 0;
}

void pin(int cpu) {
  if (!keep_on(0, {&cpu, 1}))
    throw fail(ErrorCode::kUnsupported, "pinning a thread to CPU {}: {}", cpu, std::strerror(errno));
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  cpus.reserve(static_cast<std::size_t>(CPU_COUNT(&set)));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

int available_cpus() { return std::max(1, static_cast<int>(allowed_cpus().size())); }

ThreadPool::ThreadPool(int threads, const PoolOptions& options) : hot_(options.hot) {
  if (threads < 1 || threads > 1024) {
    throw fail(ErrorCode::kUsage, "{} threads asked for; 1 to 1024 are possible", threads);
  }
  if (options.pin) {
    unpinned_ = allowed_cpus();
    maker_ = ::gettid();
    if (static_cast<std::size_t>(threads) > unpinned_.size()) {
      throw fail(ErrorCode::kUsage, "{} threads cannot each have a CPU of their own: there are {}", threads,
                 unpinned_.size());
    }
  }
  workers_.reserve(static_cast<std::size_t>(threads) - 1);
  try {
    for (int worker = threads - 1; worker >= 0; --worker) {
      if (options.pin) pin(unpinned_[static_cast<std::size_t>(worker)]);  // a new thread inherits it
      if (worker > 0) workers_.emplace_back([this, worker] { work(worker); });
    }
  } catch (...) {
    end();
    throw;
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() noexcept {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  if (!unpinned_.empty()) keep_on(maker_, unpinned_);  // refused only when that thread or its CPUs are gone
}

void ThreadPool::run(int tasks, void* body, Call call) {
  if (tasks <= 0) return;
  if (tasks == 1 || workers_.empty()) {
    for (int task = 0; task < tasks; ++task) call(body, task, 0);
    return;
  }
  body_ = body;
  call_ = call;
  tasks_ = tasks;
  next_.store(0, std::memory_order_relaxed);
  open_.store(true);  // seq_cst, as are inside_ and parked_: each side must see the other's store (Dekker)
  epoch_.fetch_add(1);
  if (parked_.load() > 0) epoch_.notify_all();
  take_tasks(0);
  // Every task is taken now. A worker that enters later finds the job closed; those inside finish their last
  // task.
  open_.store(false);
  while (inside_.load() != 0) relax();
}

void ThreadPool::take_tasks(int worker) {
  for (;;) {
    const int task = next_.fetch_add(1, std::memory_order_acq_rel);
    if (task >= tasks_) return;
    call_(body_, task, worker);
  }
}

void ThreadPool::work(int worker) {
  std::uint32_t seen = epoch_.load();
  while (!stop_.load(std::memory_order_relaxed)) {
    int spins = 0;
    while (epoch_.load(std::memory_order_acquire) == seen && (hot_ || ++spins < kSpins)) relax();
    if (spins >= kSpins) {
      parked_.fetch_add(1);
      epoch_.wait(seen);
      parked_.fetch_sub(1);
    }
    seen = epoch_.load();
    inside_.fetch_add(1);
    if (open_.load()) take_tasks(worker);
    inside_.fetch_sub(1);
  }
}

}  // namespace sinew

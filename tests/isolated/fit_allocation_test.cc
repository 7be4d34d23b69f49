// fit_hand() allocates nothing: every allocation function of this process counts its calls while armed. A
// program of its own, because it replaces malloc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>

#include "hand/fit.h"
#include "hand/fit_test_support.h"

// glibc's own names for what is replaced below.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

std::atomic<bool> armed{false};
std::atomic<int> calls{0};

void count() {
  if (armed.load(std::memory_order_relaxed)) calls.fetch_add(1);
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t size) {
  count();
  return __libc_realloc(p, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 1 : 0;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
}

namespace sinew {
namespace {

TEST(FitAllocation, NoneColdAndNoneWarm) {
  TestDice dice(1);
  FitTarget target =
      target_of(FitKinematics(builtin_skeleton()).points(random_state(dice, 0.5)), {600, 600, 320, 240});
  add_noise(target, dice);
  armed = true;
  auto* const seen = new int(1);  // the counter counts
  const int of_new = calls.exchange(0);
  const HandFit cold = fit_hand(builtin_skeleton(), target);
  const HandFit warm = fit_hand(builtin_skeleton(), target, &cold.pose);
  armed = false;
  delete seen;
  EXPECT_GT(of_new, 0);
  EXPECT_EQ(calls, 0);
  EXPECT_GT(cold.iterations, 0);
  EXPECT_LE(warm.cost, cold.cost);
}

}  // namespace
}  // namespace sinew

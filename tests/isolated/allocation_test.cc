// Session::run() allocates nothing: every allocation function of this process counts its calls while armed.
// Where there are no own products, oneDNN 2.6's execute builds a small argument map on each call; its calls
// are told apart by the library that the return address lies in. A program of its own, because it replaces
// malloc.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "../model_test_support.h"
#include "backend/cpu/gemm_native.h"

// glibc's own names for what is replaced below.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

std::atomic<bool> armed{false};
std::atomic<int> ours{0};
std::atomic<int> library{0};

void count(void* caller) {
  if (!armed.load(std::memory_order_relaxed)) return;
  Dl_info info{};
  const bool known = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const bool foreign = known && (std::strstr(info.dli_fname, "libdnnl") != nullptr ||
                                 std::strstr(info.dli_fname, "libgomp") != nullptr);
  (foreign ? library : ours).fetch_add(1);
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_realloc(p, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  count(__builtin_return_address(0));
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* p) { __libc_free(p); }
}

// Replaced too, so that their callers are seen and not libstdc++, which would call malloc for them.
void* operator new(std::size_t size) {
  count(__builtin_return_address(0));
  void* p = __libc_malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void* operator new[](std::size_t size) {
  count(__builtin_return_address(0));
  void* p = __libc_malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void operator delete(void* p) noexcept { __libc_free(p); }
void operator delete(void* p, std::size_t) noexcept { __libc_free(p); }
void operator delete[](void* p) noexcept { __libc_free(p); }
void operator delete[](void* p, std::size_t) noexcept { __libc_free(p); }

namespace sinew {
namespace {

TEST(Allocation, TheCounterCounts) {
  ours = 0;
  armed = true;
  ::operator delete(::operator new(16));
  std::free(std::malloc(16));
  armed = false;
  EXPECT_EQ(ours.load(), 2);
}

TEST(Allocation, RunAllocatesNothing) {
  const hamer::Config config = test::small_config();
  Sources sources;
  sources.add_all(std::make_shared<test::MemoryModel>(config, hamer::Generator::kNormal, 1));
  std::vector<Policy> policies = {Policy::kF32};
  if (cpu_has_products(DType::kBF16)) policies.push_back(Policy::kBF16);
  if (cpu_has_products(DType::kBF16, WeightStorage::kBfp8)) policies.push_back(Policy::kBfp8);
  for (const Policy policy : policies) {
    const cpu::GemmShape shape{.operand = product_dtype(policy), .storage = product_storage(policy)};
    for (const hamer::Form form : {hamer::Form::kFused, hamer::Form::kPlain}) {
      test::Compiled compiled = test::compile(config, sources, {.policy = policy, .form = form}, "cpu");
      compiled.session->run();  // first touches: thread-local buffers of the C library and of oneDNN
      ours = library = 0;
      armed = true;
      compiled.session->run();
      armed = false;
      EXPECT_EQ(ours.load(), 0) << to_string(policy);
      if (cpu::native_serves(shape)) {
        EXPECT_EQ(library.load(), 0) << to_string(policy);
      }
      RecordProperty("onednn_allocations", library.load());
    }
  }
}

}  // namespace
}  // namespace sinew

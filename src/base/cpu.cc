#include "base/cpu.h"

#include <sys/resource.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <fstream>

namespace sinew {

namespace {

constexpr std::array kNames = {"baseline", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "amx"};

#if defined(__x86_64__)
/// Tiles of bf16 and of int8: leaf 7, subleaf 0, bits 22 and 25 of edx.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1U << 22 | 1U << 25;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTiles) == kTiles;
}
#endif

Isa find_best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!avx2) return Isa::kBaseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::kAvx512;
  if (!__builtin_cpu_supports("avx512bf16")) return Isa::kAvx512Vnni;
  return has_amx() ? Isa::kAmx : Isa::kAvx512Bf16;
#else
  return Isa::kBaseline;
#endif
}

}  // namespace

Isa best_isa() {
  // Once: a virtual machine leaves its guest for every cpuid, and callers ask for each picture and tensor.
  static const Isa best = find_best_isa();
  return best;
}

bool bf16_doubles_products(Isa limit) {
#if defined(__x86_64__)
  const Isa isa = std::min(limit, best_isa());
  return isa == Isa::kAmx || (isa == Isa::kAvx512Bf16 && !__builtin_cpu_is("intel"));
#else
  (void)limit;
  return false;
#endif
}

std::string_view to_string(Isa isa) { return kNames.at(static_cast<std::size_t>(isa)); }

std::optional<Isa> parse_isa(std::string_view word) {
  const auto* const found = std::ranges::find(kNames, word);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Isa>(found - kNames.begin());
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

}  // namespace sinew

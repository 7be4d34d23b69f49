// What the compiler made of the inner loops: g++ 12 has kept sums in memory where a kernel gave it a reason
// to, at half the speed and with the same results.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::cpu {
namespace {

struct Instruction {
  std::uint64_t address;
  std::string text;  // "vmovaps %zmm0,0x40(%rsp)"
};
/// By the name of the function, of those named product<...>.
using Functions = std::map<std::string, std::vector<Instruction>>;

/// The products in this program, or nothing where there is no objdump.
Functions disassembled_products() {
  struct Close {
    void operator()(std::FILE* f) const { ::pclose(f); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(
      ::popen("objdump -d -C --no-show-raw-insn /proc/$PPID/exe 2>/dev/null", "r"));
  Functions functions;
  std::vector<Instruction>* current = nullptr;
  std::array<char, 4096> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    const std::string_view text(line.data());
    if (text.ends_with(">:\n")) {
      const bool product = text.find("::product<") != std::string_view::npos;
      current = product ? &functions[std::string(text.substr(text.find('<')))] : nullptr;
    } else if (current != nullptr && text.find(":\t") != std::string_view::npos) {
      const auto colon = text.find(":\t");
      current->push_back({std::stoull(std::string(text.substr(0, colon)), nullptr, 16),
                          std::string(text.substr(colon + 2, text.size() - colon - 3))});
    }
  }
  return functions;
}

bool multiplies(const Instruction& i) {
  return i.text.starts_with("vfmadd") || i.text.starts_with("vdpbf16ps");
}
/// A vector register to memory.
bool stores(const Instruction& i) {
  return i.text.starts_with("vmov") && i.text.find("mm") < i.text.find('(') && i.text.ends_with(")");
}

/// Bodies of loops: from the target of a jump backwards to the jump.
std::vector<std::vector<Instruction>> loops_of(const std::vector<Instruction>& function) {
  std::vector<std::vector<Instruction>> loops;
  for (const Instruction& jump : function) {
    if (jump.text[0] != 'j') continue;
    const std::uint64_t target = std::stoull(jump.text.substr(jump.text.find(' ')), nullptr, 16);
    if (target > jump.address || target < function.front().address) continue;
    std::vector<Instruction> body;
    std::ranges::copy_if(function, std::back_inserter(body), [&](const Instruction& i) {
      return i.address >= target && i.address <= jump.address;
    });
    loops.push_back(std::move(body));
  }
  return loops;
}

TEST(GemmKernels, SumsStayInRegisters) {
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
  GTEST_SKIP() << "not the code that is shipped";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "not the code that is shipped";
#endif
#endif
  const Functions functions = disassembled_products();
  if (functions.empty()) GTEST_SKIP() << "no objdump here, or no names in this program";
  // Tiles of 1..12, 1..6 and 1..3 rows in each of three tables with 16 lanes (pairs are the
  // third), 1..6, 1..3 and 1 with 8.
  EXPECT_EQ(functions.size(), 3U * (12 + 6 + 3) + 6 + 3 + 1);
  for (const auto& [name, function] : functions) {
    std::int64_t multiplying = 0;
    for (const auto& loop : loops_of(function)) {
      if (std::ranges::none_of(loop, multiplies)) continue;
      ++multiplying;
      for (const Instruction& i : loop) EXPECT_FALSE(stores(i)) << name << ": " << i.text;
    }
    EXPECT_GE(multiplying, 1) << name;
  }
}

}  // namespace
}  // namespace sinew::cpu

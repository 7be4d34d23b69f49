#include "plan/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace sinew {
namespace {

/// Field 22 of /proc/<pid>/stat; nothing when there is no such process. The command in field 2 may hold
/// spaces and brackets, so that counting begins after the last bracket.
std::optional<std::uint64_t> start_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos || bracket + 2 > text.size()) return std::nullopt;
  const auto fields = split(std::string_view(text).substr(bracket + 2), ' ');  // from field 3 on
  constexpr std::size_t kStart = 22 - 3;
  if (fields.size() <= kStart) return std::nullopt;
  std::uint64_t start = 0;
  const std::string& field = fields[kStart];
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), start);
  if (error != std::errc()) return std::nullopt;
  return start;
}

}  // namespace

ProcessId this_process() {
  const std::int64_t pid = ::getpid();  // not kept: a forked child has another
  return {pid, start_of(pid).value_or(0)};
}

bool is_alive(const ProcessId& process) {
  if (process.pid <= 0) return false;  // kill() takes those for groups of processes
  if (const auto start = start_of(process.pid)) return *start == process.start;
  // No /proc here, or one that hides the processes of others.
  return ::kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
}

}  // namespace sinew

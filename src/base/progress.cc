#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

namespace sinew {

std::string human_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes)
                   : fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 2 : 1, kUnits[unit]);
}

Progress::Progress(std::string label, std::uint64_t total, ProgressUnit unit)
    : label_(std::move(label)), total_(total), unit_(unit), terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { hide(); }

void Progress::hide() {
  if (terminal_ && done_ > 0) std::fputs("\r\x1b[K", stderr);
}

std::string Progress::line(const std::string& label, std::uint64_t done, std::uint64_t total,
                           ProgressUnit unit, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const double share = total > 0 ? 100.0 * static_cast<double>(done) / static_cast<double>(total) : 100;
  const std::string counts = unit == ProgressUnit::kBytes
                                 ? fmt::format("{} / {}", human_bytes(static_cast<double>(done)),
                                               human_bytes(static_cast<double>(total)))
                                 : fmt::format("{} / {}", done, total);
  const std::string speed =
      unit == ProgressUnit::kBytes ? fmt::format("{}/s", human_bytes(rate)) : fmt::format("{:.2f}/s", rate);
  const std::string left =
      rate > 0 && total >= done ? fmt::format("{:.0f} s left", static_cast<double>(total - done) / rate) : "";
  return fmt::format("{}  {}  {:.0f} %  {}  {}", label, counts, share, speed, left);
}

void Progress::advance(std::uint64_t amount) {
  done_ += amount;
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && done_ < total_) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  fmt::print(stderr, "\r\x1b[K{}", line(label_, done_, total_, unit_, seconds));
  std::fflush(stderr);
}

}  // namespace sinew

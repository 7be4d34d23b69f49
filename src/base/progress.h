// A progress line on stderr: count, rate, time left. Silent when stderr is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sinew {

enum class ProgressUnit { kBytes, kItems };

class Progress {
 public:
  Progress(std::string label, std::uint64_t total, ProgressUnit unit);
  /// Erases the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Adds to the count; redraws at most ten times a second.
  void advance(std::uint64_t amount);

  /// Erases the line until the next advance(), so that something else may be printed.
  void hide();

  /// "writing  1.2 / 2.7 GB  45 %  310 MB/s  5 s left"; public for its test.
  static std::string line(const std::string& label, std::uint64_t done, std::uint64_t total,
                          ProgressUnit unit, double seconds);

 private:
  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  ProgressUnit unit_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_{};
};

/// "1.34 GB", "512 B": decimal units.
std::string human_bytes(double bytes);

}  // namespace sinew

// Time spent, for reports.
#pragma once

#include <chrono>

namespace sinew {

class Stopwatch {
 public:
  /// Milliseconds since construction or the last lap().
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }
  /// elapsed_ms(), and starts again.
  double lap_ms() {
    const double ms = elapsed_ms();
    start_ = std::chrono::steady_clock::now();
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sinew

// Logging to stderr. The one file that knows spdlog is log.cc.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace sinew {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Messages below this level are dropped; kWarning at start.
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
void log_text(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_text(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sinew

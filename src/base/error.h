// The one exception type of sinew: thrown while loading, planning, compiling and parsing, caught at the edges
// (cli, C ABI). `Session::run()` never throws.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace sinew {

enum class ErrorCode {
  kUsage,        // the caller asked for something that makes no sense (exit status 2)
  kNotFound,     // a file or a name does not exist
  kIo,           // the operating system refused a read or a write
  kFormat,       // bytes from outside break the rules of their format
  kMismatch,     // well-formed, but not what this model or program needs (shape, dtype, missing tensor)
  kUnsupported,  // a request that cannot be honoured here; never replaced silently by something else
  kLimit,        // a bound on size, count or depth was exceeded
};

/// The stable lower-case word for a code, as used in `--json` output.
std::string_view to_string(ErrorCode code);

/// `what()` is one line that names the file, tensor or field, the value found and what was expected. `hint()`
/// says what the user can do, or is empty.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}
  ErrorCode code() const { return code_; }
  const std::string& hint() const { return hint_; }
  /// The same error with `prefix` ("file.ckpt: ") put before its message.
  Error prefixed(std::string_view prefix) const {
    return {code_, fmt::format("{}{}", prefix, what()), hint_};
  }

 private:
  ErrorCode code_;
  std::string hint_;
};

/// `throw fail(ErrorCode::kFormat, "{}: header of {} bytes", path, n);`
template <typename... Args>
Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace sinew

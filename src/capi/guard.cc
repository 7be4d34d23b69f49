#include "capi/guard.h"

#include <string>

namespace sinew::capi {
namespace {

struct LastError {
  std::string kept;
  const char* text = "";
};
thread_local LastError last_error;

}  // namespace

sinew_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kUsage:
      return SINEW_ERROR_USAGE;
    case ErrorCode::kNotFound:
      return SINEW_ERROR_NOT_FOUND;
    case ErrorCode::kIo:
      return SINEW_ERROR_IO;
    case ErrorCode::kFormat:
      return SINEW_ERROR_FORMAT;
    case ErrorCode::kMismatch:
      return SINEW_ERROR_MISMATCH;
    case ErrorCode::kUnsupported:
      return SINEW_ERROR_UNSUPPORTED;
    case ErrorCode::kLimit:
      return SINEW_ERROR_LIMIT;
  }
  return SINEW_ERROR_INTERNAL;
}

sinew_status remember(sinew_status status, std::string_view message, std::string_view hint) noexcept {
  try {
    last_error.kept.assign(message);
    if (!hint.empty()) last_error.kept.append(" (").append(hint).append(")");
    last_error.text = last_error.kept.c_str();
  } catch (...) {  // no memory for the message itself
    last_error.text = "not enough memory";
  }
  return status;
}

const char* remembered() noexcept { return last_error.text; }

}  // namespace sinew::capi

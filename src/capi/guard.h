// The edge of the C ABI: what is thrown inside becomes a status and a line of text; nothing leaves as an
// exception.
#pragma once

#include <exception>
#include <new>
#include <string_view>

#include "base/error.h"
#include "sinew/sinew.h"

namespace sinew::capi {

sinew_status status_of(ErrorCode code) noexcept;

/// Keeps "message (hint)" for sinew_last_error() of this thread and returns `status`.
sinew_status remember(sinew_status status, std::string_view message, std::string_view hint = {}) noexcept;

/// The text that remember() kept; "" after a call that succeeded.
const char* remembered() noexcept;

/// Runs `fn()`: SINEW_OK, or the status of what it threw.
template <typename Fn>
sinew_status guarded(Fn&& fn) noexcept {
  try {
    fn();
    return remember(SINEW_OK, {});
  } catch (const Error& error) {
    return remember(status_of(error.code()), error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    return remember(SINEW_ERROR_NO_MEMORY, "not enough memory");
  } catch (const std::exception& error) {
    return remember(SINEW_ERROR_INTERNAL, error.what());
  } catch (...) {
    return remember(SINEW_ERROR_INTERNAL, "unknown exception");
  }
}

}  // namespace sinew::capi

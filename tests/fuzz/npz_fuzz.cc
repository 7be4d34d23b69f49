// The npz reader, down to the elements of its arrays. Any sinew::Error is fine.
#include <algorithm>

#include "base/error.h"
#include "io/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto npz = sinew::parse_npz(std::as_bytes(std::span(data, size)), "fuzz", 1 << 20);
    for (const auto& [name, view] : npz->tensors()) {
      const std::int64_t count = view.shape.count();
      for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 64); ++i) {
        sinew::element(view, i);
        sinew::element(view, count - 1 - i);
      }
      npz->release(view);
    }
    npz->verify();
  } catch (const sinew::Error&) {
    return 0;
  }
  return 0;
}

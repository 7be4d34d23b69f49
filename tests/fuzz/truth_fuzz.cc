// The reader of known joints. Any sinew::Error is fine; what is accepted has an error that is a number.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "hand/truth.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const sinew::HandTruth truth = sinew::parse_truth({reinterpret_cast<const char*>(data), size}, "fuzz");
    const sinew::JointError error = sinew::joint_error(sinew::HandResult{}, truth);
    if (!std::isfinite(error.percent) || !std::isfinite(error.aligned_mm)) std::abort();
  } catch (const sinew::Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}

// The boxes.json reader. Any sinew::Error is fine; what is accepted has finite numbers only.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "hand/boxes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [file, boxes] : sinew::parse_boxes(text, "fuzz")) {
      for (const sinew::HandBox& box : boxes.hands) {
        for (const double v : {box.x1, box.y1, box.x2, box.y2}) {
          if (!std::isfinite(v)) std::abort();
        }
      }
    }
  } catch (const sinew::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  try {
    sinew::parse_box(text);
  } catch (const sinew::Error& error) {
    if (error.code() != sinew::ErrorCode::kUsage) std::abort();
  }
  return 0;
}

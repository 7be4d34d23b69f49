// The model_config.yaml reader. Any sinew::Error is fine; what is accepted leaves a configuration that can be
// used.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "models/hamer/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  sinew::hamer::Config config;
  try {
    sinew::hamer::apply_yaml_text(text, "fuzz", config);
    const bool usable = std::isfinite(config.focal_length) && config.focal_length > 0 &&
                        config.head_heads > 0 && config.head_inner % config.head_heads == 0 &&
                        config.ief_iters >= 1;
    if (!usable) std::abort();
    for (const double v : config.image_std) {
      if (!std::isfinite(v) || v <= 0) std::abort();
    }
  } catch (const sinew::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}

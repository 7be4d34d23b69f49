// JPEG files: any bytes give a picture whose size fits its sides, or sinew::Error.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "io/image_codec.h"
#include "io/image_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sinew::DecodeOptions options;
  options.limits = {.max_side = 8192, .max_pixels = 1 << 22, .max_file_bytes = 1 << 20};
  try {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const sinew::Image image = sinew::image_formats::decode_jpeg(bytes, "fuzz", options);
    const bool sound =
        image.width >= 1 && image.height >= 1 &&
        image.rgb.size() == std::size_t{3} * static_cast<std::size_t>(image.width) * image.height;
    if (!sound) std::abort();
  } catch (const sinew::Error&) {  // NOLINT(bugprone-empty-catch): the other right answer
  }
  return 0;
}

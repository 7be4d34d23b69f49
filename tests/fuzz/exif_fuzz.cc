// TIFF blocks: any bytes give an orientation from 1 to 8.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "io/exif.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int orientation = sinew::exif_orientation({reinterpret_cast<const std::byte*>(data), size});
  if (orientation < 1 || orientation > 8) std::abort();
  return 0;
}

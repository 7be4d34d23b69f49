// JPEG and PNG, through libjpeg-turbo and libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/image.h"

namespace sinew {

/// Bounds that are checked on the header, before any pixel memory is allocated.
struct ImageLimits {
  int max_side = 16384;                               // pixels
  std::int64_t max_pixels = std::int64_t{1} << 28;    // 268 M: 768 MB of RGB
  std::size_t max_file_bytes = std::size_t{1} << 29;  // 512 MB
};

struct DecodeOptions {
  ImageLimits limits;
  bool apply_exif_orientation =
      true;  // as OpenCV's default loader, which the original demo uses; its evaluation does not
};

/// Decodes JPEG or PNG, told apart by their first bytes, to 8-bit RGB as OpenCV's colour loader does: grey is
/// replicated, palettes are expanded, alpha is dropped, 16-bit samples keep their high byte, CMYK and YCCK
/// (Adobe, inverted) become RGB. Gamma and profiles are ignored. Only whole pictures come out: a JPEG that
/// ends early, lacks a component or makes libjpeg warn, a PNG with a wrong checksum anywhere, are refused. (A
/// JPEG has no checksum: a flipped bit may pass as another picture.) Throws Error: kFormat (neither format,
/// truncated, damaged), kUnsupported (a JPEG of 12 bits, lossless, of two components), kLimit (too large, or
/// a JPEG of more than 100 scans; the text gives the size found and the bound). `name` stands for the file in
/// messages.
Image decode_image(std::span<const std::byte> bytes, const std::string& name,
                   const DecodeOptions& options = {});
/// decode_image of a mapped file.
Image read_image(const std::string& path, const DecodeOptions& options = {});

/// Writes `.png`, `.jpg` or `.jpeg` (by extension, any case) atomically; JPEG in 4:4:4 at `jpeg_quality`
/// (1..100). Throws Error: kUsage (another extension, no pixels, a quality out of range), kLimit (a JPEG side
/// above 65500), kIo.
void write_image(const std::string& path, const Image& image, int jpeg_quality = 92);
/// The PNG file as bytes, the same for the same picture.
std::string encode_png(const Image& image);

}  // namespace sinew

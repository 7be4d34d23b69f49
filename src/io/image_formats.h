// What the dispatcher, the JPEG codec and the PNG codec share. Not for other rooms: they use image_codec.h.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <span>
#include <string>

#include "io/image_codec.h"

namespace sinew::image_formats {

bool is_jpeg(std::span<const std::byte> bytes);
bool is_png(std::span<const std::byte> bytes);
/// Upright RGB pixels, or Error as decode_image() says.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name, const DecodeOptions& options);
Image decode_png(std::span<const std::byte> bytes, const std::string& name, const DecodeOptions& options);
/// The JPEG file as bytes: 4:4:4, baseline, `quality` 1..100.
std::string encode_jpeg(const Image& image, int quality);

/// Throws Error (kLimit) when the header's size breaks a bound.
void check_limits(std::uint64_t width, std::uint64_t height, const ImageLimits& limits,
                  const std::string& name);
/// Throws Error (kUsage) unless the image has pixels and as many bytes as its sides say.
void check_encodable(const Image& image);
/// Image(width, height), with memory that cannot be had as Error (kLimit).
Image allocate(int width, int height, const std::string& name);
/// The picture as the camera saw it (1..8 as exif_orientation); 5..8 exchange the sides.
Image upright(Image image, int orientation);

/// Runs `step`, which calls a C library whose error callback does longjmp(jump, 1). False when it did. The
/// step and whatever it calls must own nothing (no destructor runs on the way): objects with destructors live
/// outside, in the caller.
template <typename Step>
bool survives(std::jmp_buf& jump, const Step& step) {
  if (setjmp(jump) != 0)
    return false;  // NOLINT(cert-err52-cpp): the only way out that libjpeg and libpng offer
  step();
  return true;
}

/// Appends to a string from inside a C library: an exception must not cross its frames.
inline bool append(std::string& out, const void* data, std::size_t size) noexcept {
  try {
    out.append(static_cast<const char*>(data), size);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace sinew::image_formats

// Which codec, bounds, orientation; the formats themselves are in jpeg_codec.cc and png_codec.cc.
#include "io/image_codec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <exception>
#include <filesystem>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/image_formats.h"
#include "io/mapped_file.h"
#include "io/printable.h"

namespace sinew {
namespace image_formats {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

/// Where the first upright pixel lies in the stored picture and how to walk from there, in pixels.
struct Walk {
  std::ptrdiff_t first, per_column, per_row;
};

Walk walk_of(std::ptrdiff_t w, std::ptrdiff_t h, int orientation) {
  switch (orientation) {
    case 2:
      return {w - 1, -1, w};
    case 3:
      return {w * h - 1, -1, -w};
    case 4:
      return {(h - 1) * w, 1, -w};
    case 5:
      return {0, w, 1};
    case 6:
      return {(h - 1) * w, -w, 1};
    case 7:
      return {w * h - 1, -w, -1};
    case 8:
      return {w - 1, w, -1};
    default:
      return {0, 1, w};
  }
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 3> kStart = {0xFF, 0xD8, 0xFF};
  return starts_with(bytes, kStart);
}

bool is_png(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  return starts_with(bytes, kSignature);
}

void check_limits(std::uint64_t width, std::uint64_t height, const ImageLimits& limits,
                  const std::string& name) {
  const auto max_side = static_cast<std::uint64_t>(std::max(limits.max_side, 0));
  if (width > max_side || height > max_side) {
    throw fail(ErrorCode::kLimit, "{}: picture of {} x {} pixels, at most {} per side are accepted", name,
               width, height, max_side);
  }
  if (width * height > static_cast<std::uint64_t>(std::max<std::int64_t>(limits.max_pixels, 0))) {
    throw fail(ErrorCode::kLimit, "{}: picture of {} x {} = {} pixels, at most {} are accepted", name, width,
               height, width * height, limits.max_pixels);
  }
}

void check_encodable(const Image& image) {
  if (image.width < 1 || image.height < 1 ||
      image.rgb.size() != std::size_t{3} * static_cast<std::size_t>(image.width) * image.height) {
    throw fail(ErrorCode::kUsage, "cannot encode a picture of {} x {} pixels with {} bytes", image.width,
               image.height, image.rgb.size());
  }
}

Image allocate(int width, int height, const std::string& name) {
  try {
    return {width, height};
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw fail(ErrorCode::kLimit, "{}: no memory for a picture of {} x {} pixels", name, width, height);
  }
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool turned = orientation >= 5;
  Image out =
      allocate(turned ? image.height : image.width, turned ? image.width : image.height, "EXIF orientation");
  const Walk walk = walk_of(image.width, image.height, orientation);
  // Tiles, since a turned walk visits one cache line of the source per pixel: 64 columns re-use each line 21
  // times.
  constexpr int kTile = 64;
  for (int left = 0; left < out.width; left += kTile) {
    const int right = std::min(left + kTile, out.width);
    for (int y = 0; y < out.height; ++y) {
      for (int x = left; x < right; ++x) {
        const std::ptrdiff_t from = walk.first + x * walk.per_column + y * walk.per_row;
        std::memcpy(out.pixel(x, y), &image.rgb[static_cast<std::size_t>(3 * from)], 3);
      }
    }
  }
  return out;
}

}  // namespace image_formats

Image decode_image(std::span<const std::byte> bytes, const std::string& name, const DecodeOptions& options) {
  if (bytes.size() > options.limits.max_file_bytes) {
    throw fail(ErrorCode::kLimit, "{}: file of {} bytes, at most {} are accepted", name, bytes.size(),
               options.limits.max_file_bytes);
  }
  if (image_formats::is_jpeg(bytes)) return image_formats::decode_jpeg(bytes, name, options);
  if (image_formats::is_png(bytes)) return image_formats::decode_png(bytes, name, options);
  if (bytes.empty()) throw fail(ErrorCode::kFormat, "{}: the file is empty, expected JPEG or PNG", name);
  std::string start;
  for (const std::byte b : bytes.first(std::min<std::size_t>(bytes.size(), 8))) {
    start += fmt::format("{}{:02x}", start.empty() ? "" : " ", std::to_integer<unsigned>(b));
  }
  throw Error(
      ErrorCode::kFormat,
      fmt::format("{}: neither JPEG (ff d8 ff) nor PNG (89 50 4e 47), it starts with {}", name, start),
      "convert the picture to PNG or JPEG");
}

Image read_image(const std::string& path, const DecodeOptions& options) {
  const MappedFile file = MappedFile::open(path);
  return decode_image(file.bytes(), path, options);
}

void write_image(const std::string& path, const Image& image, int jpeg_quality) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".png") {
    write_file_atomically(path, encode_png(image));
  } else if (extension == ".jpg" || extension == ".jpeg") {
    write_file_atomically(path, image_formats::encode_jpeg(image, jpeg_quality));
  } else {
    throw fail(ErrorCode::kUsage, "{}: the extension '{}' is no picture format, expected .png, .jpg or .jpeg",
               path, printable(extension, 20));
  }
}

}  // namespace sinew

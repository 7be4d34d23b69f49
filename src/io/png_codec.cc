// PNG through libpng: 8-bit RGB out of every colour type, every sign of damage an error. Chunks that cannot
// change those pixels (gamma, profiles, text, transparency) are skipped after their checksum, which also
// keeps hostile ones away from libpng's parsers.
#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "io/exif.h"
#include "io/image_formats.h"

namespace sinew::image_formats {
namespace {

// Deflate codes at best 258 bytes in two bits (zlib's own bound).
constexpr std::uint64_t kMaxInflation = 1032;
// A kept chunk (only eXIf is) takes this much memory at most; a skipped one may be as long too.
constexpr png_alloc_size_t kMaxChunk = 16 << 20;
constexpr png_uint_32 kMaxKeptChunks = 16;
constexpr png_byte kExif[] = "eXIf";

/// What our callbacks leave behind. Nothing here has a destructor.
struct Failure {
  std::jmp_buf jump{};
  char text[200] = {};
};

[[noreturn]] void stop(png_structp png, png_const_charp message) {
  auto* failure = static_cast<Failure*>(png_get_error_ptr(png));
  std::snprintf(failure->text, sizeof failure->text, "%s", message);
  std::longjmp(failure->jump, 1);  // NOLINT(cert-err52-cpp): a libpng error callback must not return
}

void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

/// The bytes of the file that libpng has not read yet.
struct Source {
  const std::byte* next;
  std::size_t left;
};

void read_bytes(png_structp png, png_bytep out, std::size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->left) png_error(png, "the file ends too early");
  std::memcpy(out, source->next, size);
  source->next += size;
  source->left -= size;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string& name)
      : name_(name), size_(bytes.size()), source_{bytes.data(), bytes.size()} {}
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  void read_header(const ImageLimits& limits);
  Image read_pixels();
  int orientation() const;

 private:
  void begin();
  void ask_for_rgb();
  void check_length() const;
  [[noreturn]] void raise() const {
    throw fail(ErrorCode::kFormat, "{}: damaged or truncated PNG: {}", name_, failure_.text);
  }

  const std::string& name_;
  std::size_t size_;
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Failure failure_;
};

void Decoder::begin() {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, stop, on_warning);
  if (png_ != nullptr) info_ = png_create_info_struct(png_);
  if (info_ == nullptr) {
    std::snprintf(failure_.text, sizeof failure_.text, "no memory");
    std::longjmp(failure_.jump, 1);  // NOLINT(cert-err52-cpp)
  }
  png_set_read_fn(png_, &source_, read_bytes);
  png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  // What libpng calls benign is a bad Adler checksum, pixels missing or left over, a colour index outside the
  // palette.
  png_set_benign_errors(png_, 0);
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // ours are checked in read_header()
  png_set_chunk_malloc_max(png_, kMaxChunk);
  png_set_chunk_cache_max(png_, kMaxKeptChunks);
  constexpr png_byte kTransparency[] = "tRNS";
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kTransparency, 1);
  png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, kExif, 1);
}

void Decoder::read_header(const ImageLimits& limits) {
  const bool done = survives(failure_.jump, [&] {
    begin();
    png_read_info(png_, info_);
  });
  if (!done) raise();
  check_limits(png_get_image_width(png_, info_), png_get_image_height(png_, info_), limits, name_);
  check_length();
}

/// A few hundred bytes can declare 16384 x 16384 pixels: refused before memory is taken.
void Decoder::check_length() const {
  const std::uint64_t raw = std::uint64_t{png_get_rowbytes(png_, info_)} * png_get_image_height(png_, info_);
  if (raw / kMaxInflation > size_) {
    throw fail(ErrorCode::kFormat,
               "{}: truncated PNG: {} x {} pixels take at least {} bytes, the file has {}", name_,
               png_get_image_width(png_, info_), png_get_image_height(png_, info_), raw / kMaxInflation,
               size_);
  }
}

void Decoder::ask_for_rgb() {
  const int colour = png_get_color_type(png_, info_);
  if (png_get_bit_depth(png_, info_) == 16) png_set_strip_16(png_);  // the high byte, as OpenCV's
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
  if ((colour & PNG_COLOR_MASK_COLOR) == 0) {
    if (png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_gray_to_rgb(png_);
  }
  png_set_strip_alpha(png_);
}

Image Decoder::read_pixels() {
  int passes = 1;
  bool done = survives(failure_.jump, [&] {
    ask_for_rgb();
    passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  });
  if (!done) raise();
  Image image = allocate(static_cast<int>(png_get_image_width(png_, info_)),
                         static_cast<int>(png_get_image_height(png_, info_)), name_);
  if (png_get_rowbytes(png_, info_) != std::size_t{3} * static_cast<std::size_t>(image.width)) {
    throw fail(ErrorCode::kUnsupported, "{}: PNG rows of {} bytes after conversion to RGB, expected {}",
               name_, png_get_rowbytes(png_, info_), 3 * image.width);
  }
  done = survives(failure_.jump, [&] {
    for (int pass = 0; pass < passes; ++pass) {
      for (int y = 0; y < image.height; ++y) png_read_row(png_, image.pixel(0, y), nullptr);
    }
    png_read_end(png_, info_);
  });
  if (!done) raise();
  return image;
}

int Decoder::orientation() const {
  png_unknown_chunkp chunks = nullptr;
  const int count = png_get_unknown_chunks(png_, info_, &chunks);
  for (int i = 0; i < count; ++i) {
    if (std::memcmp(chunks[i].name, kExif, 4) == 0) {
      return exif_orientation({reinterpret_cast<const std::byte*>(chunks[i].data), chunks[i].size});
    }
  }
  return 1;
}

/// Where libpng writes to.
void write_bytes(png_structp png, png_bytep data, std::size_t size) {
  if (!append(*static_cast<std::string*>(png_get_io_ptr(png)), data, size)) png_error(png, "no memory");
}
void flush_nothing(png_structp /*png*/) {}

class Encoder {
 public:
  Encoder() = default;
  ~Encoder() { png_destroy_write_struct(&png_, &info_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  std::string encode(const Image& image);

 private:
  void begin(const Image& image);

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Failure failure_;
  std::string out_;
};

void Encoder::begin(const Image& image) {
  png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure_, stop, on_warning);
  if (png_ != nullptr) info_ = png_create_info_struct(png_);
  if (info_ == nullptr) {
    std::snprintf(failure_.text, sizeof failure_.text, "no memory");
    std::longjmp(failure_.jump, 1);  // NOLINT(cert-err52-cpp)
  }
  png_set_write_fn(png_, &out_, write_bytes, flush_nothing);
  png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  // A 1080p photograph: level 4 takes 108 ms and 1.19 MB, level 3 124 ms and 1.31 MB, level 6 380 ms and 1.08
  // MB.
  png_set_compression_level(png_, 4);
  png_set_filter(png_, PNG_FILTER_TYPE_BASE, PNG_FAST_FILTERS);
  png_set_IHDR(png_, info_, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8,
               PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png_, info_);
}

std::string Encoder::encode(const Image& image) {
  const bool done = survives(failure_.jump, [&] {
    begin(image);
    for (int y = 0; y < image.height; ++y) png_write_row(png_, image.pixel(0, y));
    png_write_end(png_, info_);
  });
  if (!done) {
    throw fail(ErrorCode::kLimit, "cannot write {} x {} pixels as PNG: {}", image.width, image.height,
               failure_.text);
  }
  return std::move(out_);
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& name, const DecodeOptions& options) {
  Decoder decoder(bytes, name);
  decoder.read_header(options.limits);
  Image image = decoder.read_pixels();
  return options.apply_exif_orientation ? upright(std::move(image), decoder.orientation()) : image;
}

}  // namespace sinew::image_formats

namespace sinew {

std::string encode_png(const Image& image) {
  image_formats::check_encodable(image);
  return image_formats::Encoder().encode(image);
}

}  // namespace sinew

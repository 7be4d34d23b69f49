// JPEG through libjpeg-turbo: islow DCT and fancy upsampling (its defaults, as OpenCV's loader), every sign
// of damage an error. The library reports errors by a callback that must not return: ours jumps out
// (survives() in image_formats.h).
#include <cstdint>
#include <cstdio>
#include <vector>

// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include <jerror.h>

#include "base/error.h"
#include "io/exif.h"
#include "io/image_formats.h"

namespace sinew::image_formats {
namespace {

// A picture of 10 scans is usual, 20 rare. Each scan walks over all blocks for a handful of bytes, so that
// thousands in a small file would hold the decoder for hours.
constexpr int kMaxScans = 100;
constexpr int kApp1 = JPEG_APP0 + 1;

/// What our callbacks leave behind. Nothing here has a destructor.
struct Failure {
  jpeg_error_mgr manager{};
  std::jmp_buf jump{};
  ErrorCode code = ErrorCode::kFormat;
  char text[JMSG_LENGTH_MAX] = {};
};

ErrorCode code_of(int message) {
  switch (message) {
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NO_ARITH_TABLE:
      return ErrorCode::kUnsupported;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
      return ErrorCode::kLimit;
    default:
      return ErrorCode::kFormat;
  }
}

[[noreturn]] void stop(j_common_ptr library) {
  auto* failure = static_cast<Failure*>(library->client_data);
  failure->code = code_of(library->err->msg_code);
  library->err->format_message(library, failure->text);
  std::longjmp(failure->jump, 1);  // NOLINT(cert-err52-cpp): a libjpeg error callback must not return
}

/// Warnings are damage and stop the decoder, except the four that leave every pixel in its place. Extraneous
/// bytes before a marker are what many webcams put in front of the end of a frame.
void on_message(j_common_ptr library, int level) {
  if (level >= 0) return;  // a trace
  switch (library->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
      return;
    default:
      stop(library);
  }
}

void on_output(j_common_ptr /*library*/) {}  // nothing goes to stderr

void install(Failure& failure, jpeg_common_struct& library) {
  library.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = stop;
  failure.manager.emit_message = on_message;
  failure.manager.output_message = on_output;
  library.client_data = &failure;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {
    install(failure_, reinterpret_cast<jpeg_common_struct&>(info_));
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  void read_header(const DecodeOptions& options);
  Image read_pixels();
  int orientation() const { return orientation_; }

 private:
  void find_orientation();
  static void watch_scans(j_common_ptr library);
  void check_length() const;
  void read_cmyk_rows(Image& image);
  [[noreturn]] void raise() const;

  std::span<const std::byte> bytes_;
  const std::string& name_;
  jpeg_decompress_struct info_{};
  Failure failure_;
  int orientation_ = 1;

  /// libjpeg's progress hook, called at least once per scan.
  struct Progress {
    jpeg_progress_mgr hook{};  // first member: the library hands back its address
    unsigned components_seen = 0;
    int scans = 0;
  } progress_;
};

void Decoder::raise() const {
  if (progress_.scans > kMaxScans) {
    throw fail(ErrorCode::kLimit, "{}: JPEG of more than {} scans", name_, kMaxScans);
  }
  switch (failure_.code) {
    case ErrorCode::kUnsupported:
      throw fail(failure_.code, "{}: this kind of JPEG cannot be read: {}", name_, failure_.text);
    case ErrorCode::kLimit:
      throw fail(failure_.code, "{}: JPEG too large: {}", name_, failure_.text);
    default:
      throw fail(failure_.code, "{}: damaged or truncated JPEG: {}", name_, failure_.text);
  }
}

void Decoder::read_header(const DecodeOptions& options) {
  const bool done = survives(failure_.jump, [&] {
    // Creation clears the struct but keeps `err` and `client_data`.
    jpeg_create_decompress(&info_);
    info_.progress = &progress_.hook;
    progress_.hook.progress_monitor = watch_scans;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    if (options.apply_exif_orientation) jpeg_save_markers(&info_, kApp1, 0xFFFF);
    jpeg_read_header(&info_, TRUE);
  });
  if (!done) raise();
  check_limits(info_.image_width, info_.image_height, options.limits, name_);
  check_length();
  find_orientation();
}

/// A few hundred bytes can declare 16384 x 16384 pixels. A Huffman-coded block takes at least two bits (its
/// DC code and an end of block), in a progressive file one bit (DC), so that such a file is refused before
/// memory is taken.
void Decoder::check_length() const {
  if (info_.arith_code) return;  // no such bound
  std::uint64_t blocks = 0;
  for (int i = 0; i < info_.num_components; ++i) {
    blocks += std::uint64_t{info_.comp_info[i].width_in_blocks} * info_.comp_info[i].height_in_blocks;
  }
  const std::uint64_t least = blocks * (info_.progressive_mode ? 1 : 2) / 8;
  if (least > bytes_.size()) {
    throw fail(ErrorCode::kFormat,
               "{}: truncated JPEG: {} x {} pixels take at least {} bytes, the file has {}", name_,
               info_.image_width, info_.image_height, least, bytes_.size());
  }
}

void Decoder::watch_scans(j_common_ptr library) {
  auto* info = reinterpret_cast<j_decompress_ptr>(library);
  auto* progress = reinterpret_cast<Progress*>(library->progress);
  progress->scans = info->input_scan_number;
  if (progress->scans > kMaxScans) stop(library);
  for (int i = 0; i < info->comps_in_scan; ++i) {
    progress->components_seen |= 1U << static_cast<unsigned>(info->cur_comp_info[i]->component_index);
  }
}

Image Decoder::read_pixels() {
  const bool four_inks = info_.num_components == 4;
  info_.out_color_space = four_inks ? JCS_CMYK : JCS_RGB;
  if (!survives(failure_.jump, [&] { jpeg_start_decompress(&info_); })) raise();
  Image image = allocate(static_cast<int>(info_.output_width), static_cast<int>(info_.output_height), name_);
  if (four_inks) {
    read_cmyk_rows(image);
  } else {
    const bool done = survives(failure_.jump, [&] {
      while (info_.output_scanline < info_.output_height) {
        JSAMPROW row = image.pixel(0, static_cast<int>(info_.output_scanline));
        jpeg_read_scanlines(&info_, &row, 1);
      }
    });
    if (!done) raise();
  }
  // Up to the end-of-image marker: without it the file is cut.
  if (!survives(failure_.jump, [&] { jpeg_finish_decompress(&info_); })) raise();
  const unsigned all = (1U << static_cast<unsigned>(info_.num_components)) - 1;
  if (progress_.components_seen != all) {
    throw fail(ErrorCode::kFormat, "{}: damaged JPEG: the scans leave out a colour component", name_);
  }
  return image;
}

/// Adobe stores inks inverted (255 = none) and OpenCV takes every four-component file as such: c = k - ((255
/// - c) * k >> 8).
void Decoder::read_cmyk_rows(Image& image) {
  std::vector<JSAMPLE> inks(std::size_t{4} * info_.output_width);
  const bool done = survives(failure_.jump, [&] {
    while (info_.output_scanline < info_.output_height) {
      std::uint8_t* out = image.pixel(0, static_cast<int>(info_.output_scanline));
      JSAMPROW row = inks.data();
      jpeg_read_scanlines(&info_, &row, 1);
      for (JDIMENSION x = 0; x < info_.output_width; ++x) {
        const int k = row[4 * x + 3];
        for (JDIMENSION c = 0; c < 3; ++c) {
          out[3 * x + c] = static_cast<std::uint8_t>(k - ((255 - row[4 * x + c]) * k >> 8));
        }
      }
    }
  });
  if (!done) raise();
}

/// Before the pixels: jpeg_finish_decompress() frees the markers.
void Decoder::find_orientation() {
  constexpr char kExif[] = {'E', 'x', 'i', 'f', '\0', '\0'};
  for (jpeg_saved_marker_ptr m = info_.marker_list; m != nullptr; m = m->next) {
    const std::span data(reinterpret_cast<const std::byte*>(m->data), m->data_length);
    if (m->marker == kApp1 && data.size() >= sizeof kExif &&
        std::memcmp(data.data(), kExif, sizeof kExif) == 0) {
      orientation_ = exif_orientation(data.subspan(sizeof kExif));
      return;
    }
  }
}

/// Collects the encoder's output in a string, 64 KB at a time.
class Encoder {
 public:
  Encoder() { install(failure_, reinterpret_cast<jpeg_common_struct&>(info_)); }
  ~Encoder() { jpeg_destroy_compress(&info_); }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  std::string encode(const Image& image, int quality);

 private:
  static constexpr std::size_t kChunk = 1 << 16;
  struct Sink {
    jpeg_destination_mgr hooks{};  // first member: the library hands back its address
    std::vector<JOCTET> chunk = std::vector<JOCTET>(kChunk);
    std::string out;
    void rewind() {
      hooks.next_output_byte = chunk.data();
      hooks.free_in_buffer = chunk.size();
    }
  };
  static Sink& sink_of(j_compress_ptr info) { return *reinterpret_cast<Sink*>(info->dest); }
  static void on_start(j_compress_ptr info) { sink_of(info).rewind(); }
  static boolean on_full(j_compress_ptr info) {
    Sink& sink = sink_of(info);
    if (!append(sink.out, sink.chunk.data(), sink.chunk.size())) ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
    sink.rewind();
    return TRUE;
  }
  static void on_end(j_compress_ptr info) {
    Sink& sink = sink_of(info);
    const std::size_t left = sink.chunk.size() - sink.hooks.free_in_buffer;
    if (!append(sink.out, sink.chunk.data(), left)) ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
  }
  void begin(const Image& image, int quality);

  jpeg_compress_struct info_{};
  Failure failure_;
  Sink sink_;
};

void Encoder::begin(const Image& image, int quality) {
  jpeg_create_compress(&info_);
  sink_.hooks.init_destination = on_start;
  sink_.hooks.empty_output_buffer = on_full;
  sink_.hooks.term_destination = on_end;
  info_.dest = &sink_.hooks;
  info_.image_width = static_cast<JDIMENSION>(image.width);
  info_.image_height = static_cast<JDIMENSION>(image.height);
  info_.input_components = 3;
  info_.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info_);
  jpeg_set_quality(&info_, quality, TRUE);
  for (int i = 0; i < info_.num_components; ++i) {  // 4:4:4: thin coloured lines keep their colour
    info_.comp_info[i].h_samp_factor = 1;
    info_.comp_info[i].v_samp_factor = 1;
  }
  jpeg_start_compress(&info_, TRUE);
}

std::string Encoder::encode(const Image& image, int quality) {
  const bool done = survives(failure_.jump, [&] {
    begin(image, quality);
    while (info_.next_scanline < info_.image_height) {
      // The library takes a mutable pointer and only reads.
      auto* row = const_cast<JSAMPLE*>(image.pixel(0, static_cast<int>(info_.next_scanline)));
      jpeg_write_scanlines(&info_, &row, 1);
    }
    jpeg_finish_compress(&info_);
  });
  if (!done) {
    throw fail(failure_.code, "cannot write {} x {} pixels as JPEG: {}", image.width, image.height,
               failure_.text);
  }
  return std::move(sink_.out);
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name, const DecodeOptions& options) {
  Decoder decoder(bytes, name);
  decoder.read_header(options);
  Image image = decoder.read_pixels();
  return upright(std::move(image), decoder.orientation());  // 1 unless the markers were kept
}

std::string encode_jpeg(const Image& image, int quality) {
  check_encodable(image);
  if (quality < 1 || quality > 100)
    throw fail(ErrorCode::kUsage, "JPEG quality {}, expected 1 to 100", quality);
  return Encoder().encode(image, quality);
}

}  // namespace sinew::image_formats

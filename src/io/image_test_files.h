// JPEG and PNG files made by hand, for tests: kinds that sinew reads and never writes.
#pragma once

#include <png.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include "tensor/image.h"

namespace sinew::test_files {

inline std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

inline Image noise(int width, int height, unsigned seed = 1) {
  Image image(width, height);
  std::mt19937 random(seed);
  for (auto& v : image.rgb) v = static_cast<std::uint8_t>(random());
  return image;
}

/// Smooth in both directions, different in each channel: survives JPEG.
inline Image gradient(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      std::uint8_t* p = image.pixel(x, y);
      p[0] = static_cast<std::uint8_t>(255 * x / width);
      p[1] = static_cast<std::uint8_t>(255 * y / height);
      p[2] = static_cast<std::uint8_t>(128 + 60 * x / width - 60 * y / height);
    }
  }
  return image;
}

struct PngKind {
  int colour_type = PNG_COLOR_TYPE_RGB;
  int bit_depth = 8;
  bool interlaced = false;
  bool transparency = false;  // a tRNS chunk (palette, grey, RGB)
  bool gamma = false;         // a gAMA chunk, which must not matter
  std::vector<png_color> palette;
};

/// `samples`: height rows of packed samples as PNG stores them (16 bits big-endian).
inline std::string make_png(int width, int height, const PngKind& kind,
                            const std::vector<std::vector<std::uint8_t>>& samples) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, std::size_t size) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(data), size);
      },
      [](png_structp) {});
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_check_for_invalid_index(png, 0);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bit_depth,
               kind.colour_type, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!kind.palette.empty())
    png_set_PLTE(png, info, kind.palette.data(), static_cast<int>(kind.palette.size()));
  if (kind.gamma) png_set_gAMA(png, info, 0.3);
  const png_byte alpha[2] = {0, 100};
  const png_color_16 key = {1, 2, 3, 4, 1};
  if (kind.transparency) {
    const bool palette = kind.colour_type == PNG_COLOR_TYPE_PALETTE;
    png_set_tRNS(png, info, palette ? alpha : nullptr, palette ? 2 : 0, palette ? nullptr : &key);
  }
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass) {
    for (const auto& row : samples) png_write_row(png, row.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

/// A chunk with its length and checksum.
inline std::string png_chunk(const std::string& type, const std::string& data) {
  const auto u32 = [](std::uint32_t v) {
    std::string s;
    for (int shift = 24; shift >= 0; shift -= 8) s += static_cast<char>(v >> shift & 0xFF);
    return s;
  };
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : type + data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0U);
  }
  return u32(static_cast<std::uint32_t>(data.size())) + type + data + u32(~crc);
}

struct JpegKind {
  J_COLOR_SPACE in = JCS_RGB;  // of the samples given
  J_COLOR_SPACE stored = JCS_YCbCr;
  bool progressive = false;
  bool separate_scans = false;  // one scan per component
  bool arithmetic = false;
  int quality = 90;
  int horizontal_sampling = 1;
};

/// `samples`: rows of width * components bytes.
inline std::string make_jpeg(int width, int height, const JpegKind& kind,
                             const std::vector<std::uint8_t>& samples) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.in_color_space = kind.in;
  info.input_components = kind.in == JCS_GRAYSCALE ? 1 : kind.in == JCS_CMYK ? 4 : 3;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, kind.stored);
  jpeg_set_quality(&info, kind.quality, TRUE);
  info.comp_info[0].h_samp_factor = kind.horizontal_sampling;
  info.comp_info[0].v_samp_factor = 1;
  info.arith_code = kind.arithmetic ? TRUE : FALSE;
  jpeg_scan_info scans[4]{};
  if (kind.separate_scans) {
    for (int i = 0; i < info.num_components; ++i) {
      scans[i].comps_in_scan = 1;
      scans[i].component_index[0] = i;
      scans[i].Se = 63;
    }
    info.scan_info = scans;
    info.num_scans = info.num_components;
  }
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  const std::size_t stride = static_cast<std::size_t>(width) * info.input_components;
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPLE*>(&samples[info.next_scanline * stride]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<char*>(buffer), size);
  std::free(buffer);
  return out;
}

/// A TIFF block with `orientation` as its second entry.
inline std::string exif_block(bool big_endian, unsigned orientation, bool as_long = false) {
  std::string out = big_endian ? "MM" : "II";
  const auto put = [&](unsigned value, int size) {
    for (int i = 0; i < size; ++i)
      out += static_cast<char>(value >> 8 * (big_endian ? size - 1 - i : i) & 0xFF);
  };
  put(42, 2);
  put(8, 4);
  put(2, 2);
  put(0x010F, 2), put(2, 2), put(4, 4), put(0x41424300, 4);  // Make
  put(0x0112, 2), put(as_long ? 4 : 3, 2), put(1, 4);
  if (as_long) {
    put(orientation, 4);
  } else {
    put(orientation, 2), put(0, 2);
  }
  put(0, 4);
  return out;
}

/// `jpeg` with an APP1 segment right after its start.
inline std::string with_app1(const std::string& jpeg, const std::string& payload) {
  const std::size_t length = payload.size() + 2;
  std::string segment = "\xFF\xE1";
  segment += static_cast<char>(length >> 8);
  segment += static_cast<char>(length & 0xFF);
  return jpeg.substr(0, 2) + segment + payload + jpeg.substr(2);
}

}  // namespace sinew::test_files

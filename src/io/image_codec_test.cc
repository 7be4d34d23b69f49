#include "io/image_codec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/image_formats.h"
#include "io/image_test_files.h"

namespace sinew {
namespace {

using test_files::bytes_of;
using test_files::gradient;
using test_files::JpegKind;
using test_files::make_jpeg;
using test_files::make_png;
using test_files::noise;
using test_files::PngKind;

Image decode(const std::string& file, const DecodeOptions& options = {}) {
  return decode_image(bytes_of(file), "test", options);
}

/// The code of the Error that decoding throws; the test fails when it throws nothing or another thing.
ErrorCode refusal(const std::string& file, const DecodeOptions& options = {}) {
  try {
    decode(file, options);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("test: ", 0), 0U) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "decoded a file that should be refused";
  return ErrorCode::kUsage;
}

std::string gradient_jpeg(int width, int height, JpegKind kind = {}) {
  return make_jpeg(width, height, kind, gradient(width, height).rgb);
}

TEST(ImageCodec, PngRoundTripIsExactAndDeterministic) {
  const auto path = std::filesystem::temp_directory_path() / "sinew_image_codec_test.PNG";
  for (const auto& [w, h] : {std::pair(1, 1), {1, 37}, {37, 1}, {61, 43}, {640, 480}}) {
    const Image image = noise(w, h);
    write_image(path.string(), image);
    const Image back = read_image(path.string());
    EXPECT_EQ(back.width, w);
    EXPECT_EQ(back.height, h);
    EXPECT_EQ(back.rgb, image.rgb);
    EXPECT_EQ(encode_png(image), encode_png(image));
  }
  std::filesystem::remove(path);
}

TEST(ImageCodec, JpegRoundTripStaysClose) {
  const auto path = std::filesystem::temp_directory_path() / "sinew_image_codec_test.jpeg";
  const Image image = gradient(200, 120);
  write_image(path.string(), image, 95);
  const Image back = read_image(path.string());
  std::filesystem::remove(path);
  ASSERT_EQ(back.rgb.size(), image.rgb.size());
  for (std::size_t i = 0; i < image.rgb.size(); ++i) ASSERT_NEAR(back.rgb[i], image.rgb[i], 4) << i;
}

TEST(ImageCodec, JpegKeepsColourOfThinLines) {
  Image image(32, 32);  // red and blue columns in turn: 4:2:0 would leave purple
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) image.pixel(x, y)[x % 2 == 0 ? 0 : 2] = 255;
  }
  const Image back = decode(image_formats::encode_jpeg(image, 95));
  EXPECT_GT(back.pixel(10, 10)[0], 200);
  EXPECT_LT(back.pixel(11, 10)[0], 60);
}

TEST(ImageCodec, WritingRefusesWhatItCannotDo) {
  const auto code_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kIo;
  };
  const Image image = gradient(8, 8);
  EXPECT_EQ(code_of([&] { write_image("/tmp/x.bmp", image); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { write_image("/tmp/x", image); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { write_image("/tmp/x.png", Image()); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { write_image("/tmp/x.jpg", image, 0); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { write_image("/tmp/x.jpg", Image(65501, 1)); }), ErrorCode::kLimit);
}

struct PngCase {
  int colour_type, bit_depth, channels;
};

TEST(ImageCodec, ReadsEveryKindOfPng) {
  const std::vector<PngCase> cases = {{PNG_COLOR_TYPE_GRAY, 1, 1},        {PNG_COLOR_TYPE_GRAY, 2, 1},
                                      {PNG_COLOR_TYPE_GRAY, 4, 1},        {PNG_COLOR_TYPE_GRAY, 8, 1},
                                      {PNG_COLOR_TYPE_GRAY, 16, 1},       {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2},
                                      {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 2}, {PNG_COLOR_TYPE_PALETTE, 1, 1},
                                      {PNG_COLOR_TYPE_PALETTE, 2, 1},     {PNG_COLOR_TYPE_PALETTE, 4, 1},
                                      {PNG_COLOR_TYPE_PALETTE, 8, 1},     {PNG_COLOR_TYPE_RGB, 8, 3},
                                      {PNG_COLOR_TYPE_RGB, 16, 3},        {PNG_COLOR_TYPE_RGB_ALPHA, 8, 4},
                                      {PNG_COLOR_TYPE_RGB_ALPHA, 16, 4}};
  constexpr int kWidth = 13;
  constexpr int kHeight = 9;
  std::mt19937 random(3);
  for (const auto& [colour_type, depth, channels] : cases) {
    for (int variant = 0; variant < 8; ++variant) {
      PngKind kind{colour_type, depth, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0, {}};
      const bool palette = colour_type == PNG_COLOR_TYPE_PALETTE;
      if ((colour_type & PNG_COLOR_MASK_ALPHA) != 0) kind.transparency = false;
      for (int i = 0; palette && i < 1 << depth; ++i) {
        kind.palette.push_back({static_cast<png_byte>(random()), static_cast<png_byte>(random()),
                                static_cast<png_byte>(random())});
      }
      const std::size_t row_bytes = (std::size_t{kWidth} * channels * depth + 7) / 8;
      std::vector<std::vector<std::uint8_t>> rows(kHeight, std::vector<std::uint8_t>(row_bytes));
      for (auto& row : rows) {
        for (auto& v : row) v = static_cast<std::uint8_t>(random());
      }
      const Image image = decode(make_png(kWidth, kHeight, kind, rows));
      ASSERT_EQ(image.width, kWidth);
      ASSERT_EQ(image.height, kHeight);
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          const auto sample = [&](int channel) -> int {
            const std::size_t bit = (std::size_t{static_cast<unsigned>(x)} * channels + channel) * depth;
            if (depth >= 8) return rows[y][bit / 8];  // of 16 bits the high byte
            return rows[y][bit / 8] >> (8 - depth - bit % 8) & ((1 << depth) - 1);
          };
          for (int c = 0; c < 3; ++c) {
            int expected = sample(channels >= 3 ? c : 0);
            if (palette) {
              const png_color& colour = kind.palette[expected];
              expected = c == 0 ? colour.red : c == 1 ? colour.green : colour.blue;
            } else if (depth < 8) {
              expected = expected * 255 / ((1 << depth) - 1);
            }
            ASSERT_EQ(image.pixel(x, y)[c], expected)
                << "type " << colour_type << " depth " << depth << " variant " << variant;
          }
        }
      }
    }
  }
}

TEST(ImageCodec, TakesColourIndexOutsideThePaletteAsBlack) {
  const PngKind kind{PNG_COLOR_TYPE_PALETTE, 8, false, false, false, {{1, 2, 3}, {4, 5, 6}}};
  EXPECT_EQ(decode(make_png(2, 1, kind, {{1, 200}})).rgb, (std::vector<std::uint8_t>{4, 5, 6, 0, 0, 0}));
}

TEST(ImageCodec, ReadsGreyJpeg) {
  const std::vector<std::uint8_t> grey(64, 77);
  const Image image = decode(make_jpeg(8, 8, {JCS_GRAYSCALE, JCS_GRAYSCALE}, grey));
  ASSERT_EQ(image.rgb.size(), 192U);
  for (const auto v : image.rgb) EXPECT_NEAR(v, 77, 1);
}

TEST(ImageCodec, ReadsRgbJpegWithoutConversion) {
  std::vector<std::uint8_t> rgb;
  for (int i = 0; i < 64; ++i) rgb.insert(rgb.end(), {200, 10, 90});
  const Image image = decode(make_jpeg(8, 8, {.stored = JCS_RGB, .quality = 100}, rgb));
  EXPECT_EQ(image.rgb, rgb);
}

TEST(ImageCodec, ReadsFourInksAsOpenCvDoes) {
  std::vector<std::uint8_t> inks;
  for (int i = 0; i < 64; ++i) inks.insert(inks.end(), {200, 100, 50, 128});
  // k - ((255 - c) * k >> 8): 128 - (55*128 >> 8) = 101, 128 - (155*128 >> 8) = 51, 128 - (205*128 >> 8) = 26
  const Image cmyk = decode(make_jpeg(8, 8, {.in = JCS_CMYK, .stored = JCS_CMYK, .quality = 100}, inks));
  EXPECT_EQ(cmyk.pixel(3, 3)[0], 101);
  EXPECT_EQ(cmyk.pixel(3, 3)[1], 51);
  EXPECT_EQ(cmyk.pixel(3, 3)[2], 26);
  const Image ycck = decode(make_jpeg(8, 8, {.in = JCS_CMYK, .stored = JCS_YCCK, .quality = 100}, inks));
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(ycck.pixel(3, 3)[c], cmyk.pixel(3, 3)[c], 2);
}

TEST(ImageCodec, ReadsProgressiveSeparateAndSubsampledJpegAlike) {
  const Image plain = decode(gradient_jpeg(70, 50));
  EXPECT_EQ(decode(gradient_jpeg(70, 50, {.progressive = true})).rgb, plain.rgb);
  EXPECT_EQ(decode(gradient_jpeg(70, 50, {.separate_scans = true})).rgb, plain.rgb);
  EXPECT_EQ(decode(gradient_jpeg(70, 50, {.arithmetic = true})).rgb, plain.rgb);
  const Image halved = decode(gradient_jpeg(70, 50, {.horizontal_sampling = 2}));
  ASSERT_EQ(halved.rgb.size(), plain.rgb.size());
  for (std::size_t i = 0; i < plain.rgb.size(); ++i) ASSERT_NEAR(halved.rgb[i], plain.rgb[i], 8);
}

/// Orientation by its definition: where the stored row 0 and column 0 belong on the upright picture.
Image reference_upright(const Image& stored, int orientation) {
  const int w = stored.width;
  const int h = stored.height;
  Image out = orientation >= 5 ? Image(h, w) : Image(w, h);
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x) {
      const int right = w - 1 - x;
      const int bottom = h - 1 - y;
      const int to_x[] = {0, x, right, right, x, y, bottom, bottom, y};
      const int to_y[] = {0, y, y, bottom, bottom, x, x, right, right};
      std::copy_n(stored.pixel(x, y), 3, out.pixel(to_x[orientation], to_y[orientation]));
    }
  }
  return out;
}

TEST(ImageCodec, AppliesExifOrientation) {
  const std::string jpeg = gradient_jpeg(40, 24);
  const Image stored = decode(jpeg);
  const Image picture = noise(150, 70);
  const std::string png = encode_png(picture);
  constexpr std::size_t kAfterHeader = 8 + 25;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string tiff = test_files::exif_block(orientation % 2 == 0, static_cast<unsigned>(orientation));
    const std::string exif("Exif\0\0", 6);
    // XMP travels in APP1 too and may come first.
    const std::string turned =
        test_files::with_app1(test_files::with_app1(jpeg, exif + tiff), "http://ns.adobe.com/xap/1.0/");
    const Image expected = reference_upright(stored, orientation);
    const Image image = decode(turned);
    EXPECT_EQ(image.width, expected.width);
    EXPECT_EQ(image.rgb, expected.rgb) << orientation;
    EXPECT_EQ(decode(turned, {.limits = {}, .apply_exif_orientation = false}).rgb, stored.rgb);

    const std::string chunk = test_files::png_chunk("eXIf", tiff);
    const Image upright = reference_upright(picture, orientation);
    const std::string before = png.substr(0, kAfterHeader) + chunk + png.substr(kAfterHeader);
    const std::string after = png.substr(0, png.size() - 12) + chunk + png.substr(png.size() - 12);
    EXPECT_EQ(decode(before).width, upright.width);
    EXPECT_EQ(decode(before).rgb, upright.rgb) << orientation;
    EXPECT_EQ(decode(after).rgb, upright.rgb) << orientation;
    EXPECT_EQ(decode(before, {.limits = {}, .apply_exif_orientation = false}).rgb, picture.rgb);
  }
}

std::vector<std::string> small_files() {
  return {gradient_jpeg(64, 48),
          make_jpeg(40, 40, {}, noise(40, 40).rgb),
          gradient_jpeg(64, 48, {.progressive = true}),
          gradient_jpeg(64, 48, {.separate_scans = true}),
          gradient_jpeg(64, 48, {.arithmetic = true}),
          encode_png(noise(30, 20)),
          make_png(30, 20, {PNG_COLOR_TYPE_GRAY, 8, true, true, false, {}},
                   std::vector<std::vector<std::uint8_t>>(20, std::vector<std::uint8_t>(30, 5)))};
}

TEST(ImageCodec, RefusesEveryTruncation) {
  for (const std::string& file : small_files()) {
    for (std::size_t size = 0; size < file.size(); size += 16)
      EXPECT_EQ(refusal(file.substr(0, size)), ErrorCode::kFormat);
    for (std::size_t cut = 1; cut <= 12; ++cut) {
      EXPECT_EQ(refusal(file.substr(0, file.size() - cut)), ErrorCode::kFormat) << cut;
    }
  }
}

TEST(ImageCodec, FlippedBytesGiveAnErrorOrAnImage) {
  std::mt19937 random(11);
  DecodeOptions options;
  options.limits.max_pixels = 1 << 22;
  for (const std::string& original : small_files()) {
    for (int i = 0; i < 1500; ++i) {
      std::string file = original;
      for (int k = 0; k < 1 + i % 4; ++k) file[random() % file.size()] = static_cast<char>(random());
      try {
        const Image image = decode(file, options);
        EXPECT_EQ(image.rgb.size(), std::size_t{3} * static_cast<unsigned>(image.width) * image.height);
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the other right answer
      }
    }
  }
}

TEST(ImageCodec, RefusesWrongChecksums) {
  const std::string png = encode_png(noise(30, 20));
  for (const std::size_t from_end : {13U, 14U}) {  // in the checksum of the last IDAT
    std::string file = png;
    file[file.size() - from_end] = static_cast<char>(file[file.size() - from_end] ^ 1);
    EXPECT_EQ(refusal(file), ErrorCode::kFormat);
  }
  std::string text = test_files::png_chunk("tEXt", std::string("k\0v", 3));
  EXPECT_NO_THROW(decode(png.substr(0, 33) + text + png.substr(33)));
  text.back() = static_cast<char>(text.back() ^ 1);
  EXPECT_EQ(refusal(png.substr(0, 33) + text + png.substr(33)), ErrorCode::kFormat);
}

TEST(ImageCodec, ChecksLimitsOnTheHeader) {
  DecodeOptions options;
  options.limits = {.max_side = 100, .max_pixels = 5000, .max_file_bytes = 100000};
  for (const bool jpeg : {true, false}) {
    const auto make = [&](int w, int h) { return jpeg ? gradient_jpeg(w, h) : encode_png(gradient(w, h)); };
    EXPECT_EQ(refusal(make(101, 8), options), ErrorCode::kLimit);
    EXPECT_EQ(refusal(make(8, 101), options), ErrorCode::kLimit);
    EXPECT_EQ(refusal(make(80, 80), options), ErrorCode::kLimit);
    EXPECT_NO_THROW(decode(make(100, 50), options));
  }
  options.limits.max_file_bytes = 10;
  EXPECT_EQ(refusal(gradient_jpeg(8, 8), options), ErrorCode::kLimit);
}

/// A small file whose header says width x height.
std::string with_declared_size(bool jpeg, int width, int height) {
  if (!jpeg) {
    std::string header = encode_png(gradient(8, 8)).substr(16, 13);
    for (int i = 0; i < 4; ++i) {
      header[i] = static_cast<char>(width >> (24 - 8 * i));
      header[4 + i] = static_cast<char>(height >> (24 - 8 * i));
    }
    const std::string png = encode_png(gradient(8, 8));
    return png.substr(0, 8) + test_files::png_chunk("IHDR", header) + png.substr(33);
  }
  std::string file = gradient_jpeg(8, 8);
  const std::size_t frame = file.find("\xFF\xC0") + 5;
  file[frame] = static_cast<char>(height >> 8);
  file[frame + 1] = static_cast<char>(height);
  file[frame + 2] = static_cast<char>(width >> 8);
  file[frame + 3] = static_cast<char>(width);
  return file;
}

TEST(ImageCodec, RefusesSmallFilesThatDeclareHugePictures) {
  for (const bool jpeg : {true, false}) {
    EXPECT_EQ(refusal(with_declared_size(jpeg, 16384, 16384)), ErrorCode::kFormat);
    EXPECT_EQ(refusal(with_declared_size(jpeg, 20000, 20000)), ErrorCode::kLimit);
    EXPECT_EQ(refusal(with_declared_size(jpeg, 0, 8)), ErrorCode::kFormat);
    EXPECT_EQ(refusal(with_declared_size(jpeg, 8, 0)), ErrorCode::kFormat);
    EXPECT_EQ(refusal(with_declared_size(jpeg, 0, 0)), ErrorCode::kFormat);
  }
  EXPECT_EQ(refusal(with_declared_size(false, 0x7FFFFFFF, 0x7FFFFFFF)), ErrorCode::kLimit);
  EXPECT_EQ(refusal(with_declared_size(true, 65535, 65535)), ErrorCode::kLimit);
}

TEST(ImageCodec, ReadsOddSizes) {
  for (const auto& [w, h] : {std::pair(1, 1), {1, 300}, {300, 1}, {9, 8193}}) {
    EXPECT_EQ(decode(gradient_jpeg(w, h)).width, w);
    EXPECT_EQ(decode(encode_png(gradient(w, h))).height, h);
  }
  const std::string wide = encode_png(gradient(65535, 1));
  EXPECT_EQ(refusal(wide), ErrorCode::kLimit);
  DecodeOptions options;
  options.limits.max_side = 70000;
  EXPECT_EQ(decode(wide, options).width, 65535);
  EXPECT_EQ(refusal(with_declared_size(true, 65535, 1), options),
            ErrorCode::kLimit);  // libjpeg ends at 65500
}

/// The pieces of a JPEG of one scan per component: header, scans (tables included), end.
std::vector<std::string> pieces(const std::string& file) {
  std::vector<std::size_t> cuts = {0};
  const std::string tables = "\xFF\xC4";
  const std::string scan = "\xFF\xDA";
  std::size_t at = 0;
  while ((at = file.find(scan, at)) != std::string::npos) {
    std::size_t begin = at;  // tables of this scan lie between the previous scan's data and it
    for (std::size_t t = file.find(tables, cuts.back() + 2); t != std::string::npos && t < at;
         t = file.find(tables, t + 2)) {
      begin = std::min(begin, t);
    }
    cuts.push_back(begin);
    at += 2;
  }
  cuts.push_back(file.size() - 2);
  cuts.push_back(file.size());
  std::vector<std::string> out;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    out.push_back(file.substr(cuts[i], cuts[i + 1] - cuts[i]));
  return out;
}

TEST(ImageCodec, BoundsScansAndMissesNone) {
  const auto part = pieces(gradient_jpeg(32, 32, {.separate_scans = true}));
  ASSERT_EQ(part.size(), 5U);
  const std::string whole = part[0] + part[1] + part[2] + part[3] + part[4];
  EXPECT_NO_THROW(decode(whole));
  EXPECT_EQ(refusal(part[0] + part[1] + part[2] + part[4]), ErrorCode::kFormat);
  std::string bomb = part[0] + part[1] + part[2];
  for (int i = 0; i < 150; ++i) bomb += part[3];
  EXPECT_EQ(refusal(bomb + part[4]), ErrorCode::kLimit);
}

TEST(ImageCodec, ToleratesPaddingThatWebcamsAdd) {
  const std::string file = gradient_jpeg(32, 32);
  const Image plain = decode(file);
  const std::string end = file.substr(file.size() - 2);
  EXPECT_EQ(decode(file.substr(0, file.size() - 2) + std::string(3, '\0') + end).rgb, plain.rgb);
  EXPECT_EQ(decode(file + std::string(100, '\0')).rgb, plain.rgb);
  EXPECT_EQ(decode(encode_png(plain) + "more").rgb, plain.rgb);
}

TEST(ImageCodec, NamesWhatItCannotRead) {
  std::string twelve_bits = gradient_jpeg(8, 8);
  twelve_bits[twelve_bits.find("\xFF\xC0") + 4] = 12;
  EXPECT_EQ(refusal(twelve_bits), ErrorCode::kUnsupported);
  std::string lossless = gradient_jpeg(8, 8);
  lossless[lossless.find("\xFF\xC0") + 1] = '\xC3';
  EXPECT_EQ(refusal(lossless), ErrorCode::kUnsupported);
  EXPECT_EQ(refusal("GIF89a"), ErrorCode::kFormat);
  EXPECT_EQ(refusal(""), ErrorCode::kFormat);
  try {
    read_image("/nonexistent/x.png");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST(ImageCodec, ReadsTheSharedHandPictures) {
  const auto folder = shared_file("data/hands");
  if (!folder) GTEST_SKIP() << kNoShared;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    const auto extension = entry.path().extension();
    if (extension != ".png" && extension != ".jpg") continue;
    const Image image = read_image(entry.path().string());
    EXPECT_GT(image.width, 50);
    ++count;
  }
  EXPECT_GT(count, 5);
}

}  // namespace
}  // namespace sinew

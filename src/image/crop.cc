// Geometry shared by both crops, checks, and the way from pixels to the network's input.
#include "image/crop.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace sinew {
namespace {

using ChannelTable = std::array<std::array<float, 256>, 3>;

/// 255 * mean and 255 * deviation, rounded to float32 as NumPy 1.x does before it uses them.
float mean_of(int channel) { return static_cast<float>(255.0 * kImageMean[channel]); }
float std_of(int channel) { return static_cast<float>(255.0 * kImageStd[channel]); }

/// The normalised value of every pixel value, computed in float32.
const ChannelTable& normalised() {
  static const ChannelTable kTable = [] {
    ChannelTable table{};
    for (int c = 0; c < 3; ++c) {
      for (int u = 0; u < 256; ++u) table[c][u] = (static_cast<float>(u) - mean_of(c)) / std_of(c);
    }
    return table;
  }();
  return kTable;
}

/// The same computed in double and rounded once, as NumPy 2 does: at most one unit in the last place away.
const ChannelTable& normalised_in_double() {
  static const ChannelTable kTable = [] {
    ChannelTable table{};
    for (int c = 0; c < 3; ++c) {
      for (int u = 0; u < 256; ++u) {
        table[c][u] = static_cast<float>((u - 255.0 * kImageMean[c]) / (255.0 * kImageStd[c]));
      }
    }
    return table;
  }();
  return kTable;
}

bool finite(const HandBox& box) {
  return std::isfinite(box.x1) && std::isfinite(box.y1) && std::isfinite(box.x2) && std::isfinite(box.y2);
}

std::string text_of(const HandBox& box) {
  return fmt::format("x {} to {}, y {} to {}", box.x1, box.x2, box.y1, box.y2);
}

}  // namespace

std::optional<CropKind> parse_crop_kind(std::string_view word) {
  if (word == "pillow") return CropKind::kPillow;
  if (word == "opencv") return CropKind::kOpenCV;
  return std::nullopt;
}

void check_box(const HandBox& box, int frame_width, int frame_height) {
  if (!finite(box)) throw fail(ErrorCode::kUsage, "hand box {}: expected four finite numbers", text_of(box));
  if (box.x2 <= box.x1 || box.y2 <= box.y1) {
    throw Error(ErrorCode::kUsage, fmt::format("hand box {}: expected x1 < x2 and y1 < y2", text_of(box)),
                "a box is x1, y1, x2, y2 in pixels, not x, y, width, height");
  }
  if (box.x2 <= 0 || box.y2 <= 0 || box.x1 >= frame_width || box.y1 >= frame_height) {
    throw fail(ErrorCode::kUsage, "hand box {}: expected a box that touches the frame of {} x {} pixels",
               text_of(box), frame_width, frame_height);
  }
}

void check_frame(const Image& frame) {
  if (frame.width < 1 || frame.height < 1) {
    throw fail(ErrorCode::kUsage, "crop: the frame has {} x {} pixels", frame.width, frame.height);
  }
}

CropGeometry crop_geometry(const HandBox& box, double rescale) {
  if (!std::isfinite(rescale) || rescale <= 0) {
    throw fail(ErrorCode::kUsage, "rescale factor {}: expected a finite number above 0", rescale);
  }
  if (!finite(box)) throw fail(ErrorCode::kUsage, "hand box {}: expected four finite numbers", text_of(box));
  const auto x1 = static_cast<float>(box.x1);
  const auto y1 = static_cast<float>(box.y1);
  const auto x2 = static_cast<float>(box.x2);
  const auto y2 = static_cast<float>(box.y2);
  CropGeometry out;
  out.center_x = (x1 + x2) / 2;
  out.center_y = (y1 + y2) / 2;
  // By 200 and back: two roundings that the original makes.
  const auto rho = static_cast<float>(rescale);
  const float w = rho * (x2 - x1) / 200.0F * 200.0F;
  const float h = rho * (y2 - y1) / 200.0F * 200.0F;
  constexpr double kAspect = 256.0 / 192.0;
  if (static_cast<double>(h / w) < kAspect) {
    out.box_size = std::max({w * 256.0 / 192.0, static_cast<double>(h), static_cast<double>(w)});
  } else {
    out.box_size = std::max({h * 192.0 / 256.0, static_cast<double>(w), static_cast<double>(h)});
  }
  if (!(out.box_size <= kMaxSquareSide)) {
    throw fail(ErrorCode::kLimit, "hand box {} times {}: a square of {} pixels, at most {} are supported",
               text_of(box), rescale, out.box_size, kMaxSquareSide);
  }
  return out;
}

Crop crop(CropKind kind, const Image& frame, const CropGeometry& geometry, bool is_right, bool full_square) {
  return kind == CropKind::kOpenCV ? crop_opencv(frame, geometry, is_right, full_square)
                                   : crop_pillow(frame, geometry, is_right, full_square);
}

void normalise(const Crop& crop, float* chw, const PixelNormalisation& statistics) {
  const std::int64_t pixels = std::int64_t{crop.rows} * crop.columns;
  for (int c = 0; c < 3; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const auto mean = static_cast<float>(255.0 * statistics.mean[channel]);
    const auto deviation = static_cast<float>(255.0 * statistics.std[channel]);
    float* out = chw + c * pixels;
    if (crop.is_u8()) {
      std::array<float, 256> table;
      for (int u = 0; u < 256; ++u)
        table[static_cast<std::size_t>(u)] = (static_cast<float>(u) - mean) / deviation;
      for (std::int64_t i = 0; i < pixels; ++i) out[i] = table[crop.u8[3 * i + c]];
    } else {
      for (std::int64_t i = 0; i < pixels; ++i) out[i] = (crop.f32[3 * i + c] - mean) / deviation;
    }
  }
}

void to_chw_u8(const Crop& crop, std::uint8_t* chw) {
  assert(crop.is_u8());
  const std::int64_t pixels = std::int64_t{crop.rows} * crop.columns;
  for (int c = 0; c < 3; ++c) {
    for (std::int64_t i = 0; i < pixels; ++i) chw[c * pixels + i] = crop.u8[3 * i + c];
  }
}

void denormalise_exact(const float* chw, std::int64_t rows, std::int64_t columns, std::uint8_t* out) {
  const std::int64_t pixels = rows * columns;
  for (std::int64_t i = 0; i < 3 * pixels; ++i) {
    const auto c = static_cast<int>(i / pixels);
    const double pixel = std::round(static_cast<double>(chw[i]) * std_of(c) + mean_of(c));
    const bool in_range = pixel >= 0 && pixel <= 255;  // false for NaN
    const int u = in_range ? static_cast<int>(pixel) : 0;
    if (!in_range || (chw[i] != normalised()[c][u] && chw[i] != normalised_in_double()[c][u])) {
      throw Error(
          ErrorCode::kMismatch,
          fmt::format("normalised input, channel {} row {} column {}: {} is not the image of an 8-bit pixel",
                      c, i % pixels / columns, i % columns, chw[i]),
          "this path takes unblurred 8-bit crops; pass the 8-bit pixels themselves or choose the float path");
    }
    out[i] = static_cast<std::uint8_t>(u);
  }
}

Image to_image(const Crop& crop) {
  Image image(crop.columns, crop.rows);
  if (crop.is_u8()) {
    image.rgb = crop.u8;
  } else {
    std::transform(crop.f32.begin(), crop.f32.end(), image.rgb.begin(), [](float v) {
      return static_cast<std::uint8_t>(std::lround(std::clamp(v, 0.0F, 255.0F)));
    });
  }
  return image;
}

}  // namespace sinew

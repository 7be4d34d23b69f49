// Pictures and oracles for the tests of this room.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "tensor/image.h"

namespace sinew::test_images {

inline Image noise(int width, int height, unsigned seed = 1) {
  Image image(width, height);
  std::mt19937 random(seed);
  for (auto& v : image.rgb) v = static_cast<std::uint8_t>(random());
  return image;
}

inline Image mirrored(const Image& image) {
  Image out(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x)
      std::memcpy(out.pixel(image.width - 1 - x, y), image.pixel(x, y), 3);
  }
  return out;
}

/// A [rows, columns, 3] U8 tensor of a golden file, optionally BGR, as a picture.
inline Image picture(const Checkpoint& file, const std::string& name, bool bgr = false) {
  const TensorView& view = file.get(name);
  Image image(static_cast<int>(view.shape[1]), static_cast<int>(view.shape[0]));
  std::memcpy(image.rgb.data(), view.data, image.rgb.size());
  for (std::size_t i = 0; bgr && i < image.rgb.size(); i += 3) std::swap(image.rgb[i], image.rgb[i + 2]);
  return image;
}

inline std::vector<double> numbers(const Checkpoint& file, const std::string& name) {
  const TensorView& view = file.get(name);
  std::vector<double> out;
  out.reserve(view.shape.count());
  for (std::int64_t i = 0; i < view.shape.count(); ++i) out.push_back(element(view, i));
  return out;
}

/// Pillow's BILINEAR resize written down from its description (spec hamer 4) without any care for speed: the
/// oracle. One axis of one line at a time.
inline std::vector<std::uint8_t> naive_axis(const std::vector<std::uint8_t>& line, float s, float e,
                                            int outputs) {
  const int n = static_cast<int>(line.size());
  const double scale = static_cast<double>(e - s) / outputs;
  const double fs = scale > 1 ? scale : 1;
  std::vector<std::uint8_t> out;
  for (int k = 0; k < outputs; ++k) {
    const double c = s + (k + 0.5) * scale;
    const int lo = std::max(0, static_cast<int>(std::trunc(c - fs + 0.5)));
    const int hi = std::min(n, static_cast<int>(std::trunc(c + fs + 0.5)));
    std::vector<double> w;
    double total = 0;
    for (int x = lo; x < hi; ++x) {
      const double t = std::fabs((x - lo + lo - c + 0.5) * (1.0 / fs));
      w.push_back(t < 1 ? 1 - t : 0);
      total += w.back();
    }
    std::int64_t sum = 1 << 21;
    for (int x = lo; x < hi; ++x) {
      const double share = total != 0 ? w[x - lo] / total : w[x - lo];
      sum += static_cast<std::int64_t>(std::trunc(0.5 + share * 4194304.0)) * line[x];
    }
    sum >>= 22;
    out.push_back(static_cast<std::uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum));
  }
  return out;
}

inline Image naive_resize(const Image& source, int width, int height, float x0, float y0, float x1,
                          float y1) {
  Image wide(width, source.height);
  for (int y = 0; y < source.height; ++y) {
    for (int c = 0; c < 3; ++c) {
      std::vector<std::uint8_t> line(source.width);
      for (int x = 0; x < source.width; ++x) line[x] = source.pixel(x, y)[c];
      const auto out = naive_axis(line, x0, x1, width);
      for (int x = 0; x < width; ++x) wide.pixel(x, y)[c] = out[x];
    }
  }
  Image result(width, height);
  for (int x = 0; x < width; ++x) {
    for (int c = 0; c < 3; ++c) {
      std::vector<std::uint8_t> line(source.height);
      for (int y = 0; y < source.height; ++y) line[y] = wide.pixel(x, y)[c];
      const auto out = naive_axis(line, y0, y1, height);
      for (int y = 0; y < height; ++y) result.pixel(x, y)[c] = out[y];
    }
  }
  return result;
}

}  // namespace sinew::test_images

#include "hand/raster_tile.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "hand/raster_shade.h"

namespace sinew::raster {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kReach = 191;  // of the samples, from the pixel's centre

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// Columns of a row: first..last have samples inside, of those first_whole..last_whole have all.
struct Span {
  int first, last, first_whole, last_whole;
};

}  // namespace

/// What a triangle needs per pixel; edge values and steps are exact.
struct Tile::Setup {
  std::array<std::int64_t, 3> value;            // at the centre of the tile's first pixel
  std::array<std::int64_t, 3> step_x, step_y;   // per pixel
  std::array<std::array<Longs, 4>, 3> offset;   // of the samples
  std::array<std::int64_t, 3> lowest, highest;  // of the offsets
  Vec3 per_step;                                // 1 / step_x
  double inverse_z0, slope_x, slope_y;          // at vertex 0, per unit
  std::int64_t x0, y0;                          // of vertex 0
  float nearest, farthest;                      // inverse z of the vertices
  std::array<Floats, 2> z_offset;               // of the samples
  float reach = 0;                              // the largest z_offset
  Box box;

  Setup(const Triangle& t, const Tile& tile, const Box& where) : box(where) {
    Vec3 along_x;
    Vec3 along_y;
    double area = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const Edge edge = edge_of(t, i);
      if (i == 0) area = static_cast<double>(edge.at(t.x[0], t.y[0]));
      // Inside is >= 0; a tie counts for the triangle below the edge only (dx > 0; dx = 0 has no ties).
      value[i] = edge.at(tile.first_x_, tile.first_y_) - (edge.dx > 0 ? 0 : 1);
      step_x[i] = -edge.dy * kUnits;
      step_y[i] = edge.dx * kUnits;
      per_step[i] = step_x[i] == 0 ? 0 : 1 / static_cast<double>(step_x[i]);
      lowest[i] = highest[i] = edge.dx * kSamples[0][1] - edge.dy * kSamples[0][0];
      for (std::size_t s = 0; s < kSampleCount; ++s) {
        const std::int64_t value_there = edge.dx * kSamples[s][1] - edge.dy * kSamples[s][0];
        offset[i][s / 2][s % 2] = value_there;
        lowest[i] = std::min(lowest[i], value_there);
        highest[i] = std::max(highest[i], value_there);
      }
      along_x[i] = static_cast<double>(-edge.dy) * t.inverse_z[i];
      along_y[i] = static_cast<double>(edge.dx) * t.inverse_z[i];
    }
    inverse_z0 = t.inverse_z[0];
    slope_x = sum(along_x[0], along_x[1], along_x[2]) / area;
    slope_y = sum(along_y[0], along_y[1], along_y[2]) / area;
    x0 = t.x[0];
    y0 = t.y[0];
    const auto [least, most] = std::ranges::minmax(t.inverse_z);
    farthest = least;
    nearest = most;
    for (std::size_t s = 0; s < kSampleCount; ++s) {
      z_offset[s / 4][s % 4] = static_cast<float>(slope_x * kSamples[s][0] + slope_y * kSamples[s][1]);
      reach = std::max(reach, z_offset[s / 4][s % 4]);
    }
  }

  std::array<std::int64_t, 3> values(int row, int column) const {
    std::array<std::int64_t, 3> out;
    for (std::size_t i = 0; i < 3; ++i) out[i] = value[i] + step_y[i] * row + step_x[i] * column;
    return out;
  }
  void step(std::array<std::int64_t, 3>& value_here) const {
    for (std::size_t i = 0; i < 3; ++i) value_here[i] += step_x[i];
  }
  bool is_whole(const std::array<std::int64_t, 3>& centre) const {
    return ((centre[0] + lowest[0]) | (centre[1] + lowest[1]) | (centre[2] + lowest[2])) >= 0;
  }
  Span span(int row) const;
  /// The lanes of a half of the samples that lie inside, given the values at the pixel's centre.
  Words inside(const std::array<std::int64_t, 3>& centre, std::size_t half) const {
    std::array<Longs, 2> signs{};
    for (std::size_t i = 0; i < 3; ++i) {
      const Longs here = {centre[i], centre[i]};
      signs[0] |= here + offset[i][2 * half];
      signs[1] |= here + offset[i][2 * half + 1];
    }
    return not_negative(signs[0], signs[1]);
  }
};

/// Where the edge values cross zero, in double: 1e-6 of a pixel is far more than its rounding (values below
/// 2^50, results below 64 pixels) and only ever moves a pixel from whole to sampled, which gives the same.
Span Tile::Setup::span(int row) const {
  constexpr double kMargin = 1e-6;
  double first = box.first_column;
  double last = box.last_column;
  double first_whole = box.first_column;
  double last_whole = box.last_column;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t here = value[i] + step_y[i] * row;
    const auto outer = static_cast<double>(here + highest[i]);
    const auto inner = static_cast<double>(here + lowest[i]);
    if (step_x[i] > 0) {
      first = std::max(first, -outer * per_step[i] - kMargin);
      first_whole = std::max(first_whole, -inner * per_step[i] + kMargin);
    } else if (step_x[i] < 0) {
      last = std::min(last, -outer * per_step[i] + kMargin);
      last_whole = std::min(last_whole, -inner * per_step[i] - kMargin);
    } else {
      if (outer < 0) return {0, -1, 0, -1};
      if (inner < 0) last_whole = -1;
    }
  }
  Span out;
  // Within -1..kTile, where truncation rounds either way; std::ceil is slow without SSE4.1.
  const auto ceiling = [](double v) { return kTile - static_cast<int>(kTile - std::min<double>(v, kTile)); };
  const auto floor = [](double v) { return static_cast<int>(std::max(v, -1.0) + 1) - 1; };
  out.first = ceiling(first);
  out.last = floor(last);
  out.first_whole = ceiling(first_whole);
  out.last_whole = floor(last_whole);
  // Without a whole pixel all are edge pixels.
  if (out.first_whole > out.last_whole) out.first_whole = out.last + 1;
  out.last_whole = std::max(out.last_whole, out.first_whole - 1);
  return out;
}

inline float Tile::Samples::farthest() const {
  const Floats least = smaller(inverse_z[0], inverse_z[1]);
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

inline float Tile::Samples::nearest() const {
  const Floats most = larger(inverse_z[0], inverse_z[1]);
  return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
}

inline std::int32_t Tile::Samples::only() const {
  const std::int32_t first = number[0][0];
  const Words expected = {first, first, first, first};
  const auto different = reinterpret_cast<Longs>((number[0] ^ expected) | (number[1] ^ expected));
  return (different[0] | different[1]) == 0 ? first : kNone;
}

void Tile::start(const Frame& frame, int x, int y) {
  x_ = x;
  y_ = y;
  columns_ = std::min(kTile, frame.width - x);
  rows_ = std::min(kTile, frame.height - y);
  first_x_ = std::int64_t{kUnits} * x + kUnits / 2 - std::int64_t{kUnits / 2} * frame.width;
  first_y_ = std::int64_t{kUnits} * y + kUnits / 2 - std::int64_t{kUnits / 2} * frame.height;
  Samples empty;
  empty.inverse_z.fill(Floats{});
  empty.number.fill(Words{kNone, kNone, kNone, kNone});
  pixels_.fill(empty);
  farthest_.fill(0);
}

Tile::Box Tile::box_of(const Triangle& t) const {
  const auto first = [](std::int64_t low, std::int64_t origin) {
    return static_cast<int>(
        std::clamp<std::int64_t>(floor_div(low - kReach - origin + kUnits - 1, kUnits), 0, kTile));
  };
  const auto last = [](std::int64_t high, std::int64_t origin, int count) {
    return static_cast<int>(
        std::clamp<std::int64_t>(floor_div(high + kReach - origin, kUnits), -1, count - 1));
  };
  const auto [left, right] = std::ranges::minmax(t.x);
  const auto [top, bottom] = std::ranges::minmax(t.y);
  return {first(left, first_x_), last(right, first_x_, columns_), first(top, first_y_),
          last(bottom, first_y_, rows_)};
}

bool Tile::hides(const Box& box, float inverse_z) const {
  for (int row = box.first_row; row <= box.last_row; ++row) {
    const float* farthest = &farthest_[static_cast<std::size_t>(row) * kTile];
    for (int column = box.first_column; column <= box.last_column; ++column) {
      if (farthest[column] < inverse_z) return false;
    }
  }
  return true;
}

void Tile::draw(const Triangle& triangle, std::int32_t number) {
  const Box box = box_of(triangle);
  // What lies behind something is half of a closed mesh and more of a fist. 1e-6: samples are interpolated in
  // float and may come out nearer than the nearest vertex by their rounding.
  if (hides(box, std::ranges::max(triangle.inverse_z) * (1 + 1e-6F))) return;
  const Setup setup(triangle, *this, box);
  for (int row = box.first_row; row <= box.last_row; ++row) draw_row(setup, row, number);
}

void Tile::draw_row(const Setup& setup, int row, std::int32_t number) {
  const Span span = setup.span(row);
  if (span.first > span.last) return;
  const double row_z = setup.inverse_z0 + setup.slope_y * static_cast<double>(centre_y(row) - setup.y0);
  // Counted in units from vertex 0, whole numbers: mirrored pixels get the same sums.
  auto right = static_cast<double>(centre_x(span.first) - setup.x0);
  const Words numbers = {number, number, number, number};
  std::size_t at = static_cast<std::size_t>(row) * kTile + static_cast<std::size_t>(span.first);
  const auto put = [&](std::size_t half, Floats here, Words mask) {
    Samples& pixel = pixels_[at];
    const Words visible = (here > pixel.inverse_z[half]) & mask;
    pixel.inverse_z[half] = choose(visible, here, pixel.inverse_z[half]);
    pixel.number[half] = (visible & numbers) | (~visible & pixel.number[half]);
  };
  const auto edge_pixels = [&](int from, int to) {
    std::array<std::int64_t, 3> value = setup.values(row, from);
    for (int column = from; column <= to; ++column, ++at, right += kUnits, setup.step(value)) {
      const auto centre = static_cast<float>(row_z + setup.slope_x * right);
      // Triangles that are seen edge on are steep: no sample leaves the depths of the vertices. Pixels that
      // the margin of span() put here are treated as whole.
      const bool whole = setup.is_whole(value);
      const float low = whole ? 0 : setup.farthest;
      const float high = whole ? kInfinity : setup.nearest;
      if (std::min(centre + setup.reach, high) <= farthest_[at]) continue;
      for (std::size_t half = 0; half < 2; ++half) {
        const Floats here = smaller(larger(all(centre) + setup.z_offset[half], all(low)), all(high));
        put(half, here, setup.inside(value, half));
      }
      farthest_[at] = pixels_[at].farthest();
    }
  };
  edge_pixels(span.first, span.first_whole - 1);
  for (int column = span.first_whole; column <= span.last_whole; ++column, ++at, right += kUnits) {
    const auto centre = static_cast<float>(row_z + setup.slope_x * right);
    if (centre + setup.reach <= farthest_[at]) continue;
    for (std::size_t half = 0; half < 2; ++half) {
      put(half, all(centre) + setup.z_offset[half], Words{-1, -1, -1, -1});
    }
    farthest_[at] = pixels_[at].farthest();
  }
  edge_pixels(std::max(span.first_whole, span.last_whole + 1), span.last);
}

std::size_t Tile::index(const Layer& layer, int row, int column) const {
  return static_cast<std::size_t>(y_ + row) * static_cast<std::size_t>(layer.width) +
         static_cast<std::size_t>(x_ + column);
}

void Tile::resolve(std::span<const Shader> shaders, Layer& layer) const {
  for (int row = 0; row < rows_; ++row) {
    for (int column = 0; column < columns_;) {
      if (at(row, column).only() != kNone) {
        column = resolve_run(shaders, row, column, layer);
      } else {
        resolve_mixed(shaders, row, column++, layer);
      }
    }
  }
}

int Tile::resolve_run(std::span<const Shader> shaders, int row, int column, Layer& layer) const {
  const std::int32_t number = at(row, column).only();
  int end = column + 1;
  while (end < columns_ && at(row, end).only() == number) ++end;
  ShadeRow shades;
  shaders[static_cast<std::size_t>(number)].row(centre_x(column), centre_y(row), end - column, shades);
  std::size_t out = index(layer, row, column);
  for (int i = column; i < end; ++i, ++out) {
    const auto lane = static_cast<std::size_t>(i - column);
    for (std::size_t k = 0; k < 3; ++k) {
      layer.rgba[4 * out + k] = static_cast<std::uint8_t>((shades[k][lane / 4][lane % 4] + 128) / 256);
    }
    layer.rgba[4 * out + 3] = 255;
    layer.depth[out] = 1 / at(row, i).nearest();
  }
  return end;
}

void Tile::resolve_mixed(std::span<const Shader> shaders, int row, int column, Layer& layer) const {
  const Samples& pixel = at(row, column);
  std::array<std::int32_t, kSampleCount> numbers;
  std::memcpy(numbers.data(), pixel.number.data(), sizeof(numbers));
  Shade total{};
  int covered = 0;
  for (std::size_t first = 0; first < kSampleCount; ++first) {
    const std::int32_t number = numbers[first];
    if (number == kNone) continue;
    // The middle of its samples lies in the triangle; the pixel's centre may not.
    int count = 0;
    int x = 0;
    int y = 0;
    for (std::size_t s = first; s < kSampleCount; ++s) {
      if (numbers[s] != number) continue;
      numbers[s] = kNone;
      ++count;
      x += kSamples[s][0];
      y += kSamples[s][1];
    }
    const Shade own =
        shaders[static_cast<std::size_t>(number)].at(centre_x(column) + x / count, centre_y(row) + y / count);
    for (std::size_t k = 0; k < 3; ++k) total[k] += count * own[k];
    covered += count;
  }
  if (covered == 0) return;
  const std::size_t out = index(layer, row, column);
  for (std::size_t k = 0; k < 3; ++k) {
    layer.rgba[4 * out + k] = static_cast<std::uint8_t>((total[k] + 128 * covered) / (256 * covered));
  }
  layer.rgba[4 * out + 3] = static_cast<std::uint8_t>((255 * covered + kSampleCount / 2) / kSampleCount);
  layer.depth[out] = 1 / pixel.nearest();
}

}  // namespace sinew::raster

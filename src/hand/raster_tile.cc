#include "hand/raster_tile.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "hand/raster_shade.h"

namespace sinew::raster {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

constexpr unsigned kAllSamples = (1U << kSampleCount) - 1;

/// Of a set of samples, in units from the pixel's centre, towards zero.
struct Middle {
  int count = 0, x = 0, y = 0;
};

constexpr std::array<Middle, kAllSamples + 1> middles() {
  std::array<Middle, kAllSamples + 1> out;
  for (unsigned set = 1; set <= kAllSamples; ++set) {
    Middle& middle = out[set];
    for (std::size_t s = 0; s < kSampleCount; ++s) {
      if ((set >> s & 1U) == 0) continue;
      ++middle.count;
      middle.x += kSamples[s][0];
      middle.y += kSamples[s][1];
    }
    middle.x /= middle.count;
    middle.y /= middle.count;
  }
  return out;
}
constexpr std::array<Middle, kAllSamples + 1> kMiddles = middles();

/// Columns of a row: first..last have samples inside, of those first_whole..last_whole have all.
struct Span {
  int first, last, first_whole, last_whole;
};

}  // namespace

Tile::Depth::Depth(const Triangle& t)
    : at_vertex(t.inverse_z[0]), slope_x(0), slope_y(0), x0(t.x[0]), y0(t.y[0]), nearest(0), farthest(0) {
  Vec3 along_x;
  Vec3 along_y;
  for (std::size_t i = 0; i < 3; ++i) {
    const Edge edge = edge_of(t, i);
    along_x[i] = static_cast<double>(-edge.dy) * t.inverse_z[i];
    along_y[i] = static_cast<double>(edge.dx) * t.inverse_z[i];
  }
  const double per_area = 1 / static_cast<double>(edge_of(t, 0).at(t.x[0], t.y[0]));
  slope_x = sum(along_x[0], along_x[1], along_x[2]) * per_area;
  slope_y = sum(along_y[0], along_y[1], along_y[2]) * per_area;
  const auto [least, most] = std::ranges::minmax(t.inverse_z);
  farthest = least;
  nearest = most;
  for (std::size_t s = 0; s < kSampleCount; ++s) {
    offset[s / 4][s % 4] = static_cast<float>(slope_x * kSamples[s][0] + slope_y * kSamples[s][1]);
    reach = std::max(reach, offset[s / 4][s % 4]);
  }
}

/// What a triangle needs per pixel; edge values and steps are exact.
struct Tile::Setup {
  std::array<std::int64_t, 3> value;            // at the centre of the tile's first pixel
  std::array<std::int64_t, 3> step_x, step_y;   // per pixel
  std::array<std::array<Longs, 4>, 3> offset;   // of the samples
  std::array<std::int64_t, 3> lowest, highest;  // of the offsets
  Vec3 per_step;                                // 1 / step_x
  Depth depth;
  Box box;

  Setup(const Triangle& t, const Tile& tile, const Box& where) : depth(t), box(where) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Edge edge = edge_of(t, i);
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

inline unsigned Tile::Samples::samples_of(std::int32_t triangle) const {
  const Words expected = {triangle, triangle, triangle, triangle};
  return lanes_of(number[0] == expected) | (lanes_of(number[1] == expected) << 4);
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
  if (is_small(triangle)) {
    draw_small(triangle, box, number);
    return;
  }
  const Setup setup(triangle, *this, box);
  for (int row = box.first_row; row <= box.last_row; ++row) draw_row(setup, row, number);
}

void Tile::draw_row(const Setup& setup, int row, std::int32_t number) {
  const Span span = setup.span(row);
  if (span.first > span.last) return;
  const Depth& depth = setup.depth;
  const double row_z = depth.at_row(centre_y(row));
  // Counted in units from vertex 0, whole numbers: mirrored pixels get the same sums.
  auto right = static_cast<double>(centre_x(span.first) - depth.x0);
  const Words numbers = {number, number, number, number};
  std::size_t at = static_cast<std::size_t>(row) * kTile + static_cast<std::size_t>(span.first);
  const auto edge_pixels = [&](int from, int to) {
    std::array<std::int64_t, 3> value = setup.values(row, from);
    for (int column = from; column <= to; ++column, ++at, right += kUnits, setup.step(value)) {
      const auto centre = static_cast<float>(row_z + depth.slope_x * right);
      // Triangles that are seen edge on are steep: no sample leaves the depths of the vertices. Pixels that
      // the margin of span() put here are treated as whole.
      const bool whole = setup.is_whole(value);
      const float low = whole ? 0 : depth.farthest;
      const float high = whole ? kInfinity : depth.nearest;
      if (std::min(centre + depth.reach, high) <= farthest_[at]) continue;
      for (std::size_t half = 0; half < 2; ++half) {
        const Floats here = smaller(larger(all(centre) + depth.offset[half], all(low)), all(high));
        put(at, half, here, setup.inside(value, half), numbers);
      }
      farthest_[at] = pixels_[at].farthest();
    }
  };
  edge_pixels(span.first, span.first_whole - 1);
  for (int column = span.first_whole; column <= span.last_whole; ++column, ++at, right += kUnits) {
    const auto centre = static_cast<float>(row_z + depth.slope_x * right);
    if (centre + depth.reach > farthest_[at]) fill(at, depth, centre, numbers);
  }
  edge_pixels(std::max(span.first_whole, span.last_whole + 1), span.last);
}

std::size_t Tile::index(const Layer& layer, int row, int column) const {
  return static_cast<std::size_t>(y_ + row) * static_cast<std::size_t>(layer.width) +
         static_cast<std::size_t>(x_ + column);
}

/// One shading per triangle and pixel, four at a time whatever triangles they are of: in a hand of 300 rows
/// a face covers 20 pixels, and most of them show two or three faces.
struct Tile::Parts {
  /// Enough in a row that the long sums of lit() overlap; four by four, they took twice as long.
  static constexpr std::size_t kQueue = 64;
  struct Queue {
    std::array<std::array<Floats, kQueue / 4>, 3> values, colours;
    std::array<int, kQueue> column, count;
    std::size_t size = 0;
  };
  Queue lit, unlit;
  std::array<std::array<std::int32_t, 4>, kTile> total;  // shades, and samples
  int first = kTile, last = -1;                          // columns that have any

  void start() {
    total.fill({});
    first = kTile;
    last = -1;
  }
  void add(const Shader& shader, int column, int count, std::int64_t x, std::int64_t y) {
    Queue& queue = shader.is_lit() ? lit : unlit;
    const Vec3f value = shader.at(x, y);
    for (std::size_t k = 0; k < 3; ++k) {
      queue.values[k][queue.size / 4][queue.size % 4] = value[k];
      queue.colours[k][queue.size / 4][queue.size % 4] = shader.colour()[k];
    }
    queue.column[queue.size] = column;
    queue.count[queue.size] = count;
    if (++queue.size == kQueue) shade(queue);
  }
  void finish() {
    shade(lit);
    shade(unlit);
  }

 private:
  void shade(Queue& queue) {
    for (std::size_t four = 0; 4 * four < queue.size; ++four) {
      const std::array<Floats, 3> values = {queue.values[0][four], queue.values[1][four],
                                            queue.values[2][four]};
      const Shades shades =
          &queue == &lit
              ? raster::lit(values, {queue.colours[0][four], queue.colours[1][four], queue.colours[2][four]})
              : raster::unlit(values);
      for (std::size_t i = 4 * four; i < std::min(4 * four + 4, queue.size); ++i) {
        auto& sum = total[static_cast<std::size_t>(queue.column[i])];
        for (std::size_t k = 0; k < 3; ++k) sum[k] += queue.count[i] * shades[k][i % 4];
        sum[3] += queue.count[i];
      }
    }
    queue.size = 0;
  }
};

void Tile::resolve(std::span<const Shader> shaders, Layer& layer) const {
  Parts parts{};
  for (int row = 0; row < rows_; ++row) {
    parts.start();
    gather(shaders, row, parts);
    write(row, parts, layer);
  }
}

void Tile::gather(std::span<const Shader> shaders, int row, Parts& parts) const {
  for (int column = 0; column < columns_; ++column) {
    const Samples& pixel = at(row, column);
    unsigned left = kAllSamples & ~pixel.samples_of(kNone);
    if (left == 0) continue;
    std::array<std::int32_t, kSampleCount> numbers;
    std::memcpy(numbers.data(), pixel.number.data(), sizeof(numbers));
    while (left != 0) {
      const std::int32_t number = numbers[static_cast<std::size_t>(std::countr_zero(left))];
      const unsigned own = pixel.samples_of(number);
      left &= ~own;
      // The middle of its samples lies in the triangle; the pixel's centre may not.
      const Middle& middle = kMiddles[own];
      parts.add(shaders[static_cast<std::size_t>(number)], column, middle.count, centre_x(column) + middle.x,
                centre_y(row) + middle.y);
    }
    parts.first = std::min(parts.first, column);
    parts.last = column;
  }
  parts.finish();
}

void Tile::write(int row, const Parts& parts, Layer& layer) const {
  for (int column = parts.first; column <= parts.last; ++column) {
    const auto& total = parts.total[static_cast<std::size_t>(column)];
    const int covered = total[3];
    if (covered == 0) continue;
    const std::size_t out = index(layer, row, column);
    for (std::size_t k = 0; k < 3; ++k) {
      layer.rgba[4 * out + k] = static_cast<std::uint8_t>((total[k] + 128 * covered) / (256 * covered));
    }
    layer.rgba[4 * out + 3] = static_cast<std::uint8_t>((255 * covered + kSampleCount / 2) / kSampleCount);
    layer.depth[out] = 1 / at(row, column).nearest();
  }
}

}  // namespace sinew::raster

// Inside the rasteriser: the light on a triangle.
#pragma once

#include <array>
#include <cstdint>

#include "hand/raster_triangle.h"
#include "hand/raster_vector.h"

namespace sinew::raster {

/// Value at a point is dx * (y - y0) - dy * (x - x0): twice the area to the edge, positive inside.
struct Edge {
  std::int64_t x0, y0, dx, dy;
  std::int64_t at(std::int64_t x, std::int64_t y) const { return dx * (y - y0) - dy * (x - x0); }
};
/// The edge opposite of vertex i.
inline Edge edge_of(const Triangle& t, std::size_t i) {
  const std::size_t from = (i + 1) % 3;
  const std::size_t to = (i + 2) % 3;
  return {t.x[from], t.y[from], std::int64_t{t.x[to]} - t.x[from], std::int64_t{t.y[to]} - t.y[from]};
}

/// The order of the additions makes sums that do not change when the last two are exchanged, as mirroring
/// does with vertices 1 and 2.
template <typename T>
T sum(T first, T second, T third) {
  return first + (second + third);
}

/// 8.8 bits: whole numbers, so that averages do not depend on the order of the samples.
using Shade = std::array<std::int32_t, 3>;
inline constexpr int kFullShade = 255 * 256;

/// Channels of up to 32 pixels.
inline constexpr int kShadeRow = 32;
using ShadeRow = std::array<std::array<Words, kShadeRow / 4>, 3>;

/// The light on one triangle: its normal, times a common factor, is linear on the screen.
class Shader {
 public:
  Shader(const Triangle& t, const Vec3f& colour);
  /// At a point of the triangle, in units.
  Shade at(std::int64_t x, std::int64_t y) const;
  /// At most kShadeRow pixels of one row, centres kUnits apart from (x, y) on.
  void row(std::int64_t x, std::int64_t y, int count, ShadeRow& out) const;

 private:
  std::array<float, 3> at_row(std::int64_t y) const;

  std::int64_t x0_, y0_;
  std::array<float, 3> at_vertex_, slope_x_, slope_y_;
  Vec3f colour_;
};

}  // namespace sinew::raster

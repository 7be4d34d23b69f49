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

/// The colours of up to four points, each with a triangle of its own.
using Shades = std::array<Words, 3>;

/// What a triangle shows: its normal or colour over z is linear on the screen.
class Shader {
 public:
  Shader(const Triangle& t, const Vec3f& colour);
  bool is_lit() const { return is_lit_; }
  /// At a point of the triangle, in units: the normal of any length, or the colour.
  Vec3f at(std::int64_t x, std::int64_t y) const;
  const Vec3f& colour() const { return colour_; }

 private:
  std::int64_t x0_, y0_;
  std::array<float, 3> at_vertex_, slope_x_, slope_y_;
  float z_slope_x_ = 0, z_slope_y_ = 0;  // of 1/z, relative to vertex 0
  bool is_lit_;
  Vec3f colour_;
};

// The original's polar angle of 30 degrees; its azimuths 0, 120, 240 turned by 90, so that the lights are
// their own mirror image: one from above, two from below left and right.
inline constexpr float kAmbient = 0.3F;
inline constexpr float kSin = 0.5F;
inline constexpr float kCos = 0.86602540F;
// A surface that faces the camera gets cos(30) of each light; together with the ambient one that shall be 1.
inline constexpr float kDiffuse = (1 - kAmbient) / (3 * kCos);

/// Of normals of any length.
inline Floats brightness(Floats x, Floats y, Floats z) {
  const Floats scale = kDiffuse * inverse_root(x * x + (y * y + z * z));
  const Floats facing = z * -kCos;
  const Floats side = x * (kSin * kCos);
  const Floats up = y * -kSin;
  const Floats low = facing - up * 0.5F;
  const Floats none = {};
  return kAmbient +
         scale * sum(larger(facing + up, none), larger(low - side, none), larger(low + side, none));
}

inline Words levels(Floats level) {
  const Floats inside = smaller(larger(level, all(0)), all(1));
  return __builtin_convertvector(inside * static_cast<float>(kFullShade) + 0.5F, Words);
}

/// The light on four surfaces that have these normals (x, y, z) and colours (red, green, blue).
inline Shades lit(const std::array<Floats, 3>& normals, const std::array<Floats, 3>& colours) {
  const Floats light = brightness(normals[0], normals[1], normals[2]);
  return {levels(light * colours[0]), levels(light * colours[1]), levels(light * colours[2])};
}

/// Colours as they are.
inline Shades unlit(const std::array<Floats, 3>& colours) {
  return {levels(colours[0]), levels(colours[1]), levels(colours[2])};
}

}  // namespace sinew::raster

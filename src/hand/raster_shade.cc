#include "hand/raster_shade.h"

#include <algorithm>

namespace sinew::raster {
namespace {

// The original's polar angle of 30 degrees; its azimuths 0, 120, 240 turned by 90, so that the lights are
// their own mirror image: one from above, two from below left and right.
constexpr float kAmbient = 0.3F;
constexpr float kSin = 0.5F;
constexpr float kCos = 0.86602540F;
// A surface that faces the camera gets cos(30) of each light; together with the ambient one that shall be 1.
constexpr float kDiffuse = (1 - kAmbient) / (3 * kCos);

/// Of normals of any length.
Floats brightness(Floats x, Floats y, Floats z) {
  const Floats scale = kDiffuse * inverse_root(x * x + (y * y + z * z));
  const Floats facing = z * -kCos;
  const Floats side = x * (kSin * kCos);
  const Floats up = y * -kSin;
  const Floats low = facing - up * 0.5F;
  const Floats none = {};
  return kAmbient +
         scale * sum(larger(facing + up, none), larger(low - side, none), larger(low + side, none));
}

Words levels(Floats light, float colour) {
  const Floats level = smaller(larger(light * colour, all(0)), all(1));
  return __builtin_convertvector(level * static_cast<float>(kFullShade) + 0.5F, Words);
}

}  // namespace

Shader::Shader(const Triangle& t, const Vec3f& colour) : x0_(t.x[0]), y0_(t.y[0]), colour_(colour) {
  Vec3 weights;  // 1/z relative to vertex 0, over the area: keeps the normal near length 1
  const double area = static_cast<double>(edge_of(t, 0).at(t.x[0], t.y[0])) * t.inverse_z[0];
  for (std::size_t i = 0; i < 3; ++i) weights[i] = t.inverse_z[i] / area;
  for (std::size_t k = 0; k < 3; ++k) {
    Vec3 along_x;
    Vec3 along_y;
    for (std::size_t i = 0; i < 3; ++i) {
      const Edge edge = edge_of(t, i);
      along_x[i] = static_cast<double>(-edge.dy) * weights[i] * t.normal[i][k];
      along_y[i] = static_cast<double>(edge.dx) * weights[i] * t.normal[i][k];
    }
    at_vertex_[k] = t.normal[0][k];
    slope_x_[k] = static_cast<float>(sum(along_x[0], along_x[1], along_x[2]));
    slope_y_[k] = static_cast<float>(sum(along_y[0], along_y[1], along_y[2]));
  }
}

std::array<float, 3> Shader::at_row(std::int64_t y) const {
  const auto down = static_cast<float>(y - y0_);
  std::array<float, 3> out;
  for (std::size_t k = 0; k < 3; ++k) out[k] = at_vertex_[k] + slope_y_[k] * down;
  return out;
}

Shade Shader::at(std::int64_t x, std::int64_t y) const {
  const auto right = static_cast<float>(x - x0_);
  std::array<float, 3> n = at_row(y);
  for (std::size_t k = 0; k < 3; ++k) n[k] += slope_x_[k] * right;
  const Floats light = brightness(all(n[0]), all(n[1]), all(n[2]));
  return {levels(light, colour_[0])[0], levels(light, colour_[1])[0], levels(light, colour_[2])[0]};
}

void Shader::row(std::int64_t x, std::int64_t y, int count, ShadeRow& out) const {
  const std::array<float, 3> start = at_row(y);
  // Whole numbers below 2^25, of which every second is used: exact in float.
  Floats right = static_cast<float>(x - x0_) + Floats{0, kUnits, 2 * kUnits, 3 * kUnits};
  for (int i = 0; i < count; i += 4, right += 4.0F * kUnits) {
    const Floats light = brightness(start[0] + slope_x_[0] * right, start[1] + slope_x_[1] * right,
                                    start[2] + slope_x_[2] * right);
    for (std::size_t k = 0; k < 3; ++k) out[k][static_cast<std::size_t>(i / 4)] = levels(light, colour_[k]);
  }
}

}  // namespace sinew::raster

#include "hand/raster_shade.h"

namespace sinew::raster {
Shader::Shader(const Triangle& t, const Vec3f& colour)
    : x0_(t.x[0]), y0_(t.y[0]), is_lit_(t.is_lit), colour_(colour) {
  Vec3 weights;  // 1/z relative to vertex 0, over the area: keeps the normal near length 1
  const double area = static_cast<double>(edge_of(t, 0).at(t.x[0], t.y[0])) * t.inverse_z[0];
  for (std::size_t i = 0; i < 3; ++i) weights[i] = t.inverse_z[i] / area;
  Vec3 edge_x;
  Vec3 edge_y;
  for (std::size_t i = 0; i < 3; ++i) {
    const Edge edge = edge_of(t, i);
    edge_x[i] = static_cast<double>(-edge.dy) * weights[i];
    edge_y[i] = static_cast<double>(edge.dx) * weights[i];
  }
  const auto slope = [&](const Vec3& edge, std::size_t k) {
    return static_cast<float>(sum(edge[0] * t.value[0][k], edge[1] * t.value[1][k], edge[2] * t.value[2][k]));
  };
  for (std::size_t k = 0; k < 3; ++k) {
    at_vertex_[k] = t.value[0][k];
    slope_x_[k] = slope(edge_x, k);
    slope_y_[k] = slope(edge_y, k);
  }
  z_slope_x_ = static_cast<float>(sum(edge_x[0], edge_x[1], edge_x[2]));
  z_slope_y_ = static_cast<float>(sum(edge_y[0], edge_y[1], edge_y[2]));
}

Vec3f Shader::at(std::int64_t x, std::int64_t y) const {
  // Whole numbers below 2^25, of which every second is used: exact in float.
  const auto right = static_cast<float>(x - x0_);
  const auto down = static_cast<float>(y - y0_);
  Vec3f out;
  for (std::size_t k = 0; k < 3; ++k) out[k] = at_vertex_[k] + slope_y_[k] * down + slope_x_[k] * right;
  if (is_lit_) return out;  // whose length does not matter
  const float inverse_z = 1 + z_slope_y_ * down + z_slope_x_ * right;
  for (float& v : out) v /= inverse_z;
  return out;
}
}  // namespace sinew::raster

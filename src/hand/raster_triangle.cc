#include "hand/raster_triangle.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sinew::raster {
namespace {

struct Corner {
  Vec3 position;  // camera axes
  Vec3f value;    // normal or colour
};

/// Half-space a x + b y + c z + d >= 0.
struct Plane {
  double a, b, c, d;
  double distance(const Vec3& p) const { return a * p[0] + b * p[1] + c * p[2] + d; }
};

constexpr std::size_t kMostCorners = 8;  // three and one more for each of five planes

struct Polygon {
  std::array<Corner, kMostCorners> corners;
  std::size_t size = 0;
  void add(const Corner& corner) { corners[size++] = corner; }
};

/// Where the way from `in` to `out` crosses the plane. Always asked in this direction, so that two faces that
/// share an edge get the same point to the last bit.
Corner crossing(const Corner& in, double in_distance, const Corner& out, double out_distance) {
  const double t = in_distance / (in_distance - out_distance);
  Corner cut;
  for (std::size_t i = 0; i < 3; ++i) {
    cut.position[i] = in.position[i] + t * (out.position[i] - in.position[i]);
    cut.value[i] = static_cast<float>(in.value[i] + t * (static_cast<double>(out.value[i]) - in.value[i]));
  }
  return cut;
}

/// Sutherland and Hodgman, one plane.
Polygon clip(const Polygon& polygon, const Plane& plane) {
  Polygon out;
  for (std::size_t i = 0; i < polygon.size; ++i) {
    const Corner& here = polygon.corners[i];
    const Corner& next = polygon.corners[(i + 1) % polygon.size];
    const double at_here = plane.distance(here.position);
    const double at_next = plane.distance(next.position);
    const bool keep = at_here >= 0;
    if (keep && out.size < kMostCorners) out.add(here);
    if (keep != (at_next >= 0) && out.size < kMostCorners) {
      out.add(keep ? crossing(here, at_here, next, at_next) : crossing(next, at_next, here, at_here));
    }
  }
  return out;
}

class Projector {
 public:
  Projector(const Frame& frame, std::uint32_t instance, bool is_lit, std::vector<Triangle>& out)
      : camera_(frame.camera),
        right_(frame.width / 2.0),
        bottom_(frame.height / 2.0),
        shift_x_(camera_.cx - right_),
        shift_y_(camera_.cy - bottom_),
        instance_(instance),
        is_lit_(is_lit),
        out_(out) {}

  void face(const std::array<Corner, 3>& corners) {
    if (is_outside(corners)) return;
    Polygon polygon;
    for (const Corner& corner : corners) polygon.add(corner);
    const bool whole = std::ranges::all_of(corners, [&](const Corner& c) { return is_safe(c.position); });
    if (!whole) {
      for (const Plane& plane : planes()) polygon = clip(polygon, plane);
    }
    for (std::size_t i = 2; i < polygon.size; ++i) {
      triangle(polygon.corners[0], polygon.corners[i - 1], polygon.corners[i]);
    }
  }

 private:
  /// Pixels from the middle of the picture.
  Vec2 screen(const Vec3& p) const {
    return {camera_.fx * p[0] / p[2] + shift_x_, camera_.fy * p[1] / p[2] + shift_y_};
  }
  bool is_safe(const Vec3& p) const {
    if (p[2] < camera_.near) return false;
    const Vec2 s = screen(p);
    return std::abs(s[0]) <= kGuardPixels && std::abs(s[1]) <= kGuardPixels;
  }
  /// All corners on the outer side of one plane of the view (without division: z may be anything).
  bool is_outside(const std::array<Corner, 3>& corners) const {
    const auto all = [&](auto&& outer) {
      return std::ranges::all_of(corners, [&](const Corner& c) { return outer(c.position); });
    };
    return all([&](const Vec3& p) { return p[2] < camera_.near; }) ||
           all([&](const Vec3& p) { return camera_.fx * p[0] + (shift_x_ + right_) * p[2] < 0; }) ||
           all([&](const Vec3& p) { return camera_.fx * p[0] + (shift_x_ - right_) * p[2] > 0; }) ||
           all([&](const Vec3& p) { return camera_.fy * p[1] + (shift_y_ + bottom_) * p[2] < 0; }) ||
           all([&](const Vec3& p) { return camera_.fy * p[1] + (shift_y_ - bottom_) * p[2] > 0; });
  }
  std::array<Plane, 5> planes() const {
    return {{{0, 0, 1, -camera_.near},
             {camera_.fx, 0, kGuardPixels + shift_x_, 0},
             {-camera_.fx, 0, kGuardPixels - shift_x_, 0},
             {0, camera_.fy, kGuardPixels + shift_y_, 0},
             {0, -camera_.fy, kGuardPixels - shift_y_, 0}}};
  }
  void triangle(const Corner& a, const Corner& b, const Corner& c);

  PinholeCamera camera_;
  double right_, bottom_;     // of the picture, from its middle
  double shift_x_, shift_y_;  // of the principal point, from the middle of the picture
  std::uint32_t instance_;
  bool is_lit_;
  std::vector<Triangle>& out_;
};

void Projector::triangle(const Corner& a, const Corner& b, const Corner& c) {
  const std::array<const Corner*, 3> corners = {&a, &b, &c};
  Triangle out;
  out.instance = instance_;
  out.is_lit = is_lit_;
  for (std::size_t i = 0; i < 3; ++i) {
    const Vec3& p = corners[i]->position;
    const Vec2 s = screen(p);
    // Clipping rounds: a corner may lie a little outside, but not by pixels. NaN fails, too.
    if (!(std::abs(s[0]) <= kGuardPixels + 1 && std::abs(s[1]) <= kGuardPixels + 1 && p[2] > 0)) return;
    // Rounded away from zero and counted from the middle, so that the mirrored point is the negated one.
    out.x[i] = 2 * static_cast<std::int32_t>(std::round(s[0] * kVertexLines));
    out.y[i] = 2 * static_cast<std::int32_t>(std::round(s[1] * kVertexLines));
    out.inverse_z[i] = static_cast<float>(1 / p[2]);
    out.value[i] = corners[i]->value;
  }
  const auto edge = [&](std::size_t from, std::size_t to) {
    return std::pair<std::int64_t, std::int64_t>{out.x[to] - out.x[from], out.y[to] - out.y[from]};
  };
  const auto [ux, uy] = edge(0, 1);
  const auto [vx, vy] = edge(0, 2);
  const std::int64_t area = ux * vy - uy * vx;
  if (area == 0) return;
  out.is_front = area < 0;
  if (out.is_front) {
    std::swap(out.x[1], out.x[2]);
    std::swap(out.y[1], out.y[2]);
    std::swap(out.inverse_z[1], out.inverse_z[2]);
    std::swap(out.value[1], out.value[2]);
  } else if (is_lit_) {  // seen from inside
    for (Vec3f& n : out.value) n = {-n[0], -n[1], -n[2]};
  }
  out_.push_back(out);
}

}  // namespace

bool is_small(const Triangle& triangle) {
  const auto [left, right] = std::ranges::minmax(triangle.x);
  const auto [top, bottom] = std::ranges::minmax(triangle.y);
  return right - left <= kSmallSide && bottom - top <= kSmallSide;
}

void project_faces(const MeshInstance& instance, std::uint32_t number, const Frame& frame,
                   std::vector<Triangle>& out) {
  const Mesh& mesh = *instance.mesh;
  const bool is_lit = instance.colours == nullptr;
  const std::vector<Vec3f> normals = is_lit ? vertex_normals(mesh) : std::vector<Vec3f>();
  const std::vector<Vec3f>& values = is_lit ? normals : *instance.colours;
  Projector projector(frame, number, is_lit, out);
  for (const Face& face : mesh.faces) {
    if (!is_sound(mesh, face)) continue;
    std::array<Corner, 3> corners;
    for (std::size_t i = 0; i < 3; ++i) {
      const Vec3f& v = mesh.vertices[face[i]];
      corners[i].position = {v[0] + instance.translation[0], v[1] + instance.translation[1],
                             v[2] + instance.translation[2]};
      corners[i].value = values[face[i]];
    }
    projector.face(corners);
  }
}

}  // namespace sinew::raster

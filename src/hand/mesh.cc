#include "hand/mesh.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace sinew {
namespace {

// In the order of a right hand (spec hamer 5.5).
constexpr std::array<Face, kWristFaces> kWrist = {{{92, 38, 234},
                                                   {234, 38, 239},
                                                   {38, 122, 239},
                                                   {239, 122, 279},
                                                   {122, 118, 279},
                                                   {279, 118, 215},
                                                   {118, 117, 215},
                                                   {215, 117, 214},
                                                   {117, 119, 214},
                                                   {214, 119, 121},
                                                   {119, 120, 121},
                                                   {121, 120, 78},
                                                   {120, 108, 78},
                                                   {78, 108, 79}}};

bool is_finite(const Vec3f& v) { return std::isfinite(v[0]) && std::isfinite(v[1]) && std::isfinite(v[2]); }

Vec3 difference(const Vec3f& a, const Vec3f& b) {
  return {static_cast<double>(a[0]) - b[0], static_cast<double>(a[1]) - b[1],
          static_cast<double>(a[2]) - b[2]};
}

/// Of the square of a float no double overflows, and mirrored input gives exactly mirrored output: every term
/// appears with its sign changed, never in another order.
Vec3 cross(const Vec3& u, const Vec3& v) {
  return {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
}

}  // namespace

bool is_sound(const Mesh& mesh, const Face& face) {
  return std::ranges::all_of(
      face, [&](std::uint32_t v) { return v < mesh.vertices.size() && is_finite(mesh.vertices[v]); });
}

std::vector<Vec3f> vertex_normals(const Mesh& mesh) {
  std::vector<Vec3> sums(mesh.vertices.size());
  for (const Face& face : mesh.faces) {
    if (!is_sound(mesh, face)) continue;
    const Vec3f& a = mesh.vertices[face[0]];
    // The cross product is twice the area long, which is the weight.
    const Vec3 normal = cross(difference(mesh.vertices[face[1]], a), difference(mesh.vertices[face[2]], a));
    for (const std::uint32_t v : face) {
      for (std::size_t i = 0; i < 3; ++i) sums[v][i] += normal[i];
    }
  }
  std::vector<Vec3f> out(sums.size());
  for (std::size_t v = 0; v < sums.size(); ++v) {
    const Vec3& n = sums[v];
    const double length = std::hypot(n[0], n[1], n[2]);
    // 1e-30: triangles of 1e-15 metres; below lies noise. Written so that a NaN fails, too.
    if (!(length > 1e-30) || !std::isfinite(length)) {
      out[v] = {0, 0, 1};
      continue;
    }
    out[v] = {static_cast<float>(n[0] / length), static_cast<float>(n[1] / length),
              static_cast<float>(n[2] / length)};
  }
  return out;
}

Mesh mirrored(const Mesh& mesh) {
  Mesh out = mesh;
  for (Vec3f& v : out.vertices) v[0] = -v[0];
  for (Face& face : out.faces) std::swap(face[1], face[2]);
  return out;
}

void close_wrist(Mesh& mesh, bool is_right) {
  if (mesh.vertices.size() != kManoVertices) {
    throw fail(ErrorCode::kMismatch, "closing the wrist: a mesh of {} vertices, expected MANO's {}",
               mesh.vertices.size(), kManoVertices);
  }
  for (Face face : kWrist) {
    if (!is_right) std::swap(face[1], face[2]);
    mesh.faces.push_back(face);
  }
}

Mesh translated(const Mesh& mesh, const Vec3& by) {
  Mesh out = mesh;
  for (Vec3f& v : out.vertices) {
    for (std::size_t i = 0; i < 3; ++i) v[i] = static_cast<float>(v[i] + by[i]);
  }
  return out;
}

Mesh in_opengl_axes(const Mesh& mesh) {
  Mesh out = mesh;
  for (Vec3f& v : out.vertices) v = {v[0], -v[1], -v[2]};
  return out;
}

Mesh turned_sideways(const Mesh& mesh) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Vec3f low{kInfinity, kInfinity, kInfinity};
  Vec3f high{-kInfinity, -kInfinity, -kInfinity};
  for (const Vec3f& v : mesh.vertices) {
    if (!is_finite(v)) continue;
    for (std::size_t i = 0; i < 3; ++i) {
      low[i] = std::min(low[i], v[i]);
      high[i] = std::max(high[i], v[i]);
    }
  }
  const double x = 0.5 * (static_cast<double>(low[0]) + high[0]);
  const double z = 0.5 * (static_cast<double>(low[2]) + high[2]);
  Mesh out = mesh;
  for (Vec3f& v : out.vertices) {
    if (is_finite(v)) v = {static_cast<float>(x + (v[2] - z)), v[1], static_cast<float>(z - (v[0] - x))};
  }
  return out;
}

}  // namespace sinew

// Meshes for tests and benchmarks: a sphere, a box, a hand of capsules.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "hand/mesh.h"
#include "hand/skeleton.h"

namespace sinew {

inline void append(Mesh& mesh, const Mesh& other) {
  const auto base = static_cast<std::uint32_t>(mesh.vertices.size());
  mesh.vertices.insert(mesh.vertices.end(), other.vertices.begin(), other.vertices.end());
  for (const Face& f : other.faces) mesh.faces.push_back({f[0] + base, f[1] + base, f[2] + base});
}

/// From a to b, tapered, closed, faces outwards: 2 * segments * (2 * rings - 1) of them. a == b with equal
/// radii is a sphere.
inline Mesh capsule_mesh(const Vec3& a, const Vec3& b, double radius_a, double radius_b, int segments,
                         int rings) {
  Vec3 axis = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
  const double length = std::hypot(axis[0], axis[1], axis[2]);
  axis = length > 0 ? Vec3{axis[0] / length, axis[1] / length, axis[2] / length} : Vec3{0, 0, 1};
  const Vec3 helper = std::abs(axis[0]) < 0.7 ? Vec3{1, 0, 0} : Vec3{0, 1, 0};
  const auto cross = [](const Vec3& u, const Vec3& v) {
    return Vec3{u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
  };
  Vec3 u = cross(axis, helper);
  const double norm = std::hypot(u[0], u[1], u[2]);
  u = {u[0] / norm, u[1] / norm, u[2] / norm};
  const Vec3 v = cross(axis, u);
  Mesh mesh;
  const auto add = [&](const Vec3& centre, double radius, double polar, double turn) {
    Vec3f p;
    for (std::size_t i = 0; i < 3; ++i) {
      p[i] = static_cast<float>(centre[i] +
                                radius * (std::cos(polar) * axis[i] +
                                          std::sin(polar) * (std::cos(turn) * u[i] + std::sin(turn) * v[i])));
    }
    mesh.vertices.push_back(p);
  };
  // Rings from the pole at b to the pole at a; the two equators are different rings unless it is a sphere.
  add(b, radius_b, 0, 0);
  const int count = 2 * rings;
  for (int ring = 1; ring < count; ++ring) {
    const double polar = std::numbers::pi * ring / count;
    for (int s = 0; s < segments; ++s) {
      add(ring <= rings ? b : a, ring <= rings ? radius_b : radius_a, polar,
          2 * std::numbers::pi * s / segments);
    }
  }
  add(a, radius_a, std::numbers::pi, 0);
  const auto at = [&](int ring, int s) {
    return static_cast<std::uint32_t>(1 + (ring - 1) * segments + s % segments);
  };
  const auto last = static_cast<std::uint32_t>(mesh.vertices.size() - 1);
  for (int s = 0; s < segments; ++s) {
    mesh.faces.push_back({0, at(1, s), at(1, s + 1)});
    for (int ring = 1; ring + 1 < count; ++ring) {
      mesh.faces.push_back({at(ring, s), at(ring + 1, s), at(ring + 1, s + 1)});
      mesh.faces.push_back({at(ring, s), at(ring + 1, s + 1), at(ring, s + 1)});
    }
    mesh.faces.push_back({at(count - 1, s), last, at(count - 1, s + 1)});
  }
  return mesh;
}

inline Mesh sphere_mesh(const Vec3& centre, double radius, int segments = 24, int rings = 8) {
  return capsule_mesh(centre, centre, radius, radius, segments, rings);
}

/// Axis-aligned, faces outwards.
inline Mesh box_mesh(const Vec3& low, const Vec3& high) {
  Mesh mesh;
  for (int i = 0; i < 8; ++i) {
    mesh.vertices.push_back({static_cast<float>((i & 1) != 0 ? high[0] : low[0]),
                             static_cast<float>((i & 2) != 0 ? high[1] : low[1]),
                             static_cast<float>((i & 4) != 0 ? high[2] : low[2])});
  }
  mesh.faces = {{0, 2, 1}, {1, 2, 3}, {4, 5, 6}, {5, 7, 6}, {0, 1, 4}, {1, 5, 4},
                {2, 6, 3}, {3, 6, 7}, {0, 4, 2}, {2, 4, 6}, {1, 3, 5}, {3, 7, 5}};
  return mesh;
}

/// A right hand of 20 capsules (1600 faces; MANO has 1538), palm towards the camera, fingers up, 20 cm long,
/// the root of its middle finger at the origin.
inline Mesh capsule_hand() {
  std::array<double, 9 * std::size_t{kHandJoints}> rotations{};
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    for (std::size_t i = 0; i < 3; ++i) rotations[9 * j + 4 * i] = 1;
  }
  const std::array<double, 9> towards_camera = {0, 0, 1, 1, 0, 0, 0, 1, 0};
  std::copy(towards_camera.begin(), towards_camera.end(), rotations.begin());
  const HandKeypoints points = pose_skeleton(builtin_skeleton(), rotations);
  constexpr std::size_t kMiddle = 9;
  Mesh mesh;
  for (std::size_t k = 1; k < kHandKeypoints; ++k) {
    const auto parent = static_cast<std::size_t>(kOpenPoseParents[k]);
    const std::size_t along = (k - 1) % 4;  // of the finger, from its root
    const double from = along == 0 ? 0.017 : 0.0105 - 0.001 * static_cast<double>(along);
    const double to = along == 0 ? 0.0125 : from - 0.001;
    append(mesh, capsule_mesh(points[parent], points[k], from, to, 8, 3));
  }
  return translated(mesh, {-points[kMiddle][0], -points[kMiddle][1], -points[kMiddle][2]});
}

}  // namespace sinew

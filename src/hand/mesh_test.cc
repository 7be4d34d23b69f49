#include "hand/mesh.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "hand/mesh_test_support.h"

namespace sinew {
namespace {

TEST(Mesh, NormalsOfASphereAreItsRadii) {
  const Vec3 centre = {0.3, -0.2, 1.5};
  const Mesh sphere = sphere_mesh(centre, 0.1, 48, 16);
  const std::vector<Vec3f> normals = vertex_normals(sphere);
  ASSERT_EQ(normals.size(), sphere.vertices.size());
  for (std::size_t v = 0; v < normals.size(); ++v) {
    double cosine = 0;
    double length = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      cosine += normals[v][i] * (sphere.vertices[v][i] - centre[i]) / 0.1;
      length += static_cast<double>(normals[v][i]) * normals[v][i];
    }
    EXPECT_NEAR(length, 1, 1e-6);
    // A vertex has its faces on both sides in equal measure along a ring; along a meridian their areas differ
    // by the ring's radius, which tilts the normal by less than the step of 11.25 degrees.
    EXPECT_GT(cosine, std::cos(11.25 / 2 / 180 * 3.14159265)) << "vertex " << v;
  }
}

TEST(Mesh, NormalsAreWeightedByArea) {
  // Two faces at a right angle share an edge; one has three times the area of the other.
  Mesh mesh;
  mesh.vertices = {{0, 0, 0}, {1, 0, 0}, {0, 3, 0}, {0, 0, 1}};
  mesh.faces = {{0, 1, 2}, {0, 3, 1}};  // normals +z (area 1.5), +y (area 0.5)
  const std::vector<Vec3f> normals = vertex_normals(mesh);
  EXPECT_NEAR(normals[0][2] / normals[0][1], 3, 1e-6);
  EXPECT_EQ(normals[2], (Vec3f{0, 0, 1}));
  EXPECT_EQ(normals[3], (Vec3f{0, 1, 0}));
}

TEST(Mesh, NormalsLeaveOutWhatIsNotSound) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Mesh mesh;
  mesh.vertices = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {nan, 0, 0}, {5, 5, 5}, {3e38F, -3e38F, 1}};
  mesh.faces = {{0, 1, 2}, {0, 1, 3}, {0, 1, 77}, {1, 1, 1}, {4, 4, 5}};
  const std::vector<Vec3f> normals = vertex_normals(mesh);
  EXPECT_EQ(normals[0], (Vec3f{0, 0, 1}));
  EXPECT_EQ(normals[3], (Vec3f{0, 0, 1})) << "no face: some unit vector";
  EXPECT_EQ(normals[4], (Vec3f{0, 0, 1}));
  EXPECT_FALSE(is_sound(mesh, {0, 1, 3}));
  EXPECT_FALSE(is_sound(mesh, {0, 1, 6}));
  EXPECT_TRUE(is_sound(mesh, {0, 1, 5}));
}

TEST(Mesh, MirroredIsExact) {
  const Mesh hand = capsule_hand();
  const Mesh mirror = mirrored(hand);
  const std::vector<Vec3f> normals = vertex_normals(hand);
  const std::vector<Vec3f> mirror_normals = vertex_normals(mirror);
  for (std::size_t v = 0; v < normals.size(); ++v) {
    EXPECT_EQ(mirror.vertices[v], (Vec3f{-hand.vertices[v][0], hand.vertices[v][1], hand.vertices[v][2]}));
    EXPECT_EQ(mirror_normals[v], (Vec3f{-normals[v][0], normals[v][1], normals[v][2]}));
  }
  const Mesh back = mirrored(mirror);
  EXPECT_EQ(back.vertices, hand.vertices);
  EXPECT_EQ(back.faces, hand.faces);
}

TEST(Mesh, ShapesOfTheTestsAreClosed) {
  for (const Mesh& mesh : {box_mesh({0, 0, 0}, {1, 2, 3}), sphere_mesh({}, 1), capsule_hand()}) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> edges;
    double volume = 0;
    for (const Face& f : mesh.faces) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::uint32_t a = f[i];
        const std::uint32_t b = f[(i + 1) % 3];
        edges[{std::min(a, b), std::max(a, b)}] += a < b ? 1 : -1;
      }
      const Vec3f& a = mesh.vertices[f[0]];
      const Vec3f& b = mesh.vertices[f[1]];
      const Vec3f& c = mesh.vertices[f[2]];
      volume += a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
                a[2] * (b[0] * c[1] - b[1] * c[0]);
    }
    for (const auto& [edge, balance] : edges) EXPECT_EQ(balance, 0);
    EXPECT_GT(volume, 0) << "faces look outwards";
  }
}

TEST(Mesh, WristIsClosedForManoOnly) {
  Mesh mesh;
  mesh.vertices.resize(kManoVertices);
  mesh.faces = {{1, 2, 3}};
  close_wrist(mesh);
  ASSERT_EQ(mesh.faces.size(), 1 + kWristFaces);
  EXPECT_EQ(mesh.faces[1], (Face{92, 38, 234}));
  EXPECT_EQ(mesh.faces.back(), (Face{78, 108, 79}));
  // The patch is a disc: 14 triangles around 16 vertices, inner edges used once each way.
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> edges;
  for (std::size_t f = 1; f < mesh.faces.size(); ++f) {
    for (std::size_t i = 0; i < 3; ++i) ++edges[{mesh.faces[f][i], mesh.faces[f][(i + 1) % 3]}];
  }
  std::size_t border = 0;
  for (const auto& [edge, count] : edges) {
    EXPECT_EQ(count, 1);
    if (!edges.contains({edge.second, edge.first})) ++border;
  }
  EXPECT_EQ(border, 16U);

  Mesh left;
  left.vertices.resize(kManoVertices);
  close_wrist(left, false);
  EXPECT_EQ(left.faces[0], (Face{92, 234, 38}));
  Mesh other = box_mesh({0, 0, 0}, {1, 1, 1});
  EXPECT_THROW(close_wrist(other), Error);
}

TEST(Mesh, Moves) {
  const Mesh box = box_mesh({0, 0, 0}, {1, 2, 4});
  EXPECT_EQ(translated(box, {1, 2, 3}).vertices[7], (Vec3f{2, 4, 7}));
  EXPECT_EQ(in_opengl_axes(box).vertices[7], (Vec3f{1, -2, -4}));
  const Mesh side = turned_sideways(box);  // about (0.5, 1, 2)
  EXPECT_EQ(side.vertices[0], (Vec3f{-1.5, 0, 2.5}));
  EXPECT_EQ(side.vertices[7], (Vec3f{2.5, 2, 1.5}));
  Mesh empty;
  EXPECT_TRUE(turned_sideways(empty).vertices.empty());
}

}  // namespace
}  // namespace sinew

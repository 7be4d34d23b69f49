#include "hand/subdivide.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hand/mesh_test_support.h"

namespace sinew {
namespace {

double length_of(const Vec3f& v) { return std::hypot(v[0], v[1], v[2]); }

TEST(Subdivide, FlatFacesStayFlatAndCarriedNumbersAreAveraged) {
  Mesh mesh;
  mesh.vertices = {{0, 0, 2}, {4, 0, 2}, {0, 8, 2}};
  mesh.faces = {{0, 1, 2}};
  std::vector<Vec3> carried = {{0, 0, 0}, {1, 0, 6}, {0, 1, -2}};
  subdivide(mesh, carried);
  ASSERT_EQ(mesh.faces.size(), 4U);
  ASSERT_EQ(mesh.vertices.size(), 6U);
  ASSERT_EQ(carried.size(), 6U);
  double area = 0;
  for (const Face& f : mesh.faces) {
    const Vec3f &a = mesh.vertices[f[0]], &b = mesh.vertices[f[1]], &c = mesh.vertices[f[2]];
    const double twice = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    EXPECT_GT(twice, 0) << "faces look where they did";
    area += twice / 2;
  }
  EXPECT_DOUBLE_EQ(area, 16);
  // Each vertex tells its place by what it carries: x / 4 and y / 8.
  for (std::size_t v = 0; v < 6; ++v) {
    EXPECT_FLOAT_EQ(mesh.vertices[v][2], 2);
    EXPECT_DOUBLE_EQ(carried[v][0], mesh.vertices[v][0] / 4.0);
    EXPECT_DOUBLE_EQ(carried[v][1], mesh.vertices[v][1] / 8.0);
    EXPECT_DOUBLE_EQ(carried[v][2], 6 * carried[v][0] - 2 * carried[v][1]);
  }
}

TEST(Subdivide, ABallGetsRounder) {
  Mesh ball = sphere_mesh({0, 0, 0}, 1, 12, 4);
  const std::size_t vertices = ball.vertices.size();
  const std::size_t faces = ball.faces.size();
  std::vector<Vec3> carried(vertices);
  subdivide(ball, carried);
  EXPECT_EQ(ball.faces.size(), 4 * faces);
  EXPECT_EQ(ball.vertices.size(), vertices + faces * 3 / 2) << "one for each edge of a closed mesh";
  // Chords of up to 40 degrees have their middles at 0.94 to 0.97; the bulge leaves h^4/6 of that, h half the
  // angle, and what the normals of facets are off.
  for (std::size_t v = vertices; v < ball.vertices.size(); ++v)
    EXPECT_NEAR(length_of(ball.vertices[v]), 1, 0.01);
  // Closed: each edge is used once in each direction.
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> edges;
  for (const Face& f : ball.faces) {
    for (std::size_t i = 0; i < 3; ++i) ++edges[{f[i], f[(i + 1) % 3]}];
  }
  for (const auto& [edge, count] : edges) {
    EXPECT_EQ(count, 1);
    EXPECT_EQ(edges.count({edge.second, edge.first}), 1U);
  }
}

TEST(Subdivide, MissingVerticesAreDropped) {
  Mesh mesh;
  mesh.vertices = {{0, 0, 1}, {1, 0, 1}, {0, 1, 1}};
  mesh.faces = {{0, 1, 7}, {0, 1, 2}};
  std::vector<Vec3> carried(3);
  subdivide(mesh, carried);
  EXPECT_EQ(mesh.faces.size(), 4U);
  Mesh empty;
  carried.clear();
  subdivide(empty, carried);
  EXPECT_TRUE(empty.vertices.empty());
}

}  // namespace
}  // namespace sinew

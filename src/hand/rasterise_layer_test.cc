// Layers that are used again, colours of vertices, and the two ways of drawing a triangle.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "hand/mesh_test_support.h"
#include "hand/raster_tile.h"
#include "hand/rasterise.h"

namespace sinew {
namespace {

/// At z = 1 a vertex (x, y) is seen at pixel (x, y) of the frame.
PinholeCamera flat_camera() { return {1, 1, 0, 0, 1e-3}; }

void expect_same(const Layer& a, const Layer& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.rgba, b.rgba);
  EXPECT_EQ(a.depth, b.depth);
}

TEST(RenderInto, ClearsWhatWasDrawnBefore) {
  const Mesh hand = capsule_hand();
  const PinholeCamera camera = centred_camera(900, 200, 160);
  const std::vector<MeshInstance> left = {{&hand, {-0.08, -0.03, 1.4}}};
  const std::vector<MeshInstance> right = {{&hand, {0.10, 0.05, 1.6}}};
  const std::vector<MeshInstance> outside = {{&hand, {9, 0, 1}}};
  Layer layer;
  for (const auto& meshes : {left, right, outside, left, {}, right}) {
    render_into(layer, meshes, camera, 200, 160);
    expect_same(layer, render(meshes, camera, 200, 160));
  }
  // Another size, and back.
  render_into(layer, left, centred_camera(900, 160, 200), 160, 200);
  expect_same(layer, render(left, centred_camera(900, 160, 200), 160, 200));
  render_into(layer, left, camera, 200, 160);
  expect_same(layer, render(left, camera, 200, 160));
}

TEST(RenderInto, NothingLiesBeyondDrawn) {
  const Mesh hand = capsule_hand();
  for (const Vec3& place : {Vec3{0, 0, 1.4}, Vec3{-0.12, 0.06, 1.1}, Vec3{0.2, -0.1, 1}, Vec3{9, 0, 1}}) {
    const Layer layer = render({{&hand, place}}, centred_camera(900, 203, 161), 203, 161);
    const PixelRect& drawn = layer.drawn;
    EXPECT_GE(drawn.x0, 0);
    EXPECT_GE(drawn.y0, 0);
    EXPECT_LE(drawn.x1, 203);
    EXPECT_LE(drawn.y1, 161);
    for (int y = 0; y < layer.height; ++y) {
      for (int x = 0; x < layer.width; ++x) {
        const bool inside = x >= drawn.x0 && x < drawn.x1 && y >= drawn.y0 && y < drawn.y1;
        if (inside) continue;
        EXPECT_EQ(layer.pixel(x, y)[3], 0);
        EXPECT_EQ(layer.depth_at(x, y), Layer::kNothing);
      }
    }
  }
}

TEST(RenderInto, AFailureLeavesAnEmptyLayer) {
  const Mesh box = box_mesh({2, 2, 1}, {9, 9, 2});
  Layer layer;
  render_into(layer, {{&box}}, flat_camera(), 16, 16);
  const Layer before = layer;
  EXPECT_THROW(render_into(layer, {{&box}}, flat_camera(), 0, 16), Error);
  expect_same(layer, before);
}

TEST(VertexColours, AreLinearInSpaceAndUnlit) {
  // A slope from z = 1 on the left to z = 4 on the right, black to white: the middle of the screen lies at
  // 1/z = (1 + 1/4) / 2, z = 1.6, a fifth of the way.
  Mesh slope;
  for (const auto& [x, z] : {std::pair{0.0, 1.0}, std::pair{64.0, 4.0}}) {
    for (const double y : {0.0, 64.0}) {
      slope.vertices.push_back({static_cast<float>(x * z), static_cast<float>(y * z), static_cast<float>(z)});
    }
  }
  slope.faces = {{0, 1, 2}, {1, 3, 2}};
  const std::vector<Vec3f> colours = {{0, 0, 0.5F}, {0, 0, 0.5F}, {1, 0, 0.5F}, {1, 0, 0.5F}};
  MeshInstance instance = {&slope};
  instance.colours = &colours;
  const Layer layer = render({instance}, flat_camera(), 64, 64);
  for (int x = 0; x < 64; ++x) {
    const double z = 1 / (1 - 0.75 * (x + 0.5) / 64);
    for (const int y : {3, 40}) {
      ASSERT_EQ(layer.pixel(x, y)[3], 255);
      EXPECT_NEAR(layer.pixel(x, y)[0], 255 * (z - 1) / 3, 1) << x;
      EXPECT_EQ(layer.pixel(x, y)[1], 0);
      EXPECT_NEAR(layer.pixel(x, y)[2], 127.5, 0.51);
    }
  }
  // From behind, too.
  for (Face& face : slope.faces) std::swap(face[1], face[2]);
  expect_same(render({instance}, flat_camera(), 64, 64), layer);
}

TEST(VertexColours, StandBesideLitMeshes) {
  const Mesh near = box_mesh({4, 4, 1}, {20, 20, 1.5});
  const Mesh far = box_mesh({48, 48, 2}, {60, 60, 2.5});  // seen from pixel 19.2 to 30
  const std::vector<Vec3f> green(near.vertices.size(), Vec3f{0, 1, 0});
  MeshInstance coloured = {&near};
  coloured.colours = &green;
  const MeshInstance shaded = {&far, {}, {1, 0, 0}};
  const Layer layer = render({shaded, coloured}, flat_camera(), 32, 32);
  EXPECT_EQ(layer.pixel(8, 8)[0], 0);
  EXPECT_EQ(layer.pixel(8, 8)[1], 255);
  EXPECT_GT(layer.pixel(26, 26)[0], 200) << "the red box, right of and below the green one";
  EXPECT_EQ(layer.pixel(26, 26)[1], 0);
}

TEST(VertexColours, MustFitTheMesh) {
  const Mesh box = box_mesh({4, 4, 1}, {20, 20, 1.5});
  std::vector<Vec3f> colours(box.vertices.size() - 1);
  MeshInstance instance = {&box};
  instance.colours = &colours;
  EXPECT_THROW(render({instance}, flat_camera(), 32, 32), Error);
  colours.push_back({0, std::numeric_limits<float>::quiet_NaN(), 0});
  EXPECT_THROW(render({instance}, flat_camera(), 32, 32), Error);
  colours.back() = {};
  EXPECT_NO_THROW(render({instance}, flat_camera(), 32, 32));
}

/// The same surface as one large triangle (64-bit edges) and as many small ones (32-bit): same samples, and
/// the depth of a plane whose values floats hold.
TEST(SmallTriangles, CoverWhatLargeOnesDo) {
  std::mt19937 bits(11);
  int small = 0;
  for (int round = 0; round < 30; ++round) {
    const auto grid = [&](int range) { return static_cast<double>(bits() % (256U * range)) / 256; };
    const std::array<Vec2, 3> t = {{{grid(150), grid(120)}, {grid(150), grid(120)}, {grid(150), grid(120)}}};
    // Halves of halves stay on the grid of vertices when the corners are multiples of 16/256.
    constexpr int kParts = 16;
    Mesh whole;
    Mesh parts;
    const auto point = [&](int i, int j) {
      Vec3f out{0, 0, 1};
      for (std::size_t k = 0; k < 2; ++k) {
        const auto step = [&](std::size_t v) { return std::round((t[v][k] - t[0][k]) * 16) / 16; };
        out[k] = static_cast<float>(std::round(t[0][k] * 16) / 16 + (step(1) * i + step(2) * j) / kParts);
      }
      return out;
    };
    const auto add = [](Mesh& mesh, const Vec3f& a, const Vec3f& b, const Vec3f& c) {
      const auto n = static_cast<std::uint32_t>(mesh.vertices.size());
      for (const Vec3f& v : {a, b, c}) mesh.vertices.push_back(v);
      mesh.faces.push_back({n, n + 1, n + 2});
    };
    add(whole, point(0, 0), point(kParts, 0), point(0, kParts));
    for (int i = 0; i < kParts; ++i) {
      for (int j = 0; i + j < kParts; ++j) {
        add(parts, point(i, j), point(i + 1, j), point(i, j + 1));
        if (i + j + 1 < kParts) add(parts, point(i + 1, j), point(i + 1, j + 1), point(i, j + 1));
      }
    }
    const Layer one = render({{&whole}}, flat_camera(), 150, 120);
    const Layer many = render({{&parts}}, flat_camera(), 150, 120);
    EXPECT_EQ(one.depth, many.depth) << round;
    std::vector<raster::Triangle> triangles;
    raster::project_faces({&whole}, 0, {150, 120, flat_camera()}, triangles);
    if (!triangles.empty()) small += raster::is_small(triangles[0]) ? 1 : 0;
    for (std::size_t p = 0; p < one.depth.size(); ++p) {
      ASSERT_EQ(one.rgba[4 * p + 3], many.rgba[4 * p + 3]) << round << " pixel " << p;
    }
  }
  EXPECT_LT(small, 20) << "most of the large triangles must be large";
}

}  // namespace
}  // namespace sinew

#include "hand/rasterise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "base/error.h"
#include "hand/mesh_test_support.h"
#include "hand/raster_tile.h"

namespace sinew {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// At z = 1 a vertex (x, y) is seen at pixel (x, y) of the frame.
PinholeCamera flat_camera() { return {1, 1, 0, 0, 1e-3}; }

Mesh triangle_at(const Vec2& a, const Vec2& b, const Vec2& c, float z = 1) {
  Mesh mesh;
  for (const Vec2& p : {a, b, c}) {
    mesh.vertices.push_back({static_cast<float>(p[0]) * z, static_cast<float>(p[1]) * z, z});
  }
  mesh.faces = {{0, 1, 2}};
  return mesh;
}

Layer render_one(const Mesh& mesh, const PinholeCamera& camera, int width, int height) {
  return render({{&mesh}}, camera, width, height);
}

/// Point in triangle by the signs of three areas, in double: no grid, no fill rule, no steps.
bool is_inside(const std::array<Vec2, 3>& t, double x, double y) {
  int left = 0;
  int right = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const Vec2& a = t[i];
    const Vec2& b = t[(i + 1) % 3];
    const double area = (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
    (area < 0 ? left : right) += 1;
  }
  return left == 3 || right == 3;
}

struct Random {
  std::mt19937 bits{7};
  double operator()(double low, double high) { return low + (high - low) * (bits() / 4294967296.0); }
};

TEST(Rasterise, CoversExactlyTheSamplesInside) {
  Random random;
  for (int round = 0; round < 60; ++round) {
    constexpr int kWidth = 71;
    constexpr int kHeight = 53;
    std::array<Vec2, 3> t;
    // On the grid of 1/256 pixel, where nothing is rounded, partly outside of the picture.
    for (Vec2& p : t)
      p = {std::round(random(-20, 90) * 256) / 256 + 0.5, std::round(random(-20, 70) * 256) / 256 + 0.5};
    const Layer layer = render_one(triangle_at(t[0], t[1], t[2]), flat_camera(), kWidth, kHeight);
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        int covered = 0;
        for (const auto& sample : raster::kSamples) {
          covered += is_inside(t, x + 0.5 + sample[0] / 512.0, y + 0.5 + sample[1] / 512.0) ? 1 : 0;
        }
        ASSERT_EQ(layer.pixel(x, y)[3], (255 * covered + 4) / 8) << x << "," << y << " of triangle " << round;
        ASSERT_EQ(layer.depth_at(x, y), covered == 0 ? Layer::kNothing : 1.0F);
      }
    }
  }
}

TEST(Rasterise, CoverageIsTheCoveredAreaOfThePixel) {
  Random random;
  double squares = 0;
  int border = 0;
  for (int round = 0; round < 20; ++round) {
    std::array<Vec2, 3> t;
    for (Vec2& p : t) p = {random(2, 38), random(2, 28)};
    const Layer layer = render_one(triangle_at(t[0], t[1], t[2]), flat_camera(), 40, 30);
    for (int y = 0; y < 30; ++y) {
      for (int x = 0; x < 40; ++x) {
        constexpr int kSide = 32;
        int inside = 0;
        for (int i = 0; i < kSide * kSide; ++i) {
          const int column = i % kSide;
          const int row = i / kSide;
          inside += is_inside(t, x + (column + 0.5) / kSide, y + (row + 0.5) / kSide) ? 1 : 0;
        }
        const double area = static_cast<double>(inside) / (kSide * kSide);
        const double alpha = layer.pixel(x, y)[3] / 255.0;
        if (inside == 0 || inside == kSide * kSide) {
          // Vertices move by up to 1/512 pixel when snapped: not enough to reach a sample 1/8 pixel away.
          EXPECT_EQ(alpha, area);
          continue;
        }
        // The largest part without a sample is a strip of a quarter of the pixel and the corner beside it.
        EXPECT_NEAR(alpha, area, 0.32);
        squares += (alpha - area) * (alpha - area);
        ++border;
      }
    }
  }
  ASSERT_GT(border, 500);
  // An edge that crosses anywhere is a random phase against steps of 1/8: 1/8/sqrt(12) = 0.036 when samples
  // are spread evenly across the edge; twice that for the directions in which two of them fall into one line.
  EXPECT_LT(std::sqrt(squares / border), 0.072);
}

TEST(Rasterise, SharedEdgesHaveNoGapAndNoDoubleCoverage) {
  // A fan around a point, every vertex on the grid, edges in many directions, with samples right on some of
  // them. Each triangle alone must cover what the others leave: coverages add up to the whole exactly.
  constexpr int kSize = 64;
  Random random;
  for (int round = 0; round < 10; ++round) {
    const Vec2 middle = {std::round(random(20, 44)) + 65 / 512.0 + 1 / 512.0,
                         std::round(random(20, 44)) + 0.25};
    std::vector<Vec2> ring;
    for (int i = 0; i < 64; i += 4) ring.push_back({static_cast<double>(i), 0});
    for (int i = 0; i < 64; i += 4) ring.push_back({64, static_cast<double>(i)});
    for (int i = 64; i > 0; i -= 4) ring.push_back({static_cast<double>(i), 64});
    for (int i = 64; i > 0; i -= 4) ring.push_back({0, static_cast<double>(i)});
    std::vector<int> samples(std::size_t{kSize} * kSize);
    Mesh all;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const Mesh one = triangle_at(middle, ring[i], ring[(i + 1) % ring.size()]);
      append(all, one);
      const Layer layer = render_one(one, flat_camera(), kSize, kSize);
      for (std::size_t p = 0; p < samples.size(); ++p) samples[p] += (layer.rgba[4 * p + 3] * 8 + 127) / 255;
    }
    const Layer whole = render_one(all, flat_camera(), kSize, kSize);
    for (std::size_t p = 0; p < samples.size(); ++p) {
      ASSERT_EQ(samples[p], 8) << "pixel " << p % kSize << "," << p / kSize;
      ASSERT_EQ(whole.rgba[4 * p + 3], 255);
    }
  }
}

TEST(Rasterise, TiesOnDiagonalsBelongToOneTriangle) {
  // Two triangles on both sides of an edge through a sample, for many directions of the edge.
  const auto sample = [](std::size_t s) {
    return Vec2{8.5 + raster::kSamples[s][0] / 512.0, 8.5 + raster::kSamples[s][1] / 512.0};
  };
  int ties = 0;
  for (std::size_t i = 0; i < raster::kSampleCount; ++i) {
    for (int dx = -7; dx <= 7; dx += 2) {
      for (int dy = -7; dy <= 7; dy += 1) {
        // Odd steps of 1/512 to both sides of a sample lead to the even lines of vertices.
        const Vec2 p = sample(i);
        const Vec2 a = {p[0] + dx * 129 / 512.0, p[1] + (2 * dy + 1) * 129 / 512.0};
        const Vec2 b = {p[0] - dx * 129 / 512.0, p[1] - (2 * dy + 1) * 129 / 512.0};
        const Layer left = render_one(triangle_at(a, b, {-100, 300}), flat_camera(), 16, 16);
        const Layer right = render_one(triangle_at(a, b, {117, -283}), flat_camera(), 16, 16);
        Mesh both = triangle_at(a, b, {-100, 300});
        append(both, triangle_at(a, b, {117, -283}));
        const Layer whole = render_one(both, flat_camera(), 16, 16);
        const auto count = [](const Layer& l) { return (l.pixel(8, 8)[3] * 8 + 127) / 255; };
        int expected = 0;
        for (std::size_t other = 0; other < raster::kSampleCount; ++other) {
          const Vec2 q = sample(other);
          // Exact: differences of multiples of 1/512.
          const bool between = (q[0] - a[0]) * (q[0] - b[0]) < 0;
          const bool tie = between && (b[0] - a[0]) * (q[1] - a[1]) == (b[1] - a[1]) * (q[0] - a[0]);
          expected +=
              tie || is_inside({a, b, {-100, 300}}, q[0], q[1]) || is_inside({a, b, {117, -283}}, q[0], q[1]);
        }
        ASSERT_EQ(count(whole), expected);
        ASSERT_EQ(count(left) + count(right), count(whole));
        ++ties;
      }
    }
  }
  EXPECT_EQ(ties, 8 * 8 * 15);
}

TEST(Rasterise, NearerMeshesHideFartherOnesInAnyOrder) {
  const Mesh near = triangle_at({2, 2}, {30, 2}, {2, 30}, 1);
  const Mesh far = triangle_at({0, 0}, {32, 0}, {0, 32}, 3);
  const MeshInstance red = {&near, {}, {1, 0, 0}};
  const MeshInstance blue = {&far, {}, {0, 0, 1}};
  const Layer one = render({red, blue}, flat_camera(), 32, 32);
  const Layer two = render({blue, red}, flat_camera(), 32, 32);
  EXPECT_EQ(one.rgba, two.rgba);
  EXPECT_EQ(one.depth, two.depth);
  EXPECT_EQ(one.pixel(8, 8)[2], 0);
  EXPECT_GT(one.pixel(8, 8)[0], 200);
  EXPECT_FLOAT_EQ(one.depth_at(8, 8), 1);
  EXPECT_EQ(one.pixel(0, 8)[0], 0);
  EXPECT_GT(one.pixel(0, 8)[2], 200);
  EXPECT_FLOAT_EQ(one.depth_at(0, 8), 3);
}

TEST(Rasterise, MeshesThatCrossAreResolvedPerPixel) {
  // Two planes cross at x = 16: z = 1 + x/32 against z = 1.5. Depth is linear in 1/z on the screen.
  Mesh slope;
  Mesh wall;
  const auto corner = [](Mesh& mesh, double x, double y, double z) {
    mesh.vertices.push_back({static_cast<float>(x * z), static_cast<float>(y * z), static_cast<float>(z)});
  };
  for (const Vec2& p : {Vec2{0, 0}, Vec2{0, 32}, Vec2{32, 32}, Vec2{32, 0}}) {
    corner(slope, p[0], p[1], 1 / (1 - p[0] / 64));
    corner(wall, p[0], p[1], 1 / 0.75);
  }
  slope.faces = wall.faces = {{0, 1, 2}, {0, 2, 3}};
  const Layer layer = render({{&slope, {}, {1, 0, 0}}, {&wall, {}, {0, 0, 1}}}, flat_camera(), 32, 32);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      EXPECT_EQ(layer.pixel(x, y)[0] > 0, x < 16) << x;
      EXPECT_EQ(layer.pixel(x, y)[2] > 0, x >= 16) << x;
      const double seen = 1 / std::max(1 - x / 64.0, 0.75);
      EXPECT_NEAR(layer.depth_at(x, y), seen, 0.02);
    }
  }
}

TEST(Rasterise, MirroredMeshesGiveTheMirroredPicture) {
  const Mesh hand = capsule_hand();
  const Mesh mirror = mirrored(hand);
  for (const int width : {200, 161}) {
    const int height = 190;
    PinholeCamera camera = centred_camera(900, width, height);
    const Vec3 place = {0.013, -0.021, 1.07};
    const Layer plain = render({{&hand, place}}, camera, width, height);
    const Layer other = render({{&mirror, {-place[0], place[1], place[2]}}}, camera, width, height);
    int covered = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 4; ++c) {
          ASSERT_EQ(plain.pixel(x, y)[c], other.pixel(width - 1 - x, y)[c])
              << x << "," << y << " channel " << c;
        }
        ASSERT_EQ(plain.depth_at(x, y), other.depth_at(width - 1 - x, y));
        covered += plain.pixel(x, y)[3] == 255 ? 1 : 0;
      }
    }
    EXPECT_GT(covered, 5000);
  }
}

TEST(Rasterise, ShadesASphereByItsNormals) {
  const Mesh sphere = sphere_mesh({0, 0, 100}, 1, 96, 32);
  const Layer layer = render_one(sphere, centred_camera(3000, 80, 80), 80, 80);
  // 30 pixels of radius, seen nearly without perspective.
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 80; ++x) {
      const double nx = (x + 0.5 - 40) / 30;
      const double ny = (y + 0.5 - 40) / 30;
      const double radius = std::hypot(nx, ny);
      if (radius > 1.05) {
        EXPECT_EQ(layer.pixel(x, y)[3], 0);
      }
      if (radius > 0.9) continue;
      EXPECT_EQ(layer.pixel(x, y)[3], 255);
      const double facing = std::sqrt(1 - radius * radius);
      double light = 0.3;
      for (const double azimuth : {90.0, 210.0, 330.0}) {
        const double a = azimuth / 180 * std::numbers::pi;
        const double cosine =
            facing * std::cos(std::numbers::pi / 6) + 0.5 * (nx * std::cos(a) - ny * std::sin(a));
        light += 0.7 / (3 * std::cos(std::numbers::pi / 6)) * std::max(cosine, 0.0);
      }
      // Facets of 3.75 and 2.8 degrees under smooth normals: within a few levels of the ball.
      for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(layer.pixel(x, y)[c], 255 * light * kHandColour[c], 4);
    }
  }
}

TEST(Rasterise, BothSidesOfASurfaceAreLit) {
  Mesh mesh = triangle_at({2, 2}, {30, 2}, {2, 30});
  const Layer inside = render_one(mesh, flat_camera(), 32, 32);
  std::swap(mesh.faces[0][1], mesh.faces[0][2]);
  const Layer outside = render_one(mesh, flat_camera(), 32, 32);
  EXPECT_EQ(inside.rgba, outside.rgba);
  EXPECT_EQ(inside.pixel(8, 8)[2], 219) << "a surface that faces the camera has its own colour";
}

TEST(Rasterise, NormalsAreInterpolatedInSpaceNotOnTheScreen) {
  // A floor from z = 1 to z = 9 with normals that turn from the camera to upright; half way in space is z
  // = 5.
  Mesh floor;
  floor.vertices = {{-1, 1, 1}, {1, 1, 1}, {9, 1, 9}, {-9, 1, 9}, {0, 0.5, 1.2F}};
  floor.faces = {{0, 2, 1}, {0, 3, 2}};
  const Layer layer = render_one(floor, centred_camera(100, 200, 220), 200, 220);
  for (int y = 122; y < 210; ++y) {
    const double z = 100 / (y + 0.5 - 110);
    EXPECT_NEAR(layer.depth_at(100, y), z, 0.05 * z) << y;
  }
}

TEST(Rasterise, CutsAtTheNearPlane) {
  // A floor below the camera that runs from behind it to the horizon.
  Mesh floor;
  floor.vertices = {{-50, 1, -50}, {50, 1, -50}, {50, 1, 1000}, {-50, 1, 1000}};
  floor.faces = {{0, 2, 1}, {0, 3, 2}};
  const PinholeCamera camera = {100, 100, 50, 50, 0.1};
  const Layer layer = render_one(floor, camera, 100, 100);
  for (int y = 0; y < 49; ++y) EXPECT_EQ(layer.pixel(50, y)[3], 0) << y;
  for (int y = 54; y < 100; ++y) {
    for (const int x : {0, 50, 99}) {
      EXPECT_EQ(layer.pixel(x, y)[3], 255) << x << "," << y;
      const double z = 100 / (y + 0.5 - 50);
      EXPECT_NEAR(layer.depth_at(x, y), z, z * 0.125 / (y - 50) * 4) << y;
    }
  }
  // All of it behind the camera, or nearer than `near`.
  const Mesh behind = translated(triangle_at({2, 2}, {30, 2}, {2, 30}), {0, 0, -2});
  for (const std::uint8_t v : render_one(behind, flat_camera(), 8, 8).rgba) EXPECT_EQ(v, 0);
  PinholeCamera deep = flat_camera();
  deep.near = 1.5;
  const Mesh near = triangle_at({2, 2}, {30, 2}, {2, 30});
  for (const std::uint8_t v : render_one(near, deep, 8, 8).rgba) EXPECT_EQ(v, 0);
}

TEST(Rasterise, CutTrianglesFitTogether) {
  // A box around the camera: everything is covered, whatever way it is cut.
  const Mesh room = box_mesh({-1, -1, -1}, {1, 1, 1});
  const Layer layer = render_one(room, centred_camera(40, 90, 70), 90, 70);
  for (std::size_t p = 0; p < layer.depth.size(); ++p) {
    ASSERT_EQ(layer.rgba[4 * p + 3], 255) << p;
    ASSERT_LT(layer.depth[p], 1.001F);
  }
}

TEST(Rasterise, HugeTrianglesAreExactInsideThePicture) {
  const Mesh huge = triangle_at({-3e7, -3e7}, {3e7, -3e7}, {16.5, 3e7});
  const Layer layer = render_one(huge, flat_camera(), 33, 33);
  for (std::size_t p = 0; p < layer.depth.size(); ++p) ASSERT_EQ(layer.rgba[4 * p + 3], 255);
  // Half of the picture: the edge runs at x = 16 from far above to far below.
  const Layer half = render_one(triangle_at({16, -1e6}, {16, 1e6}, {-1e6, 0}), flat_camera(), 32, 32);
  for (int x = 0; x < 32; ++x) EXPECT_EQ(half.pixel(x, 16)[3], x < 16 ? 255 : 0);
}

TEST(Rasterise, UnsoundFacesDrawNothing) {
  Mesh mesh = triangle_at({2, 2}, {14, 2}, {2, 14});
  const Layer clean = render_one(mesh, flat_camera(), 16, 16);
  mesh.vertices.insert(
      mesh.vertices.end(),
      {{kNan, 1, 1}, {kInfinite, 0, 1}, {3, 3, -kInfinite}, {3e38F, -3e38F, 3e38F}, {5, 5, 1}});
  mesh.faces.insert(mesh.faces.end(), {{0, 1, 3}, {3, 3, 3}, {4, 0, 1}, {0, 5, 2}, {0, 1, 99}, {99, 99, 99}});
  mesh.faces.insert(mesh.faces.end(), {{7, 7, 7}, {0, 7, 0}, {0xffffffff, 0, 1}});
  const Layer layer = render_one(mesh, flat_camera(), 16, 16);
  EXPECT_EQ(layer.rgba, clean.rgba);
  EXPECT_EQ(layer.depth, clean.depth);
  const float most = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  Random random;
  for (int round = 0; round < 2000; ++round) {
    Mesh wild;
    for (int v = 0; v < 3; ++v) {
      Vec3f p;
      for (float& c : p) {
        const float values[] = {
            0, 1, -1, most, -most, least, 1e-3F, 1e10F, static_cast<float>(random(-20, 20))};
        c = values[random.bits() % 9];
      }
      wild.vertices.push_back(p);
    }
    wild.faces = {{0, 1, 2}};
    const Layer result = render_one(wild, {1e9, 1e-9, -1e9, 3, 1e-9}, 5, 7);
    EXPECT_EQ(result.depth.size(), 35U);
    render_one(wild, flat_camera(), 5, 7);
  }
}

TEST(Rasterise, SmallAndEmpty) {
  const Mesh empty;
  const Layer nothing = render({{&empty}, {nullptr}}, flat_camera(), 3, 2);
  EXPECT_EQ(nothing.rgba, std::vector<std::uint8_t>(24, 0));
  EXPECT_EQ(nothing.depth, std::vector<float>(6, Layer::kNothing));
  EXPECT_EQ(render({}, flat_camera(), 3, 2).rgba, nothing.rgba);
  const Layer dot = render_one(triangle_at({-5, -5}, {9, -5}, {-5, 9}), flat_camera(), 1, 1);
  EXPECT_EQ(dot.pixel(0, 0)[3], 255);
  EXPECT_EQ(dot.depth_at(0, 0), 1);
}

TEST(Rasterise, RefusesWhatIsNoPicture) {
  const Mesh box = box_mesh({0, 0, 1}, {1, 1, 2});
  const auto refuses = [&](const PinholeCamera& camera, int width, int height, const Vec3& translation = {}) {
    try {
      render({{&box, translation}}, camera, width, height);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kUsage;
    }
    return false;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refuses(flat_camera(), 0, 5));
  EXPECT_TRUE(refuses(flat_camera(), 5, -1));
  EXPECT_TRUE(refuses(flat_camera(), 16385, 5));
  EXPECT_TRUE(refuses({0, 1, 0, 0}, 5, 5));
  EXPECT_TRUE(refuses({1, -1, 0, 0}, 5, 5));
  EXPECT_TRUE(refuses({1, 1, nan, 0}, 5, 5));
  EXPECT_TRUE(refuses({1, 1, 0, 1e300}, 5, 5));
  EXPECT_TRUE(refuses({1, 1, 0, 0, 0}, 5, 5));
  EXPECT_TRUE(refuses(flat_camera(), 5, 5, {0, nan, 0}));
  EXPECT_FALSE(refuses(flat_camera(), 5, 5));
}

TEST(Compose, BlendsByAlpha) {
  Layer layer;
  layer.width = 3;
  layer.height = 1;
  layer.rgba = {200, 100, 0, 255, 200, 100, 0, 128, 9, 9, 9, 0};
  layer.depth = {1, 1, Layer::kNothing};
  layer.drawn = {0, 0, 3, 1};
  Image image(3, 1);
  image.rgb = {10, 20, 30, 10, 20, 30, 10, 20, 30};
  compose(image, layer);
  EXPECT_EQ(image.rgb, (std::vector<std::uint8_t>{200, 100, 0, 105, 60, 15, 10, 20, 30}));
  EXPECT_EQ(on_background(layer, {10, 20, 30}).rgb, image.rgb);
  Image other(1, 3);
  EXPECT_THROW(compose(other, layer), Error);
}

TEST(Rasterise, SideViewTurnsAboutTheMiddle) {
  // 2 wide, 1 high, 4 deep: from the side it is 4 wide.
  const Mesh slab = box_mesh({-1, -0.5, -2}, {1, 0.5, 2});
  const Image side = render_side_view({&slab, {0, 0, 1000}}, centred_camera(10000, 60, 40), 60, 40);
  const auto is_white = [&](int x, int y) {
    return side.pixel(x, y)[0] == 255 && side.pixel(x, y)[2] == 255;
  };
  EXPECT_TRUE(is_white(9, 20));
  EXPECT_FALSE(is_white(11, 20));
  EXPECT_FALSE(is_white(48, 20));
  EXPECT_TRUE(is_white(50, 20));
  EXPECT_TRUE(is_white(30, 14));
  EXPECT_FALSE(is_white(30, 16));
}

}  // namespace
}  // namespace sinew

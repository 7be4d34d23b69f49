// Inside the rasteriser: faces on their way to the screen, clipped, projected, snapped to a grid.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "hand/rasterise.h"

namespace sinew::raster {

/// The grid is 1/512 pixel, counted from the middle of the picture. Vertices lie on even lines, samples on
/// odd ones (see kSamples).
inline constexpr int kUnits = 512;
inline constexpr int kVertexLines = 256;  // per pixel
/// Triangles are cut at this distance from the middle of the picture: 16384 pixels, 2^23 units. Edge
/// functions stay below 2^50 and are exact in int64 and in double.
inline constexpr double kGuardPixels = 16384;

/// A triangle on the screen, positive area (x right, y down). Edge i is opposite of vertex i.
struct Triangle {
  std::array<std::int32_t, 3> x, y;  // units
  std::array<float, 3> inverse_z;    // 1/metres
  std::array<Vec3f, 3> value;        // normals, towards the camera's side of the face; or colours
  std::uint32_t instance = 0;
  bool is_lit = true;     // by its normals; else it shows its colours
  bool is_front = false;  // its outside faces the camera
};

/// Small enough that edge functions fit into 32 bits wherever a pixel meets the triangle's box: products of
/// two sides, one of them a pixel longer, twice.
inline constexpr std::int32_t kSmallSide = 60 * kUnits;
bool is_small(const Triangle& triangle);

struct Frame {
  int width = 0, height = 0;  // pixels
  PinholeCamera camera;
};

/// Appends what can be seen of the faces of one mesh.
void project_faces(const MeshInstance& instance, std::uint32_t number, const Frame& frame,
                   std::vector<Triangle>& out);

}  // namespace sinew::raster

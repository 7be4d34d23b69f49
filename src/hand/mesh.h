// Triangle meshes: plain data, normals, mirror images, the closed wrist.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hand/camera.h"

namespace sinew {

using Vec3f = std::array<float, 3>;
using Face = std::array<std::uint32_t, 3>;

/// Vertices in metres, x right, y down, z away from the camera. Faces run counter-clockwise seen from
/// outside: cross(b - a, c - a) points out of the hand, as MANO's do.
struct Mesh {
  std::vector<Vec3f> vertices;
  std::vector<Face> faces;
};

/// MANO's mesh, whose wrist close_wrist() knows how to close.
inline constexpr std::size_t kManoVertices = 778;
inline constexpr std::size_t kWristFaces = 14;

/// True when the face names vertices that exist and are finite.
bool is_sound(const Mesh& mesh, const Face& face);
/// Smooth unit normals, each face weighted by its area; (0,0,1) where no face with an area meets a vertex.
/// Faces that are not sound are left out.
std::vector<Vec3f> vertex_normals(const Mesh& mesh);
/// The other hand: x negated and (i,j,k) -> (i,k,j), so that faces still look outwards (spec hamer 5.3).
/// Exact.
Mesh mirrored(const Mesh& mesh);
/// Adds the original's 14 triangles over the open wrist (spec hamer 5.5). `is_right` false: the mesh is a
/// mirrored one. Throws Error (kMismatch) unless there are 778 vertices.
void close_wrist(Mesh& mesh, bool is_right = true);
Mesh translated(const Mesh& mesh, const Vec3& by);
/// y and z negated: x right, y up, z towards the viewer, as OpenGL, glTF and the original's OBJ files have
/// it. A rotation by 180 degrees about x, so faces keep their order. Exact.
Mesh in_opengl_axes(const Mesh& mesh);
/// Rotated by 90 degrees about y (down) through the middle of its bounding box: (x, z) -> (z, -x). Vertices
/// that are not finite stay as they are.
Mesh turned_sideways(const Mesh& mesh);

}  // namespace sinew

// Meshes as files that other programs open: OBJ, PLY, GLB (glTF 2.0 binary), NPZ.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "hand/mesh.h"
#include "hand/rasterise.h"

namespace sinew {

/// All writers: files appear whole or not at all. Axes are the mesh's own (see in_opengl_axes()). Throw
/// Error: kMismatch (a vertex that is not finite, a face that names a vertex that is not there: the text
/// gives its number), kIo.

/// Vertices "x y z r g b" as the original's files, colours 0..1, then faces counted from one.
void write_obj(const std::string& path, const Mesh& mesh, const Vec3f& colour = kHandColour);

/// Binary little-endian, with normals and 8-bit colours.
void write_ply(const std::string& path, const Mesh& mesh, const Vec3f& colour = kHandColour);

/// Arrays vertices [V,3] f32, faces [F,3] u32, normals [V,3] f32. For more arrays use NpzWriter.
void write_mesh_npz(const std::string& path, const Mesh& mesh);

/// Bones for a GLB. Joint 0 is the root, parents come before their children. The mesh is as posed by
/// `rotations`: the file shows it so, and viewers can pose it further.
struct Skin {
  std::span<const Vec3> joints;  // at rest, in the mesh's axes and place, metres
  std::span<const int> parents;  // -1 for joint 0
  std::span<const double>
      rotations;  // a row-major matrix per joint relative to its parent, as MANO's; empty: rest
  std::span<const float>
      weights;  // [V, joints]; the four largest of a vertex are kept and made to sum to one
};

struct GlbOptions {
  Vec3f colour = kHandColour;  // sRGB
  const Skin* skin = nullptr;  // null: a plain mesh
  /// Camera axes (x right, y down, z away) are not glTF's (y up): turns the scene by 180 degrees about x.
  bool from_camera_axes = true;
};

/// Positions, smooth normals, one material; with a skin 16 (or up to 255) joint nodes, joint indices and
/// weights. Also throws kMismatch (a skin whose sizes, order or numbers do not fit) and kUsage (no vertices
/// or faces, which glTF cannot express).
void write_glb(const std::string& path, const Mesh& mesh, const GlbOptions& options = {});

}  // namespace sinew

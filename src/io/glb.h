// The skinned mesh of a binary glTF 2.0 file (.glb).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinew {

struct GlbJoint {
  std::string name;                       // of its node
  int parent = -1;                        // nearest joint above it in the node tree, or -1
  std::array<double, 16> inverse_bind{};  // row-major: mesh to joint space, as the skin was bound
};

/// Everything is in the mesh's own space, where the skin was bound.
struct GlbSkinnedMesh {
  std::vector<std::array<float, 3>> positions;
  std::vector<std::array<std::uint16_t, 4>> joints;  // indices into `skeleton`
  std::vector<std::array<float, 4>> weights;         // as stored, 8 and 16 bit ones divided by 255 and 65535
  std::vector<std::array<std::uint32_t, 3>> triangles;
  std::vector<GlbJoint> skeleton;
};

/// Reads the first node that has a mesh and a skin; all triangle lists of its mesh become one. Textures,
/// normals, animations and other nodes are ignored. Every offset is checked against its view, every view
/// against the binary chunk, every index against what it names. Throws Error: kFormat, kLimit, kMismatch (no
/// skinned mesh), kUnsupported (required extensions, sparse accessors, outside buffers, other primitives),
/// each naming file and place.
GlbSkinnedMesh parse_glb(std::span<const std::byte> bytes, const std::string& name);
/// The same of a file. Throws Error: kNotFound, kIo, and as above.
GlbSkinnedMesh read_glb(const std::string& path);

/// True when the bytes begin as every GLB does.
bool is_glb(std::span<const std::byte> bytes);

}  // namespace sinew

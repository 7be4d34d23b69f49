// Inside the GLB writer: a skin in glTF's terms.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hand/mesh_files.h"

namespace sinew {

struct GltfJoint {
  int parent = -1;
  std::array<double, 3> translation{};   // relative to the parent
  std::array<double, 4> rotation{};      // unit quaternion x, y, z, w, relative to the parent
  std::array<float, 16> inverse_bind{};  // column-major
};

struct GltfSkin {
  std::vector<GltfJoint> joints;
  std::vector<std::array<std::uint8_t, 4>> indices;  // per vertex, heaviest first; 0 where the weight is 0
  std::vector<std::array<float, 4>> weights;         // per vertex, sum 1
};

/// Throws Error (kMismatch) when sizes, order of joints or numbers do not fit; `path` is for the message.
GltfSkin to_gltf(const std::string& path, const Skin& skin, std::size_t vertices);

}  // namespace sinew

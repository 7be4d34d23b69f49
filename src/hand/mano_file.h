// The user's own MANO files. The model's licence forbids shipping it; nothing of it is here.
#pragma once

#include <string>

#include "hand/hand_model.h"
#include "io/checkpoint.h"

namespace sinew {

/// Vertices of MANO's mesh at the tips of thumb, index, middle, ring, pinky (spec hamer 5.2).
inline constexpr std::array<std::uint32_t, 5> kManoTips = {744, 320, 443, 554, 671};
inline constexpr std::size_t kManoVertices = 778;

/// Reads MANO_RIGHT.pkl as published, or an npz or safetensors file with the same keys (v_template,
/// shapedirs, posedirs, J_regressor dense, weights, f, kintree_table), told apart by content. Of more than
/// ten shapes the first ten are taken. Throws Error as the format's reader does, and kMismatch naming file,
/// key, found and expected.
HandModelData load_mano(const std::string& path);

/// The same from tensors under those keys, for any number of vertices; `tips` stay kManoTips.
HandModelData mano_from_tensors(const Checkpoint& file, const std::string& name);

}  // namespace sinew

// A hand model from whatever file holds one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hand/hand_model.h"

namespace sinew {

/// Opens MANO (.pkl as published, .npz, .safetensors; mano_file.h) or the WebXR generic hand (.glb;
/// glb_hand.h), told apart by content. Throws Error as their readers do.
std::shared_ptr<const HandModel> open_hand_model(const std::string& path);

/// The hand that comes with sinew: the WebXR generic hand among the assets of set-up, in one of `folders`
/// (data_folders() of base/data_folder.h), with MANO's tree and axes, laid flat, without shapes (glb_hand.h).
/// Throws Error with a hint how to get the file: kNotFound when there is none, or as its reader does when it
/// is damaged.
std::shared_ptr<const HandModel> builtin_hand_model(std::span<const std::string> folders);
inline constexpr const char* kBuiltinHandAsset = "generic_hand_right.glb";

/// HaMeR's published layout has MANO beside the checkpoint: the path of data/mano/MANO_RIGHT.pkl in the
/// folder `model` or up to three folders above it (_DATA/hamer_ckpts/checkpoints/hamer.ckpt has it in _DATA),
/// or "".
std::string published_mano_beside(const std::string& model);

}  // namespace sinew

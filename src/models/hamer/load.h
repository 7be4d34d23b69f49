// Finding a HaMeR model on disk: the published folder, a checkpoint, or safetensors.
#pragma once

#include <string>
#include <vector>

#include "models/hamer/config.h"
#include "plan/sources.h"

namespace sinew::hamer {

struct Model {
  std::string checkpoint_path;
  std::string config_path;       // empty when there is none
  std::string mean_params_path;  // empty unless the init_* buffers came from it
  std::string format;            // of the checkpoint: "torch archive", "safetensors"
  Config config;
  Sources sources;
};

/// The checkpoint file of a model folder. Throws Error (kNotFound) naming the places that were tried, or the
/// candidates when there are several.
std::string find_checkpoint(const std::string& folder);

/// `path` is a checkpoint file, or a folder: the published `_DATA`, `hamer_ckpts`, or one with a hamer.ckpt,
/// a model.safetensors or a single checkpoint in it. model_config.yaml is looked for beside the checkpoint
/// and one folder above; mano_mean_params.npz (for checkpoints without init_* buffers) there too and in
/// `data/` of the published layout. All tensors are checked. Throws Error as the readers and check_tensors
/// do; kNotFound names the places that were tried.
Model load_model(const std::string& path);

/// Everything that the plan's bytes come from: the checkpoint, then the configuration and the mean parameters
/// when there are. For content_digest(), in this order.
std::vector<std::string> model_files(const Model& model);

/// `model`'s checkpoint as the user knows it, for records: file name, format, sizes and number of parameters.
std::string describe(const Model& model);

}  // namespace sinew::hamer

#include "models/hamer/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "io/checkpoint.h"

namespace sinew::hamer {
namespace {

namespace fs = std::filesystem;

/// The first of these that is a regular file; empty when none is.
fs::path first_file(const std::vector<fs::path>& candidates) {
  std::error_code ignored;
  const auto found =
      std::ranges::find_if(candidates, [&](const fs::path& p) { return fs::is_regular_file(p, ignored); });
  return found == candidates.end() ? fs::path{} : *found;
}

/// mano_mean_params.npz holds pose [96], shape [10] and cam [3]; the checkpoint's buffers, when present, win
/// (spec hamer 2.2).
void add_mean_params(Model& model) {
  const std::map<std::string, std::string> names = {
      {"mano_head.init_hand_pose", "pose"}, {"mano_head.init_betas", "shape"}, {"mano_head.init_cam", "cam"}};
  const bool complete =
      std::ranges::all_of(names, [&](const auto& pair) { return model.sources.find(pair.first) != nullptr; });
  if (complete) return;
  const fs::path near = fs::path(model.checkpoint_path).parent_path();
  const fs::path found =
      first_file({near / "mano_mean_params.npz", near / "../mano_mean_params.npz",
                  near / "../../mano_mean_params.npz", near / "data/mano_mean_params.npz",
                  near / "../data/mano_mean_params.npz", near / "../../data/mano_mean_params.npz"});
  if (found.empty()) return;  // check_tensors will name what is missing
  model.mean_params_path = found.lexically_normal().string();
  const std::shared_ptr<const Checkpoint> npz = open_checkpoint(model.mean_params_path);
  for (const auto& [name, original] : names) {
    TensorView view = npz->get(original);
    if (view.shape.rank() == 1) {  // [96] in the file, [1,96] in the state_dict
      view.strides[1] = view.strides[0];
      view.shape = {1, view.shape[0]};
    }
    model.sources.add(name, view, npz);
  }
}

}  // namespace

std::string find_checkpoint(const std::string& path) {
  const fs::path folder = path;
  const std::vector<fs::path> published = {
      folder / "hamer.ckpt",
      folder / "checkpoints/hamer.ckpt",
      folder / "hamer_ckpts/checkpoints/hamer.ckpt",
      folder / "_DATA/hamer_ckpts/checkpoints/hamer.ckpt",
      folder / "model.safetensors",
      folder / "hamer.safetensors",
  };
  if (fs::path found = first_file(published); !found.empty()) return found.string();
  std::vector<fs::path> others;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".ckpt" || extension == ".pt" || extension == ".pth" || extension == ".safetensors") {
      others.push_back(entry.path());
    }
  }
  if (error) throw fail(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  if (others.size() == 1) return others.front().string();
  std::vector<std::string> names;
  for (const fs::path& p : others.empty() ? published : others) names.push_back(p.string());
  std::ranges::sort(names);
  if (others.empty()) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("{}: no checkpoint; looked for {}", folder.string(), fmt::join(names, ", ")),
                "give the checkpoint file itself");
  }
  throw Error(ErrorCode::kNotFound,
              fmt::format("{}: several checkpoints: {}", folder.string(), fmt::join(names, ", ")),
              "give one of them");
}

Model load_model(const std::string& path) {
  std::error_code ignored;
  Model model;
  model.checkpoint_path = fs::is_directory(path, ignored) ? find_checkpoint(path) : path;
  const std::shared_ptr<const Checkpoint> checkpoint = open_checkpoint(model.checkpoint_path);
  model.format = checkpoint->format();
  model.sources.add_all(checkpoint);
  model.config = derive_config(model.sources, model.checkpoint_path);
  const fs::path near = fs::path(model.checkpoint_path).parent_path();
  const fs::path yaml = first_file({near / "model_config.yaml", near / "../model_config.yaml"});
  if (!yaml.empty()) {
    model.config_path = yaml.lexically_normal().string();
    apply_yaml(model.config_path, model.config);
  }
  add_mean_params(model);
  check_tensors(model.sources, model.config, model.checkpoint_path);
  return model;
}

std::vector<std::string> model_files(const Model& model) {
  std::vector<std::string> files = {model.checkpoint_path, model.config_path, model.mean_params_path};
  std::erase(files, "");
  return files;
}

std::string describe(const Model& model) {
  std::int64_t parameters = 0;
  for (const ExpectedTensor& tensor : expected_tensors(model.config)) parameters += tensor.shape.count();
  return fmt::format("HaMeR, backbone {}x{}, head {}x{}, {:.1f} M parameters, {} {}", model.config.depth,
                     model.config.embed, model.config.head_depth, model.config.head_dim,
                     static_cast<double>(parameters) / 1e6, model.format,
                     fs::path(model.checkpoint_path).filename().string());
}

}  // namespace sinew::hamer

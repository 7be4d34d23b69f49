// sinew synth hamer|picture
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/data_folder.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/support.h"
#include "hand/hand_model_file.h"
#include "hand/picture.h"
#include "hand/posed_picture.h"
#include "io/atomic_file.h"
#include "io/image_codec.h"
#include "models/hamer/synth.h"

namespace sinew::cli {
namespace {

struct HamerOptions {
  std::string out;
  std::string generator = "normal";
  std::string format = "torch";
  std::string dtype = "f32";
  std::uint64_t seed = 0;
  int depth = 32;
  int head_depth = 6;
  int width = 1280;
  int mlp = 0;
  int threads = 0;
};

int synth_hamer(const HamerOptions& options) {
  hamer::SynthOptions synth;
  synth.config.depth = options.depth;
  synth.config.head_depth = options.head_depth;
  synth.config.embed = options.width;
  synth.config.mlp = options.mlp > 0 ? options.mlp : 4 * options.width;
  synth.generator = options.generator == "hpg1" ? hamer::Generator::kHpg1 : hamer::Generator::kNormal;
  synth.seed = options.seed;
  synth.dtype = options.dtype == "bf16" ? DType::kBF16 : DType::kF32;
  synth.format =
      options.format == "torch" ? hamer::CheckpointFormat::kTorch : hamer::CheckpointFormat::kSafetensors;
  hamer::check_synthetic_sizes(synth.config);  // before anything is left on disk
  ThreadPool pool(options.threads == 0 ? available_cpus() : options.threads);
  make_folder(options.out);
  const std::filesystem::path folder = options.out;
  const std::string name =
      synth.format == hamer::CheckpointFormat::kTorch ? "hamer.ckpt" : "model.safetensors";
  hamer::write_synthetic_checkpoint((folder / name).string(), synth, pool);
  write_file_atomically((folder / "model_config.yaml").string(), hamer::synthetic_config_yaml(synth.config));
  fmt::print("{}\n", (folder / name).string());
  return 0;
}

std::function<int()> declare_hamer(Command& command) {
  const auto options = std::make_shared<HamerOptions>();
  command.required("--out", options->out, "Folder to write the checkpoint and model_config.yaml into");
  command.option("--depth", options->depth, "Blocks of the backbone");
  command.option("--head-depth", options->head_depth, "Layers of the head");
  command.option("--width", options->width, "Channels of the backbone, a multiple of 80");
  command.option("--mlp", options->mlp, "Width of the backbone's MLP; 0: four times the width");
  command.option("--seed", options->seed, "Seed");
  command.choice("--generator", options->generator, {"normal", "hpg1"},
                 "Bell-shaped weights scaled like a trained network's, or the integer-only HPG1");
  command.choice("--format", options->format, {"torch", "safetensors"},
                 "hamer.ckpt as published, or model.safetensors");
  command.choice("--dtype", options->dtype, {"f32", "bf16"}, "Type of the stored weights");
  command.option("--threads", options->threads, "Threads; 0: all CPUs");
  return [options] { return synth_hamer(*options); };
}

struct PictureOptions {
  std::string out;
  std::string boxes;
  std::string joints;
  std::string hand_model;
  std::string side = "right";
  int width = 640;
  int height = 480;
  std::uint64_t seed = 0;
};

/// As parse_boxes reads it, whatever bytes the file name has.
std::string boxes_json(const PictureOptions& options, const HandPicture& picture) {
  using Json = nlohmann::ordered_json;
  Json entry;
  entry["file"] = file_name_of(options.out);
  entry["size"] = {options.width, options.height};
  entry["hands"] =
      Json::array({Json::array({picture.x1, picture.y1, picture.x2, picture.y2, picture.is_right ? 1 : 0})});
  Json boxes;
  boxes["images"] = Json::array({entry});
  return boxes.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// As read_truth reads it.
std::string joints_json(const PictureOptions& options, const HandPicture& picture) {
  using Json = nlohmann::ordered_json;
  Json joints;
  joints["image"] = file_name_of(options.out);
  joints["is_right"] = picture.is_right ? 1 : 0;
  joints["camera"] = nullptr;
  if (picture.camera) {
    joints["camera"] = {
        {"model", "pinhole"},
        {"focal_px", picture.camera->fx},
        {"cx", picture.camera->cx},
        {"cy", picture.camera->cy},
        {"depth_offset_m", 0},
        {"note", "u = cx + f*x/z, v = cy + f*y/z, pixel 0 covers 0..1; x right, y down, z away"}};
  }
  joints["joint_order"] =
      "wrist; thumb cmc,mcp,ip,tip; index mcp,pip,dip,tip; middle; ring; pinky (21, the order of MediaPipe "
      "and OpenPose)";
  joints["joints_px"] = picture.joints_2d;
  joints["joints_m"] = picture.joints_3d;
  return joints.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The mesh that is asked for; null: the capsule hand. Without a wish it is the built-in mesh where set-up
/// has fetched it.
std::shared_ptr<const HandModel> picture_model(const std::string& wish) {
  if (wish == "capsules") return nullptr;
  if (wish == "builtin") return builtin_hand_model(data_folders());
  if (!wish.empty()) return open_hand_model(wish);
  try {
    return builtin_hand_model(data_folders());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    return nullptr;
  }
}

int synth_picture(const PictureOptions& options) {
  const bool is_right = options.side == "right";
  const std::shared_ptr<const HandModel> model = picture_model(options.hand_model);
  if (model == nullptr && !is_right) {
    throw Error(ErrorCode::kUsage, "--side left: the hand of capsules is a right one",
                "--hand-model builtin (`make assets` fetches it) or a file");
  }
  const HandPicture picture =
      model == nullptr
          ? draw_hand_picture(options.width, options.height, options.seed)
          : draw_posed_hand_picture(*model, options.width, options.height, options.seed, is_right);
  write_image(options.out, picture.image);
  if (!options.boxes.empty()) write_file_atomically(options.boxes, boxes_json(options, picture));
  if (!options.joints.empty()) write_file_atomically(options.joints, joints_json(options, picture));
  fmt::print("{} box {},{},{},{},{} of {}\n", options.out, picture.x1, picture.y1, picture.x2, picture.y2,
             options.side, model == nullptr ? "capsules" : model->name());
  return 0;
}

std::function<int()> declare_picture(Command& command) {
  const auto options = std::make_shared<PictureOptions>();
  command.required("--out", options->out, "PNG or JPEG file to write");
  command.option("--boxes", options->boxes, "Also write the hand's box, as `sinew hands --boxes` reads it");
  command.option("--joints", options->joints,
                 "Also write the 21 joints in pixels and metres, as `sinew hands --truth` reads them");
  command.option(
      "--hand-model", options->hand_model,
      "What is drawn: builtin, a file as `sinew hands --hand-model` takes it, or capsules; default: "
      "builtin where its asset is found, else capsules");
  command.choice("--side", options->side, {"right", "left"}, "Which hand");
  command.option("--width", options->width, "Pixels");
  command.option("--height", options->height, "Pixels");
  command.option("--seed", options->seed, "Pose, place, skin and background");
  return [options] { return synth_picture(*options); };
}

}  // namespace

std::function<int()> declare_synth(Command& command) {
  command.verb("hamer", "A HaMeR checkpoint in the published format with seeded random weights",
               declare_hamer);
  command.verb("picture", "A picture of a shaded hand", declare_picture);
  return {};
}

}  // namespace sinew::cli

// sinew hands INPUT...
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/data_folder.h"
#include "base/error.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/hands_boxes.h"
#include "cli/hands_options.h"
#include "cli/hands_output.h"
#include "cli/inputs.h"
#include "cli/support.h"
#include "hand/hand_model_file.h"
#include "hand/photo.h"
#include "hand/save.h"
#include "hand/truth.h"
#include "io/image_codec.h"
#include "runtime/finder.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

constexpr const char* kBuiltinHand = "builtin";
constexpr const char* kSkeleton = "skeleton";

/// The built-in mesh where the assets are, else the skeleton, with a notice.
std::shared_ptr<const HandModel> builtin_mesh_if_there() {
  try {
    return builtin_hand_model(data_folders());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    fmt::print(stderr, "sinew: no hand mesh, the skeleton alone is posed: {}\n", one_line(error));
    return nullptr;
  }
}

/// What --hand-model names; without it the MANO file that the published
/// checkpoint's folder holds, else the built-in mesh. Null: the skeleton.
std::shared_ptr<const HandModel> hand_model(const HandsOptions& options) {
  if (options.hand_model == kSkeleton) return nullptr;
  if (options.hand_model == kBuiltinHand) return builtin_hand_model(data_folders());
  if (!options.hand_model.empty()) return open_hand_model(options.hand_model);
  const std::string mano = options.model.empty() ? "" : published_mano_beside(options.model);
  return mano.empty() ? builtin_mesh_if_there() : open_hand_model(mano);
}

class Hands {
 public:
  Hands(const HandsOptions& options, BoxSource boxes, const std::unique_ptr<Backend>& backend)
      : boxes_(std::move(boxes)),
        finder_(open_finder(options,
                            *backend)),  // before the mesh: without networks its notice is beside the point
        model_(hand_model(options)),
        output_(options, model_) {
    PhotoOptions photo;
    photo.finder.max_hands = options.max_hands;
    photo.finder.min_score = options.min_score;
    // A second look halves the scatter of the full network's landmarks and does nothing for the lite one's
    // (hand/finder.cc has the figures).
    photo.finder.refine = !options.lite;
    photo.finder.thorough = options.thorough;
    photo.rescale = options.rescale;
    photo.model = model_;
    if (!options.intrinsics.empty()) photo.camera = parse_intrinsics(options.intrinsics);
    const bool landmarks_only = options.model.empty();
    std::unique_ptr<HandPipeline> network;
    if (landmarks_only) {
      context_.model = kLandmarksModel;
      context_.crop = "mediapipe";
    } else {
      network = open_network(options, *backend, photo);
    }
    context_.backend = backend->describe();
    context_.rescale = options.rescale;
    if (model_ != nullptr) context_.hand_model = model_->name();
    if (!options.truth.empty()) truth_ = read_truth(options.truth);
    photo_ = std::make_unique<PhotoHands>(std::move(finder_), std::move(network), photo);
  }

  /// All hands of one picture; its files appear only when all of them worked.
  void picture(const Input& input, Progress& progress) {
    const Stopwatch watch;
    const Image frame = read_image(input.path);
    context_.decode_ms = watch.elapsed_ms();
    const auto boxes = boxes_.boxes(input.path, frame);
    const std::vector<HandResult> results = boxes ? photo_->in_boxes(frame, *boxes) : photo_->find(frame);
    progress.hide();
    output_.publish(input, frame, results, context_);
    if (truth_) output_.tell_error(input, results, *truth_);
    hands_ += results.size();
    if (results.empty()) {
      ++without_;
      fmt::print(stderr, "sinew: {}: {}\n", input.path,
                 boxes ? "its list of boxes is empty" : "no hand found");
    }
  }

  std::size_t hands() const { return hands_; }
  std::size_t pictures_without() const { return without_; }

 private:
  static FinderNetworks open_networks(const HandsOptions& options, Backend& backend) {
    try {
      const FinderSize size = options.lite ? FinderSize::kLite : FinderSize::kFull;
      return open_finder_networks(backend, size, data_folders());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      throw Error(error.code(), error.what(),
                  fmt::format("{}; --model with --box or --boxes needs no networks", error.hint()));
    }
  }

  /// Null where boxes and a network are given.
  std::unique_ptr<HandFinder> open_finder(const HandsOptions& options, Backend& backend) {
    if (!boxes_.needs_detector() && !options.model.empty()) return nullptr;
    FinderNetworks networks = open_networks(options, backend);
    context_.policy = to_string(networks.policy);
    return std::make_unique<HandFinder>(std::move(networks.palm), std::move(networks.landmark));
  }

  std::unique_ptr<HandPipeline> open_network(const HandsOptions& options, Backend& backend,
                                             const PhotoOptions& photo) {
    RuntimeOptions runtime_options;
    runtime_options.policy = policy_option(options.policy);
    runtime_options.u8_input = options.input == "u8";
    runtime_options.cache = cache_options(options.cache);
    runtime_options.observer = progress_observer();
    HamerRuntime runtime = open_hamer(options.model, backend, runtime_options);
    HandOptions hand;
    hand.rescale = options.rescale;
    hand.crop = parse_crop(options.crop);
    hand.model = model_;
    hand.camera = photo.camera;
    context_.model = runtime.description;
    context_.policy = to_string(runtime.policy);
    context_.crop = options.crop;
    return std::make_unique<HandPipeline>(std::move(runtime.session), runtime.config, hand);
  }

  RecordContext context_;
  BoxSource boxes_;
  std::unique_ptr<HandFinder> finder_;  // until photo_ has it
  std::shared_ptr<const HandModel> model_;
  HandsOutput output_;
  std::unique_ptr<PhotoHands> photo_;
  std::optional<HandTruth> truth_;
  std::size_t hands_ = 0, without_ = 0;
};

void check(const HandsOptions& options) {
  if (!options.boxes.empty() && !options.boxes_file.empty()) {
    throw fail(ErrorCode::kUsage, "--box and --boxes exclude each other");
  }
  if (!(options.rescale > 0) || options.rescale > 100) {
    throw fail(ErrorCode::kUsage, "--rescale {}: expected a number above 0, up to 100", options.rescale);
  }
  if (options.max_hands < 1 || options.max_hands > kMostHands) {
    throw fail(ErrorCode::kUsage, "--max-hands {}: expected 1 to {}", options.max_hands, kMostHands);
  }
  if (!(options.min_score > 0 && options.min_score < 1)) {
    throw fail(ErrorCode::kUsage, "--min-score {}: expected a number between 0 and 1", options.min_score);
  }
  if (options.model.empty() && options.detector == "none") {
    throw Error(ErrorCode::kUsage, "--detector none without --model: nothing is left that sees a hand",
                "give a HaMeR checkpoint, or let the detector's landmarks pose the hands");
  }
  if (!options.intrinsics.empty()) parse_intrinsics(options.intrinsics);
  if (!options.save.empty()) parse_save_words(options.save);
  policy_option(options.policy);
}

void check_inputs(const HandsOptions& options, const std::vector<Input>& inputs) {
  if (!options.boxes.empty() && inputs.size() > 1) {
    throw Error(ErrorCode::kUsage, fmt::format("--box with {} images", inputs.size()),
                "boxes of several images go into a file, see --boxes");
  }
  if (!options.truth.empty() && inputs.size() > 1) {
    throw fail(ErrorCode::kUsage, "--truth with {} images: it holds the joints of one", inputs.size());
  }
  if (!options.out.empty() && is_input_folder(options.inputs, options.out, options.recursive)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--out {} is a folder that pictures are read from", options.out),
                "the pictures written there would be inputs of the next run");
  }
}

int run(const HandsOptions& options) {
  check(options);
  const std::vector<Input> inputs = expand_inputs(options.inputs, options.recursive);
  check_inputs(options, inputs);
  BoxSource boxes(options);
  Hands hands(options, std::move(boxes), make_backend(options.backend, machine_options(options.machine)));
  std::vector<std::string> failures;
  {
    Progress progress("hands", inputs.size(), ProgressUnit::kItems);
    for (const Input& input : inputs) {
      try {
        hands.picture(input, progress);
      } catch (const Error& error) {
        const bool named = std::string_view(error.what()).starts_with(input.path);
        failures.push_back(one_line(named ? error : error.prefixed(input.path + ": ")));
      }
      if (inputs.size() > 1) progress.advance(1);
    }
  }
  if (inputs.size() > 1 && !options.json) {
    fmt::print("{} images: {} hands, {} images without a hand, {} failed\n", inputs.size(), hands.hands(),
               hands.pictures_without(), failures.size());
    std::fflush(stdout);
  }
  for (const std::string& failure : failures) fmt::print(stderr, "sinew: error: {}\n", failure);
  return failures.empty() ? 0 : 1;
}

void declare_finding(Command& command, HandsOptions& options) {
  command.choice("--detector", options.detector, {"mediapipe", "none"},
                 "What finds the hands; none: boxes are given, or the whole "
                 "image is one right hand");
  command.flag("--lite", options.lite, "The smaller of the detector's networks: faster, less exact");
  command.flag(
      "--thorough", options.thorough,
      "Search margins and tiles of the image even when a hand has been found: near and far hands in one "
      "image; slower");
  command.option("--max-hands", options.max_hands, "At most so many hands of an image");
  command.option("--min-score", options.min_score, "Of the detector, 0 to 1");
  command.repeated("--box", options.boxes,
                   "x1,y1,x2,y2[,left|right] in pixels, x2 and y2 exclusive; "
                   "may be repeated; no detector then");
  command.option("--boxes", options.boxes_file, "JSON file with the boxes of each image; no detector then");
}

void declare_posing(Command& command, HandsOptions& options) {
  command.option("--model", options.model,
                 "HaMeR checkpoint: the published folder, a .ckpt or a "
                 ".safetensors file; without one hands are "
                 "posed from the detector's landmarks");
  command.option("--hand-model", options.hand_model,
                 "MANO_RIGHT.pkl, its arrays as .npz or .safetensors, the "
                 "WebXR generic hand's .glb, builtin "
                 "(that hand from the assets) or skeleton; default: "
                 "data/mano/MANO_RIGHT.pkl beside the model, "
                 "else builtin");
  command.option("--intrinsics", options.intrinsics,
                 "fx,fy,cx,cy of the camera in pixels: translations become "
                 "metric; default: the original's "
                 "focal length of 5000/256 times the longer side");
  command.option("--rescale", options.rescale, "Side of the crop relative to the box");
  command.choice("--crop", options.crop, kCropWords, "The reference port's crop, or the original demo's");
  command.option("--policy", options.policy,
                 "Numeric policy: f32 or bf16; default: the fastest that meets "
                 "its accuracy bar here");
  command.choice("--backend", options.backend, {"cpu", "reference"}, "What runs the networks");
  command.choice("--input", options.input, {"f32", "u8"},
                 "Normalise pixels, or fold the normalisation into the weights");
  declare_machine(command, options.machine);
  declare_cache(command, options.cache);
}

}  // namespace

std::function<int()> declare_hands(Command& command) {
  const auto options = std::make_shared<HandsOptions>();
  command.positionals("INPUT", options->inputs,
                      "JPEG or PNG files, folders of them, or patterns such as '*.jpg'");
  command.flag("--recursive", options->recursive, "Look into the folders below a folder, too");
  declare_finding(command, *options);
  declare_posing(command, *options);
  command.option("--out", options->out,
                 "Folder for records and pictures; default sinew_out, or none "
                 "with --json");
  command.option("--save", options->save,
                 "What is written for each hand: a list of json, png, obj, "
                 "ply, glb, npz; default json,png");
  command.option("--truth", options->truth,
                 "JSON file with the known joints of the one image: print how "
                 "far the nearest hand is from them");
  command.flag("--json", options->json, "Print one JSON record per hand, one a line");
  return [options] { return run(*options); };
}

}  // namespace sinew::cli

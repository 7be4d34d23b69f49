// sinew hands IMAGE... --model MODEL
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/support.h"
#include "hand/boxes.h"
#include "hand/hand_model_file.h"
#include "hand/pipeline.h"
#include "hand/record.h"
#include "hand/save.h"
#include "io/atomic_file.h"
#include "io/image_codec.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

struct Options {
  std::vector<std::string> images;
  std::string model;
  std::string hand_model;
  std::string save;
  std::vector<std::string> boxes;
  std::string boxes_file;
  double rescale = 2.0;
  std::string crop = "pillow";
  std::string policy;
  std::string backend = "cpu";
  std::string input = "f32";
  int threads = 0;
  std::string out;
  bool json = false;
};

constexpr const char* kDefaultOut = "sinew_out";
constexpr const char* kBuiltinHand = "builtin";

/// What --hand-model names; without it the MANO file that the published checkpoint's folder holds, if any.
std::shared_ptr<const HandModel> hand_model(const Options& options) {
  if (options.hand_model == kBuiltinHand) return nullptr;
  const std::string file =
      options.hand_model.empty() ? published_mano_beside(options.model) : options.hand_model;
  return file.empty() ? nullptr : open_hand_model(file);
}

/// The boxes of each picture, from --box, from --boxes, or the whole picture.
class BoxSource {
 public:
  explicit BoxSource(const Options& options) {
    for (const std::string& text : options.boxes) given_.push_back(parse_box(text));
    if (!options.boxes_file.empty()) {
      file_name_ = options.boxes_file;
      file_ = read_boxes(options.boxes_file);
    }
  }

  std::vector<HandBox> boxes(const std::string& path, const Image& frame) const {
    if (!given_.empty()) return given_;
    if (!file_name_.empty()) return from_file(path, frame);
    fmt::print(stderr, "sinew: {}: no box given, taking the whole image for a right hand\n", path);
    return {HandBox{0, 0, static_cast<double>(frame.width), static_cast<double>(frame.height), true}};
  }

 private:
  std::vector<HandBox> from_file(const std::string& path, const Image& frame) const {
    auto found = file_.find(path);
    if (found == file_.end()) found = file_.find(file_name_of(path));
    if (found == file_.end()) throw fail(ErrorCode::kNotFound, "{}: no entry in {}", path, file_name_);
    const ImageBoxes& boxes = found->second;
    const bool stated = boxes.width > 0;
    if (stated && (boxes.width != frame.width || boxes.height != frame.height)) {
      throw fail(ErrorCode::kMismatch, "{}: {} x {} pixels, {} says {} x {}", path, frame.width, frame.height,
                 file_name_, boxes.width, boxes.height);
    }
    return boxes.hands;
  }

  std::vector<HandBox> given_;
  std::string file_name_;
  std::map<std::string, ImageBoxes> file_;
};

class Hands {
 public:
  Hands(const Options& options, BoxSource boxes, HamerRuntime runtime,
        std::shared_ptr<const HandModel> hand_model)
      : options_(options),
        boxes_(std::move(boxes)),
        runtime_(std::move(runtime)),
        hand_model_(std::move(hand_model)) {
    HandOptions hand;
    hand.rescale = options.rescale;
    hand.crop = parse_crop(options.crop);
    hand.model = hand_model_;
    if (hand_model_ != nullptr) context_.hand_model = hand_model_->name();
    pipeline_ = std::make_unique<HandPipeline>(std::move(runtime_.session), runtime_.config, hand);
    context_.model = runtime_.description;
    context_.backend = runtime_.backend;
    context_.policy = to_string(runtime_.policy);
    context_.crop = options.crop;
    context_.rescale = options.rescale;
    if (!options.save.empty()) save_ = parse_save_formats(options.save);
    folder_ = options.out.empty() && !options.json ? kDefaultOut : options.out;
  }

  /// All hands of one picture; its files appear only when all of them worked.
  void picture(const std::string& path) {
    const Stopwatch watch;
    const Image frame = read_image(path);
    context_.decode_ms = watch.elapsed_ms();
    context_.image = path;
    const std::vector<HandBox> boxes = boxes_.boxes(path, frame);
    std::vector<HandResult> results;
    results.reserve(boxes.size());
    for (const HandBox& box : boxes) results.push_back(pipeline_->run(frame, box));
    for (std::size_t i = 0; i < results.size(); ++i) {
      context_.hand = static_cast<int>(i);
      publish(path, frame, results[i]);
    }
    if (results.empty()) fmt::print(stderr, "sinew: {}: its list of boxes is empty\n", path);
  }

 private:
  void publish(const std::string& path, const Image& frame, const HandResult& result) {
    const std::string record = to_json(result, context_);
    std::string picture;
    if (!folder_.empty()) {
      make_folder(folder_);
      const std::string base =
          (std::filesystem::path(folder_) / fmt::format("{}_{}", unique_stem(path), context_.hand)).string();
      Image overlay = frame;
      if (hand_model_ != nullptr) draw_mesh(overlay, result, *hand_model_);
      draw_hand(overlay, result);
      picture = base + ".png";
      write_image(picture, overlay);
      for (const std::string& format : save_) save_hand(base, format, result, *hand_model_);
      write_file_atomically(base + ".json", record + "\n");
    }
    if (options_.json) {
      fmt::print("{}\n", record);
    } else {
      fmt::print("{} hand {}: {}, {:.1f} ms (crop {:.1f}, model {:.1f}) -> {}\n", path, context_.hand,
                 result.box.is_right ? "right" : "left",
                 result.timings.crop_ms + result.timings.model_ms + result.timings.finish_ms,
                 result.timings.crop_ms, result.timings.model_ms, picture);
    }
    std::fflush(stdout);
  }

  /// a/x.jpg and b/x.png of one call must not overwrite each other's results.
  std::string unique_stem(const std::string& path) {
    std::string stem = stem_of(path);
    const auto shares = [&](const std::string& other) { return stem_of(other) == stem; };
    if (std::ranges::count_if(options_.images, shares) < 2) return stem;
    const auto at = std::ranges::find(options_.images, path) - options_.images.begin();
    return fmt::format("{}_{}", at, stem);
  }

  const Options& options_;
  BoxSource boxes_;
  HamerRuntime runtime_;
  std::shared_ptr<const HandModel> hand_model_;  // null: the built-in skeleton
  std::unique_ptr<HandPipeline> pipeline_;
  RecordContext context_;
  std::vector<std::string> save_;
  std::string folder_;
};

void check(const Options& options) {
  if (options.model.empty()) {
    throw Error(ErrorCode::kUsage, "--model is needed: a HaMeR checkpoint",
                "the published folder, a .ckpt or a .safetensors file; `sinew synth hamer` makes one with "
                "random weights");
  }
  if (!options.boxes.empty() && options.images.size() > 1) {
    throw Error(ErrorCode::kUsage, fmt::format("--box with {} images", options.images.size()),
                "boxes of several images go into a file, see --boxes");
  }
  if (!options.boxes.empty() && !options.boxes_file.empty()) {
    throw fail(ErrorCode::kUsage, "--box and --boxes exclude each other");
  }
  if (!options.save.empty()) {
    parse_save_formats(options.save);
    if (options.json && options.out.empty())
      throw fail(ErrorCode::kUsage, "--save with --json needs --out FOLDER");
  }
  if (!(options.rescale > 0) || options.rescale > 100) {
    throw fail(ErrorCode::kUsage, "--rescale {}: expected a number above 0, up to 100", options.rescale);
  }
}

int run(const Options& options) {
  check(options);
  BoxSource boxes(options);
  RuntimeOptions runtime;
  runtime.backend = options.backend;
  runtime.policy = policy_option(options.policy);
  runtime.threads = options.threads;
  runtime.u8_input = options.input == "u8";
  std::shared_ptr<const HandModel> model = hand_model(options);  // before the checkpoint, which takes longer
  if (!options.save.empty() && model == nullptr) {
    throw Error(ErrorCode::kUsage, "--save needs a mesh, and the built-in skeleton has none",
                "give --hand-model MANO_RIGHT.pkl or the WebXR generic hand's right.glb");
  }
  Hands hands(options, std::move(boxes), open_hamer(options.model, runtime), std::move(model));
  std::vector<std::string> failures;
  {
    Progress progress("hands", options.images.size(), ProgressUnit::kItems);
    for (const std::string& image : options.images) {
      try {
        hands.picture(image);
      } catch (const Error& error) {
        const bool named = std::string_view(error.what()).starts_with(image);
        failures.push_back(one_line(named ? error : error.prefixed(image + ": ")));
      }
      if (options.images.size() > 1) progress.advance(1);
    }
  }
  for (const std::string& failure : failures) fmt::print(stderr, "sinew: error: {}\n", failure);
  return failures.empty() ? 0 : 1;
}

}  // namespace

std::function<int()> declare_hands(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positionals("IMAGE", options->images, "JPEG or PNG files");
  command.option("--model", options->model,
                 "HaMeR checkpoint: the published folder, a .ckpt or a .safetensors file");
  command.option("--hand-model", options->hand_model,
                 "MANO_RIGHT.pkl, its arrays as .npz or .safetensors, the WebXR generic hand's right.glb, or "
                 "builtin; default: data/mano/MANO_RIGHT.pkl beside the model, else builtin");
  command.repeated("--box", options->boxes,
                   "x1,y1,x2,y2[,left|right] in pixels, x2 and y2 exclusive; may be repeated");
  command.option("--boxes", options->boxes_file, "JSON file with the boxes of each image");
  command.option("--rescale", options->rescale, "Side of the crop relative to the box");
  command.choice("--crop", options->crop, kCropWords, "The reference port's crop, or the original demo's");
  command.option("--policy", options->policy,
                 "Numeric policy: f32 or bf16; default: the fastest that meets its accuracy bar here");
  command.choice("--backend", options->backend, {"cpu", "reference"}, "What runs the network");
  command.choice("--input", options->input, {"f32", "u8"},
                 "Normalise pixels, or fold the normalisation into the weights");
  command.option("--threads", options->threads, "Threads; 0: all CPUs");
  command.option("--out", options->out,
                 "Folder for records and pictures; default sinew_out, or none with --json");
  command.option("--save", options->save,
                 "Also write the mesh: a list of obj, ply, glb, npz; needs --hand-model");
  command.flag("--json", options->json, "Print one JSON record per hand, one a line");
  return [options] { return run(*options); };
}

}  // namespace sinew::cli

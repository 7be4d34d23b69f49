#include "cli/hands_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "cli/support.h"
#include "hand/overlay.h"
#include "hand/save.h"
#include "hand/sheet.h"
#include "io/atomic_file.h"
#include "io/image_codec.h"

namespace sinew::cli {
namespace {

constexpr const char* kDefaultOut = "sinew_out";
constexpr const char* kDefaultSave = "json,png";

std::string line_of(const HandResult& result) {
  const HandTimings& t = result.timings;
  std::string line = result.box.is_right ? "right" : "left";
  if (result.found) line += fmt::format(" {:.2f}", result.found->score);
  line += fmt::format(", {:.1f} ms (find {:.1f}, crop {:.1f}, model {:.1f})",
                      t.find_ms + t.crop_ms + t.model_ms + t.finish_ms, t.find_ms, t.crop_ms, t.model_ms);
  return line;
}

}  // namespace

HandsOutput::HandsOutput(const HandsOptions& options, std::shared_ptr<const HandModel> model)
    : model_(std::move(model)),
      folder_(options.out.empty() && !options.json ? kDefaultOut : options.out),
      save_(parse_save_words(options.save.empty() ? kDefaultSave : options.save)),
      json_(options.json) {
  if (!options.save.empty() && folder_.empty())
    throw fail(ErrorCode::kUsage, "--save with --json needs --out FOLDER");
  const auto needy = std::ranges::find_if(save_, [](const std::string& word) { return needs_mesh(word); });
  if (needy != save_.end() && model_ == nullptr) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--save {} needs a mesh, and the built-in skeleton has none", *needy),
                "give --hand-model MANO_RIGHT.pkl, or `make assets` for the built-in "
                "hand");
  }
}

void HandsOutput::tell_error(const Input& input, const std::vector<HandResult>& results,
                             const HandTruth& truth) const {
  if (results.empty())
    throw fail(ErrorCode::kMismatch, "{}: no hand to compare with the known joints", input.path);
  std::vector<JointError> errors;
  errors.reserve(results.size());
  for (const HandResult& result : results) errors.push_back(joint_error(result, truth));
  const auto nearest = std::ranges::min_element(errors, {}, &JointError::mean_px);
  fmt::print(json_ ? stderr : stdout,
             "{} hand {}: error against the known joints {:.2f} px ({:.1f} % "
             "of the hand), in 3D after alignment "
             "{:.1f} mm, {}\n",
             input.path, nearest - errors.begin(), nearest->mean_px, nearest->percent, nearest->aligned_mm,
             nearest->side_is_right ? "side right" : "side WRONG");
}

bool HandsOutput::saves(const std::string& word) const {
  return !folder_.empty() && std::ranges::find(save_, word) != save_.end();
}

std::string HandsOutput::path_of(const Input& input, const std::string& rest) const {
  return (std::filesystem::path(folder_) / fmt::format("{}_{}", input.stem, rest)).string();
}

void HandsOutput::publish(const Input& input, const Image& frame, const std::vector<HandResult>& results,
                          RecordContext context) {
  context.image = input.path;
  if (!folder_.empty() && !results.empty()) make_folder(folder_);
  if (!json_ && !told_model_ && !results.empty()) {
    fmt::print("model: {}\n", context.model);
    told_model_ = true;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    context.hand = static_cast<int>(i);
    const std::string record = to_json(results[i], context);
    write_hand(input, frame, results[i], context.hand, record);
    if (json_) {
      fmt::print("{}\n", record);
    } else {
      const std::string shown = saves("png") ? "png" : save_.front();
      const std::string where =
          folder_.empty() ? "" : " -> " + path_of(input, fmt::format("{}.{}", i, shown));
      fmt::print("{} hand {}: {}{}\n", input.path, i, line_of(results[i]), where);
    }
  }
  if (saves("png") && !results.empty()) {
    Image all = frame;
    draw_all(all, results, model_.get());
    write_image(path_of(input, "all.png"), all);
  }
  std::fflush(stdout);
}

void HandsOutput::write_hand(const Input& input, const Image& frame, const HandResult& result, int hand,
                             const std::string& record) const {
  const std::string base = path_of(input, std::to_string(hand));
  if (saves("png")) write_image(base + ".png", draw_sheet(frame, result, model_.get()));
  for (const std::string& word : save_) {
    if (!folder_.empty() && needs_mesh(word)) save_hand(base, word, result, *model_);
  }
  if (saves("json")) write_file_atomically(base + ".json", record + "\n");
}

}  // namespace sinew::cli

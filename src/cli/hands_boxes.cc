#include "cli/hands_boxes.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "cli/support.h"
#include "io/printable.h"

namespace sinew::cli {

Intrinsics parse_intrinsics(const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& part : split(text, ',')) {
    const auto number = parse_number(part);
    if (!number || !std::isfinite(*number)) break;
    numbers.push_back(*number);
  }
  if (numbers.size() != 4 || split(text, ',').size() != 4 || !(numbers[0] > 0) || !(numbers[1] > 0)) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--intrinsics {}: expected fx,fy,cx,cy in pixels, fx and fy above 0", printable(text)),
        "they come from the camera's calibration: 600,600,320,240 for example");
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

BoxSource::BoxSource(const HandsOptions& options) {
  for (const std::string& text : options.boxes) given_.push_back(parse_box(text));
  if (!options.boxes_file.empty()) {
    file_name_ = options.boxes_file;
    file_ = read_boxes(options.boxes_file);
  }
  needs_detector_ = given_.empty() && file_name_.empty() && options.detector != "none";
}

std::optional<std::vector<HandBox>> BoxSource::boxes(const std::string& path, const Image& frame) const {
  if (!given_.empty()) return given_;
  if (!file_name_.empty()) return from_file(path, frame);
  if (needs_detector_) return std::nullopt;
  const auto width = static_cast<double>(frame.width), height = static_cast<double>(frame.height);
  return std::vector{HandBox{0, 0, width, height, true}};
}

std::vector<HandBox> BoxSource::from_file(const std::string& path, const Image& frame) const {
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

}  // namespace sinew::cli

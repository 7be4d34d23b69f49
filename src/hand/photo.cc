#include "hand/photo.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "hand/boxes.h"
#include "hand/landmark_hand.h"

namespace sinew {
namespace {

/// Of the square around a given box that its hand is looked for in, relative to
/// the box's larger side. The palm detector needs the hand whole with some room
/// around it.
constexpr double kLookAround = 2;

struct Cut {
  Image image;
  int x = 0, y = 0;  // of its first pixel in the frame
};

/// The part of the square around `box` that lies in the frame; a box that
/// touches the frame leaves a pixel.
Cut cut_around(const Image& frame, const HandBox& box) {
  const double half = kLookAround / 2 * std::max(box.x2 - box.x1, box.y2 - box.y1);
  const double center_x = (box.x1 + box.x2) / 2, center_y = (box.y1 + box.y2) / 2;
  const auto within = [](double at, int last) {
    return static_cast<int>(std::clamp(at, 0.0, static_cast<double>(last)));
  };
  Cut cut;
  cut.x = within(std::floor(center_x - half), frame.width - 1);
  cut.y = within(std::floor(center_y - half), frame.height - 1);
  const int right = within(std::ceil(center_x + half), frame.width);
  const int bottom = within(std::ceil(center_y + half), frame.height);
  cut.image = Image(std::max(1, right - cut.x), std::max(1, bottom - cut.y));
  for (int y = 0; y < cut.image.height; ++y) {
    std::memcpy(cut.image.pixel(0, y), frame.pixel(cut.x, cut.y + y),
                std::size_t{3} * static_cast<std::size_t>(cut.image.width));
  }
  return cut;
}

}  // namespace

FoundHand find_in_box(HandFinder& finder, const Image& frame, const HandBox& box,
                      const FinderOptions& options) {
  check_box(box, frame.width, frame.height);
  const Cut cut = cut_around(frame, box);
  std::vector<FoundHand> hands = finder.find(cut.image, options);
  const HandBox wanted = {box.x1 - cut.x, box.y1 - cut.y, box.x2 - cut.x, box.y2 - cut.y, box.is_right};
  const auto overlap = [&](const FoundHand& hand) { return box_overlap(hand.box, wanted); };
  const auto best = std::ranges::max_element(hands, {}, overlap);
  if (best == hands.end() || overlap(*best) == 0) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("no hand found in the box {},{},{},{}", box.x1, box.y1, box.x2, box.y2),
                "a lower --min-score may help; with --model the box alone is enough");
  }
  for (Vec2& landmark : best->landmarks) {
    landmark[0] += cut.x;
    landmark[1] += cut.y;
  }
  best->box = box;
  return *best;
}

PhotoHands::PhotoHands(std::unique_ptr<HandFinder> finder, std::unique_ptr<HandPipeline> network,
                       const PhotoOptions& options)
    : finder_(std::move(finder)), network_(std::move(network)), options_(options) {
  if (finder_ == nullptr && network_ == nullptr) {
    throw fail(ErrorCode::kUsage, "neither a hand finder nor a network: nothing can pose a hand");
  }
}

std::vector<HandResult> PhotoHands::find(const Image& frame) {
  if (finder_ == nullptr) throw fail(ErrorCode::kUsage, "no hand finder: the boxes must be given");
  Stopwatch watch;
  const std::vector<FoundHand> hands = finder_->find(frame, options_.finder);
  const double find_ms = watch.elapsed_ms();
  std::vector<HandResult> results;
  results.reserve(hands.size());
  for (const FoundHand& found : hands) {
    results.push_back(network_ != nullptr ? network_->run(frame, found.box) : from_landmarks(frame, found));
    results.back().found = found;
    results.back().timings.find_ms = find_ms;
  }
  return results;
}

std::vector<HandResult> PhotoHands::in_boxes(const Image& frame, const std::vector<HandBox>& boxes) {
  std::vector<HandResult> results;
  results.reserve(boxes.size());
  for (const HandBox& box : boxes) {
    results.push_back(network_ != nullptr ? network_->run(frame, box) : from_box(frame, box));
  }
  return results;
}

HandResult PhotoHands::from_landmarks(const Image& frame, const FoundHand& found) const {
  Stopwatch watch;
  LandmarkHandOptions options;
  options.frame_width = frame.width;
  options.frame_height = frame.height;
  options.rescale = options_.rescale;
  options.camera = options_.camera;
  options.model = options_.model;
  HandResult result = pose_landmarks(found, options);
  result.timings.model_ms = watch.elapsed_ms();
  return result;
}

HandResult PhotoHands::from_box(const Image& frame, const HandBox& box) {
  Stopwatch watch;
  const FoundHand found = find_in_box(*finder_, frame, box, options_.finder);
  const double find_ms = watch.elapsed_ms();
  HandResult result = from_landmarks(frame, found);
  result.found = found;
  result.timings.find_ms = find_ms;
  return result;
}

}  // namespace sinew

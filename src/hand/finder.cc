#include "hand/finder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/sort_stably.h"
#include "hand/boxes.h"

namespace sinew {
namespace {

using mediapipe::kLandmarkNumbers;
using mediapipe::kLandmarkSide;
using mediapipe::kPalmAnchors;
using mediapipe::kPalmNumbers;
using mediapipe::kPalmSide;
using mediapipe::Palm;

// Landmarks of one hand in four views of each picture of shared/data/hands lie within 0.05 of its size of
// their median after the second look (0.007 on the mean; after the first 0.08 and 0.014).
constexpr double kSameHand = 0.25;
// Hands found wrong cover the right one by 0.26 to 0.46.
constexpr double kMistaken = 0.2;

constexpr std::array<std::size_t, 2> kPalmOutputs = {kPalmAnchors * kPalmNumbers, kPalmAnchors};
constexpr std::array<std::size_t, 4> kLandmarkOutputs = {kLandmarkNumbers, 1, 1, kLandmarkNumbers};

std::string output_name(std::size_t i) { return "output" + std::to_string(i); }

void check_value(const Program& program, const std::string& name, std::size_t elements) {
  const ValueId id = program.find(name);
  if (!id) throw fail(ErrorCode::kMismatch, "network {}: has no \"{}\"", program.name(), name);
  const Value& value = program.value(id);
  const bool floats = value.dtype == DType::kF32 || value.dtype == DType::kF64;
  if (!floats || value.shape.count() != static_cast<std::int64_t>(elements)) {
    throw fail(ErrorCode::kMismatch, "network {}: {} is {} {}, expected {} floating-point numbers",
               program.name(), name, to_string(value.dtype), to_string(value.shape), elements);
  }
}

/// A picture of this side in, outputs of these sizes out.
void check_network(const Session& session, int side, std::span<const std::size_t> outputs) {
  const Program& program = session.program();
  check_value(program, "input", std::size_t{3} * side * side);
  for (std::size_t i = 0; i < outputs.size(); ++i) check_value(program, output_name(i), outputs[i]);
  if (program.find(output_name(outputs.size()))) {
    throw fail(ErrorCode::kMismatch, "network {}: has more than {} outputs", program.name(), outputs.size());
  }
}

void read_output(const Session& session, std::size_t i, std::span<float> out) {
  convert_into(session.output(output_name(i)), DType::kF32, out.data());
}

void write_input(Session& session, std::span<const float> pixels) {
  const Program& program = session.program();
  const Value& value = program.value(program.find("input"));
  const auto input = session.input("input");
  if (value.dtype == DType::kF32) {
    std::memcpy(input.data(), pixels.data(), pixels.size_bytes());
  } else {
    convert_into(TensorView(DType::kF32, value.shape, pixels.data()), value.dtype, input.data());
  }
}

void check_options(const FinderOptions& options) {
  const auto share = [](double v) { return v >= 0 && v <= 1; };
  if (options.max_hands < 1)
    throw fail(ErrorCode::kUsage, "max_hands is {}, expected at least 1", options.max_hands);
  if (!share(options.min_score))
    throw fail(ErrorCode::kUsage, "min_score is {}, expected 0 to 1", options.min_score);
  if (!share(options.min_presence))
    throw fail(ErrorCode::kUsage, "min_presence is {}, expected 0 to 1", options.min_presence);
}

HandBox box_of(std::span<const Vec2> landmarks, bool is_right) {
  HandBox box{landmarks[0][0], landmarks[0][1], landmarks[0][0], landmarks[0][1], is_right};
  for (const Vec2& p : landmarks) {
    box.x1 = std::min(box.x1, p[0]);
    box.x2 = std::max(box.x2, p[0]);
    box.y1 = std::min(box.y1, p[1]);
    box.y2 = std::max(box.y2, p[1]);
  }
  const double x = kBoxMargin * (box.x2 - box.x1), y = kBoxMargin * (box.y2 - box.y1);
  return {box.x1 - x, box.y1 - y, box.x2 + x, box.y2 + y, is_right};
}

double size_of(const HandBox& box) { return std::max(box.x2 - box.x1, box.y2 - box.y1); }

/// Two palms led to one hand: their landmarks lie on each other, whatever the side they were taken for.
bool same_hand(const FoundHand& a, const FoundHand& b) {
  double sum = 0;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    sum += std::hypot(a.landmarks[i][0] - b.landmarks[i][0], a.landmarks[i][1] - b.landmarks[i][1]);
  }
  return sum / kHandKeypoints < kSameHand * std::min(size_of(a.box), size_of(b.box));
}

bool is_sure(const FoundHand& hand) { return hand.presence >= kSurePresence; }

/// Leaves out hands that are not sure and lie over a sure one: a part of it, or it seen the wrong way round.
void drop_mistaken(std::vector<FoundHand>& hands) {
  const std::vector<FoundHand> all = hands;
  std::erase_if(hands, [&](const FoundHand& hand) {
    return !is_sure(hand) && std::any_of(all.begin(), all.end(), [&](const FoundHand& other) {
      return is_sure(other) && box_overlap(hand.box, other.box) > kMistaken;
    });
  });
}

/// A box that HaMeR's crop takes: with an extent, touching the frame.
bool usable(const HandBox& box, const Image& frame) {
  return box.x1 < box.x2 && box.y1 < box.y2 && box.x2 > 0 && box.y2 > 0 && box.x1 < frame.width &&
         box.y1 < frame.height;
}

Palm placed(Palm palm, const FrameSquare& view) {
  const auto corner = frame_point(view, 0, 0);
  const auto place = [&](double& value, std::size_t axis) { value = corner[axis] + value * view.side; };
  place(palm.x1, 0);
  place(palm.x2, 0);
  place(palm.y1, 1);
  place(palm.y2, 1);
  for (Vec2& point : palm.points) {
    place(point[0], 0);
    place(point[1], 1);
  }
  return palm;
}

}  // namespace

HandFinder::HandFinder(std::unique_ptr<Session> palm, std::unique_ptr<Session> landmark)
    : palm_(std::move(palm)), landmark_(std::move(landmark)), anchors_(mediapipe::palm_anchors()) {
  check_network(*palm_, kPalmSide, kPalmOutputs);
  check_network(*landmark_, kLandmarkSide, kLandmarkOutputs);
}

std::vector<Palm> HandFinder::palms_in(const Image& frame, const FrameSquare& view, Border border,
                                       double min_score) {
  pixels_.resize(std::size_t{3} * kPalmSide * kPalmSide);
  sample_square(frame, view, kPalmSide, border, pixels_.data());
  write_input(*palm_, pixels_);
  palm_->run();
  ++runs_.palm;
  boxes_.resize(kPalmOutputs[0]);
  logits_.resize(kPalmOutputs[1]);
  read_output(*palm_, 0, boxes_);
  read_output(*palm_, 1, logits_);
  auto palms = mediapipe::merge_palms(mediapipe::decode_palms(boxes_, logits_, anchors_, min_score));
  for (Palm& palm : palms) palm = placed(palm, view);
  return palms;
}

std::optional<FoundHand> HandFinder::look(const Image& frame, const FrameSquare& square) {
  if (!in_reach(square)) return std::nullopt;
  pixels_.resize(std::size_t{3} * kLandmarkSide * kLandmarkSide);
  sample_square(frame, square, kLandmarkSide, Border::kReplicate, pixels_.data());
  write_input(*landmark_, pixels_);
  landmark_->run();
  ++runs_.landmark;
  std::array<float, kLandmarkNumbers> points{}, world{};
  float presence = 0, right = 0;
  read_output(*landmark_, 0, points);
  read_output(*landmark_, 1, {&presence, 1});
  read_output(*landmark_, 2, {&right, 1});
  read_output(*landmark_, 3, world);
  const auto landmarks = mediapipe::place_landmarks(points, world, square);
  if (!landmarks || !std::isfinite(presence) || !std::isfinite(right)) return std::nullopt;
  FoundHand hand;
  hand.presence = presence;
  hand.right = right;
  hand.landmarks = landmarks->pixels;
  hand.depth = landmarks->depth;
  hand.world = landmarks->world;
  hand.box = box_of(hand.landmarks, hand.right >= 0.5);
  return hand;
}

std::optional<FoundHand> HandFinder::hand_at(const Image& frame, const Palm& palm,
                                             const FinderOptions& options) {
  FrameSquare square = mediapipe::square_of_palm(palm);
  std::optional<FoundHand> hand;
  // A second look that loses the hand says that the first found none.
  for (int looks = options.refine ? 2 : 1; looks > 0; --looks) {
    hand = look(frame, square);
    if (!hand || hand->presence < options.min_presence || !usable(hand->box, frame)) return std::nullopt;
    hand->score = palm.score;
    square = mediapipe::square_of_landmarks(hand->landmarks);
  }
  return hand;
}

void HandFinder::search(const Image& frame, const SearchStage& stage, const FinderOptions& options,
                        std::vector<FoundHand>& hands) {
  std::vector<Palm> palms;
  for (const FrameSquare& view : stage.views) {
    const auto more = palms_in(frame, view, stage.border, options.min_score);
    palms.insert(palms.end(), more.begin(), more.end());
  }
  if (stage.views.size() > 1) palms = mediapipe::merge_palms(std::move(palms));  // tiles overlap
  // A palm detector gone wild must not cost hours: so many palms are tried, the best first.
  const auto wanted = static_cast<std::size_t>(options.max_hands);
  palms.resize(std::min(palms.size(), 2 * wanted + 4));
  std::size_t found = 0;
  for (const Palm& palm : palms) {
    if (found == wanted) break;
    const auto hand = hand_at(frame, palm, options);
    if (!hand) continue;
    const auto known = std::find_if(hands.begin(), hands.end(),
                                    [&](const FoundHand& other) { return same_hand(*hand, other); });
    if (known == hands.end()) {
      hands.push_back(*hand);
      ++found;
    } else if (!is_sure(*known) && hand->presence > known->presence) {
      *known = *hand;
    }
  }
}

std::vector<FoundHand> HandFinder::find(const Image& frame, const FinderOptions& options) {
  check_frame(frame);
  check_options(options);
  std::vector<FoundHand> hands;
  for (const SearchStage& stage : search_stages(frame.width, frame.height, options.tiles)) {
    search(frame, stage, options, hands);
    if (!options.thorough && std::any_of(hands.begin(), hands.end(), is_sure)) break;
  }
  drop_mistaken(hands);
  sort_stably(hands, [](const FoundHand& a, const FoundHand& b) { return a.score > b.score; });
  hands.resize(std::min(hands.size(), static_cast<std::size_t>(options.max_hands)));
  return hands;
}

}  // namespace sinew

// The palm detector's output: anchors, boxes with seven points, weighted non-maximum suppression (MediaPipe's
// SSD pipeline; shared/data/mediapipe/README.md).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace sinew::mediapipe {

using Point2 = std::array<double, 2>;

inline constexpr int kPalmSide = 192;  // rows and columns of the network's picture
inline constexpr std::size_t kPalmPoints = 7;
inline constexpr std::size_t kPalmNumbers = 4 + 2 * kPalmPoints;  // of one anchor
inline constexpr std::array<int, 4> kPalmStrides = {8, 16, 16, 16};
inline constexpr std::size_t kPalmAnchors = 2016;  // of palm_anchors()

/// Which of a palm's points is what; 1 index, 3 ring, 4 little (mcp), 5 thumb cmc, 6 thumb mcp are the
/// others.
inline constexpr std::size_t kPalmWrist = 0;
inline constexpr std::size_t kPalmMiddle = 2;

/// A palm. Units of the picture's side, x right, y down, 0..1 inside.
struct Palm {
  double score = 0;  // 0..1
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  std::array<Point2, kPalmPoints> points{};
};

/// Cell centres in units of the side, in the order of the network's outputs: for each run of equal strides
/// the cells row by row, ceil(side/stride) a row, each twice per layer of that stride.
std::vector<Point2> palm_anchors(int side = kPalmSide, std::span<const int> strides = kPalmStrides);

/// Palms with a score of at least `min_score`, in the order of their anchors. `boxes` are kPalmNumbers per
/// anchor: centre as an offset from the anchor, width, height, then the points as offsets, in pixels of the
/// picture of `side`. `logits` one per anchor; scores are sigmoids of logits held in -100..100. What is not
/// finite or has no extent is passed over: a damaged network finds nothing. Asserts matching sizes.
std::vector<Palm> decode_palms(std::span<const float> boxes, std::span<const float> logits,
                               std::span<const Point2> anchors, double min_score, int side = kPalmSide);

/// Intersection over union of the boxes, 0 when neither has an area.
double overlap(const Palm& a, const Palm& b);

/// Weighted non-maximum suppression: from the best score down, a palm and all that are left and overlap it by
/// more than `max_overlap` become one, with the best score and their means of box and points, weighted by
/// score. By falling score; equal scores keep their order.
std::vector<Palm> merge_palms(std::vector<Palm> palms, double max_overlap = 0.3);

}  // namespace sinew::mediapipe

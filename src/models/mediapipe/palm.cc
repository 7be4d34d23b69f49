#include "models/mediapipe/palm.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/sort_stably.h"

namespace sinew::mediapipe {
namespace {

constexpr int kAnchorsPerLayer = 2;
constexpr double kLogitLimit = 100;

double score_of(float logit) {
  return 1 / (1 + std::exp(-std::clamp(static_cast<double>(logit), -kLogitLimit, kLogitLimit)));
}

Palm decode(std::span<const float> numbers, const Point2& anchor, double score, double side) {
  const auto at = [&](std::size_t i) { return static_cast<double>(numbers[i]) / side; };
  const double x = at(0) + anchor[0], y = at(1) + anchor[1];
  const double half_width = at(2) / 2, half_height = at(3) / 2;
  Palm palm{score, x - half_width, y - half_height, x + half_width, y + half_height, {}};
  for (std::size_t k = 0; k < kPalmPoints; ++k) {
    palm.points[k] = {at(4 + 2 * k) + anchor[0], at(5 + 2 * k) + anchor[1]};
  }
  return palm;
}

/// The mean of these palms, weighted by their scores. The first has the best.
Palm weighted_mean(std::span<const Palm> group) {
  Palm mean;
  double total = 0;
  for (const Palm& palm : group) {
    total += palm.score;
    mean.x1 += palm.score * palm.x1;
    mean.y1 += palm.score * palm.y1;
    mean.x2 += palm.score * palm.x2;
    mean.y2 += palm.score * palm.y2;
    for (std::size_t k = 0; k < kPalmPoints; ++k) {
      for (std::size_t axis = 0; axis < 2; ++axis) mean.points[k][axis] += palm.score * palm.points[k][axis];
    }
  }
  for (double* value : {&mean.x1, &mean.y1, &mean.x2, &mean.y2}) *value /= total;
  for (Point2& point : mean.points) point = {point[0] / total, point[1] / total};
  mean.score = group.front().score;
  return mean;
}

}  // namespace

std::vector<Point2> palm_anchors(int side, std::span<const int> strides) {
  std::vector<Point2> anchors;
  for (std::size_t layer = 0; layer < strides.size();) {
    std::size_t next = layer;
    while (next < strides.size() && strides[next] == strides[layer]) ++next;
    const int cells = (side + strides[layer] - 1) / strides[layer];
    const auto copies = kAnchorsPerLayer * (next - layer);
    for (int y = 0; y < cells; ++y) {
      for (int x = 0; x < cells; ++x)
        anchors.insert(anchors.end(), copies, Point2{(x + 0.5) / cells, (y + 0.5) / cells});
    }
    layer = next;
  }
  return anchors;
}

std::vector<Palm> decode_palms(std::span<const float> boxes, std::span<const float> logits,
                               std::span<const Point2> anchors, double min_score, int side) {
  assert(logits.size() == anchors.size() && boxes.size() == kPalmNumbers * anchors.size());
  std::vector<Palm> palms;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    if (std::isnan(logits[i])) continue;
    const double score = score_of(logits[i]);
    if (score < min_score || score == 0) continue;
    const auto numbers = boxes.subspan(kPalmNumbers * i, kPalmNumbers);
    if (!std::all_of(numbers.begin(), numbers.end(), [](float v) { return std::isfinite(v); })) continue;
    if (numbers[2] <= 0 || numbers[3] <= 0) continue;
    palms.push_back(decode(numbers, anchors[i], score, side));
  }
  return palms;
}

double overlap(const Palm& a, const Palm& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double common = std::max(width, 0.0) * std::max(height, 0.0);
  const auto area = [](const Palm& p) { return (p.x2 - p.x1) * (p.y2 - p.y1); };
  const double all = area(a) + area(b) - common;
  return all > 0 ? common / all : 0;
}

std::vector<Palm> merge_palms(std::vector<Palm> palms, double max_overlap) {
  sort_stably(palms, [](const Palm& a, const Palm& b) { return a.score > b.score; });
  std::vector<Palm> merged, group, rest;
  while (!palms.empty()) {
    const Palm best = palms.front();
    // The best leaves even if it overlaps nothing, itself included: each round takes one at least.
    group = {best};
    rest.clear();
    for (std::size_t i = 1; i < palms.size(); ++i) {
      (overlap(best, palms[i]) > max_overlap ? group : rest).push_back(palms[i]);
    }
    palms.swap(rest);
    merged.push_back(weighted_mean(group));
  }
  return merged;
}

}  // namespace sinew::mediapipe

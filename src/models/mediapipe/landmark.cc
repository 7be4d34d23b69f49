#include "models/mediapipe/landmark.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace sinew::mediapipe {
namespace {

constexpr double kPalmScale = 2.6;
constexpr double kPalmShift = 0.5;
constexpr double kHandScale = 2.0;
constexpr double kHandShift = 0.1;
constexpr double kDepthScale = 0.4;
constexpr std::size_t kIndexKnuckle = 5, kMiddleKnuckle = 9, kRingKnuckle = 13;
/// Wrist, thumb up to its ip, and of each finger knuckle and first joint: what a bent finger moves little.
constexpr std::array<std::size_t, 12> kPalmLandmarks = {0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18};

/// The angle at which the way from `from` to `to` leads up.
double upright_angle(const Point2& from, const Point2& to) {
  const double angle = std::numbers::pi / 2 - std::atan2(from[1] - to[1], to[0] - from[0]);
  return std::remainder(angle, 2 * std::numbers::pi);
}

}  // namespace

FrameSquare square_of_palm(const Palm& palm) {
  const double angle = upright_angle(palm.points[kPalmWrist], palm.points[kPalmMiddle]);
  const double width = palm.x2 - palm.x1, height = palm.y2 - palm.y1;
  const double shift = kPalmShift * height;
  return {(palm.x1 + palm.x2) / 2 + shift * std::sin(angle),
          (palm.y1 + palm.y2) / 2 - shift * std::cos(angle), kPalmScale * std::max(width, height), angle};
}

FrameSquare square_of_landmarks(std::span<const Point2, kLandmarks> pixels) {
  Point2 knuckles;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const double outer = (pixels[kIndexKnuckle][axis] + pixels[kRingKnuckle][axis]) / 2;
    knuckles[axis] = (outer + pixels[kMiddleKnuckle][axis]) / 2;
  }
  const double angle = upright_angle(pixels[0], knuckles);
  const double c = std::cos(angle), s = std::sin(angle);
  double low[2], high[2];
  std::fill_n(low, 2, std::numeric_limits<double>::infinity());
  std::fill_n(high, 2, -std::numeric_limits<double>::infinity());
  for (const std::size_t i : kPalmLandmarks) {  // in the square's axes
    const double along[2] = {c * pixels[i][0] + s * pixels[i][1], c * pixels[i][1] - s * pixels[i][0]};
    for (int axis = 0; axis < 2; ++axis) {
      low[axis] = std::min(low[axis], along[axis]);
      high[axis] = std::max(high[axis], along[axis]);
    }
  }
  const double width = high[0] - low[0], height = high[1] - low[1];
  const double x = (low[0] + high[0]) / 2, y = (low[1] + high[1]) / 2 - kHandShift * height;
  return {c * x - s * y, s * x + c * y, kHandScale * std::max(width, height), angle};
}

std::optional<Landmarks> place_landmarks(std::span<const float, kLandmarkNumbers> points,
                                         std::span<const float, kLandmarkNumbers> world,
                                         const FrameSquare& square) {
  const auto finite = [](float v) { return std::isfinite(v); };
  if (!std::all_of(points.begin(), points.end(), finite) || !std::all_of(world.begin(), world.end(), finite))
    return std::nullopt;
  const double c = std::cos(square.angle), s = std::sin(square.angle);
  Landmarks out;
  for (std::size_t i = 0; i < kLandmarks; ++i) {
    const double x = points[3 * i], y = points[3 * i + 1], z = points[3 * i + 2];
    out.pixels[i] = frame_point(square, x / kLandmarkSide, y / kLandmarkSide);
    out.depth[i] = z / kLandmarkSide / kDepthScale * square.side;
    const double wx = world[3 * i], wy = world[3 * i + 1];
    out.world[i] = {c * wx - s * wy, s * wx + c * wy, world[3 * i + 2]};
  }
  return out;
}

}  // namespace sinew::mediapipe

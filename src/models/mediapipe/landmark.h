// What the landmark network looks at, and what its outputs mean in the frame (MediaPipe's hand graph).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "image/square.h"
#include "models/mediapipe/palm.h"

namespace sinew::mediapipe {

inline constexpr int kLandmarkSide = 224;  // rows and columns of the network's picture
inline constexpr std::size_t kLandmarks = 21;
inline constexpr std::size_t kLandmarkNumbers = 3 * kLandmarks;

/// The square around a palm in pixels of the frame: turned so that the way from the wrist to the middle
/// finger's knuckle leads up, moved by half the palm's height to the fingers, of 2.6 times the longer side.
FrameSquare square_of_palm(const Palm& palm);

/// The square around a hand whose landmarks (pixels) are known, by which MediaPipe follows a hand through a
/// video: up is from the wrist to the knuckles; around the palm's landmarks and the first finger joints,
/// moved by a tenth of that box's height to the fingers, of twice the longer side.
FrameSquare square_of_landmarks(std::span<const Point2, kLandmarks> pixels);

/// Landmarks in the frame, wrist, thumb, index, middle, ring, little finger, root to tip each.
struct Landmarks {
  std::array<Point2, kLandmarks> pixels{};
  std::array<double, kLandmarks> depth{};                 // pixels too, away from the camera
  std::array<std::array<double, 3>, kLandmarks> world{};  // metres: x right, y down, z away
};

/// `points` are x, y, z of the network's picture in its pixels, `world` x, y, z in metres as the network sees
/// the turned hand; both come back as the frame has them. Depth is z / 0.4 at the square's scale: the network
/// was trained with depths made smaller by that factor. Nothing when a number is not finite.
std::optional<Landmarks> place_landmarks(std::span<const float, kLandmarkNumbers> points,
                                         std::span<const float, kLandmarkNumbers> world,
                                         const FrameSquare& square);

}  // namespace sinew::mediapipe

// The known joints of a hand in a picture, and how far a result is from them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "hand/pipeline.h"
#include "hand/skeleton.h"

namespace sinew {

/// {"is_right": 1, "joints_px": [[x,y], ...21], "joints_m": [[x,y,z], ...21]}, OpenPose order; as `sinew
/// synth picture --joints` writes it. Other keys are passed over.
struct HandTruth {
  bool is_right = true;
  std::array<Vec2, kHandKeypoints> pixels{};
  HandKeypoints metres{};  // about any origin: x right, y down, z away
};

/// Throws Error (kFormat, kLimit) naming the field: missing, not 21 points, not finite numbers, all points
/// equal.
HandTruth parse_truth(std::string_view text, const std::string& name);
HandTruth read_truth(const std::string& path);

struct JointError {
  bool side_is_right = false;  // left taken for left, right for right
  double mean_px = 0;          // joints_2d
  double percent = 0;          // mean_px of the hand's size: the larger side of the box around its joints
  double aligned_mm = 0;       // mean over joints after the best rotation, translation and scale
};

/// Never throws for a result of HandPipeline or pose_landmarks().
JointError joint_error(const HandResult& result, const HandTruth& truth);

/// Mean distance after the similarity that brings `points` nearest to `target` in the least-squares sense
/// (Umeyama 1991); no reflection. Zero scale when the points are all equal.
double aligned_distance(const HandKeypoints& points, const HandKeypoints& target);

}  // namespace sinew

// A found hand as a HandResult, posed by inverse kinematics instead of a network.
#pragma once

#include <memory>
#include <optional>

#include "hand/finder.h"
#include "hand/hand_model.h"
#include "hand/pipeline.h"

namespace sinew {

struct LandmarkHandOptions {
  int frame_width = 0, frame_height = 0;   // pixels
  double rescale = 2.0;                    // of the crop square that `geometry` and `cam` belong to
  std::optional<Intrinsics> camera;        // else assumed_camera() with the original's 5000
  std::shared_ptr<const HandModel> model;  // null: builtin_skeleton(), and no vertices
};

/// Every field means what it means for HaMeR's hands: rotmats are a right hand's, of a left hand they
/// describe its mirror image; betas are zero and `scale` says the size instead; cam belongs to the crop of
/// found.box. `found`, `fit_error_px` are filled, timings are not. A mirrored frame's found hand gives the
/// exact mirror image. `last`, the same hand one frame before under the same options, is where the fit then
/// begins. joints_2d count as found.landmarks do. Throws Error as fit_hand() and crop_geometry() do.
HandResult pose_landmarks(const FoundHand& found, const LandmarkHandOptions& options,
                          const HandResult* last = nullptr);

}  // namespace sinew

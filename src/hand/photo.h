// From a photo to its hands: detector, HaMeR or landmarks and inverse kinematics, whatever is at hand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hand/finder.h"
#include "hand/pipeline.h"

namespace sinew {

/// What a record's "model" says when no network posed the hand.
inline constexpr const char* kLandmarksModel = "landmarks+ik (not HaMeR)";

struct PhotoOptions {
  FinderOptions finder;
  double rescale = 2.0;                    // of the crop that a record's camera belongs to
  std::shared_ptr<const HandModel> model;  // null: builtin_skeleton()
  std::optional<Intrinsics> camera;        // of the photos; else the original's assumption
};

/// One thread at a time.
class PhotoHands {
 public:
  /// Either may be null, not both: without `finder` run() needs boxes; without `network` hands are posed from
  /// their landmarks. Throws Error (kUsage) when both are missing.
  PhotoHands(std::unique_ptr<HandFinder> finder, std::unique_ptr<HandPipeline> network,
             const PhotoOptions& options);

  /// The hands of a photo by falling detector score.
  std::vector<HandResult> find(const Image& frame);
  /// The hands in these boxes, in order. Without a network each is looked for around its box; the box says
  /// which side it is. Throws Error: kUsage (a box that does not touch the frame), kMismatch (no landmarks
  /// found in a box; names it).
  std::vector<HandResult> in_boxes(const Image& frame, const std::vector<HandBox>& boxes);

 private:
  HandResult from_landmarks(const Image& frame, const FoundHand& found) const;
  HandResult from_box(const Image& frame, const HandBox& box);

  std::unique_ptr<HandFinder> finder_;
  std::unique_ptr<HandPipeline> network_;
  PhotoOptions options_;
};

/// The hand that lies in `box`: found in the square of twice the box's larger side around it, the one that
/// overlaps the box most. Landmarks are the frame's, the box and the side are those given. Throws Error
/// (kMismatch) when there is none.
FoundHand find_in_box(HandFinder& finder, const Image& frame, const HandBox& box,
                      const FinderOptions& options);

}  // namespace sinew

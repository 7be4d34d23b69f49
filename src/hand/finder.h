// Where the hands are: palm detector, rotated crop, landmarks (MediaPipe's hand pipeline;
// shared/data/mediapipe/README.md).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "hand/camera.h"
#include "hand/finder_views.h"
#include "hand/skeleton.h"
#include "image/crop.h"
#include "image/square.h"
#include "models/mediapipe/landmark.h"
#include "tensor/image.h"

namespace sinew {

/// What a box adds to the landmarks' bounding box on each side, as a share of its width and height.
/// Chosen for the overlap with boxes drawn by eye around finger tips and wrist crease: mean (least) over the
/// 12 pictures of shared/data/hands, full networks, is 0.727 (0.556) at 0, 0.824 (0.649) at 0.04, 0.846
/// (0.698) at 0.06, 0.845 (0.746) at 0.08, 0.830 (0.752) at 0.1, 0.787 (0.676) at 0.14, 0.691 (0.565) at 0.2;
/// lite is best at 0.08, too: 0.834 (0.672). Landmarks lie inside the hand, tips by half a finger's width.
/// HaMeR's own front end takes its key points' bounding box as it is (spec hamer 6.1); both are doubled by
/// the crop.
inline constexpr double kBoxMargin = 0.08;

/// The presence of a hand that ends the search. Of 96 close-ups seen whole, the hands found right had 0.971
/// at least, those found wrong (half a hand, or another's side) 0.889 at most.
inline constexpr double kSurePresence = 0.95;

/// A hand as the landmark network sees it. Pixels of the frame, x right, y down; pixel (0, 0) covers 0..1.
struct FoundHand {
  HandBox box;          // around the landmarks, enlarged by kBoxMargin: what HaMeR's crop starts from
  double score = 0;     // of the palm detector, 0..1
  double presence = 0;  // that there is a hand, 0..1
  double right = 0;     // that it is a right hand, in the convention of an unmirrored picture, 0..1
  std::array<Vec2, kHandKeypoints> landmarks{};  // OpenPose order, which is MediaPipe's
  std::array<double, kHandKeypoints> depth{};    // relative to the wrist, in pixels too, away from the camera
  std::array<Vec3, kHandKeypoints> world{};      // metres about the hand's middle: x right, y down, z away
};

struct FinderOptions {
  int max_hands = 10;
  double min_score = 0.5;     // of the palm detector
  double min_presence = 0.5;  // of the landmark network
  /// Look at each hand twice, the second time in a square made from the landmarks of the first: they come
  /// out with half the scatter (finder.cc has the figures), for one more run of the landmark network.
  bool refine = true;
  /// Look into tiles of the frame when the whole shows no hand: far hands, for up to 33 runs of the palm
  /// detector more on frames without hands (finder_views.h).
  bool tiles = true;
  /// Go through margins and tiles even where a hand has been found: hands near and far in one frame, at the
  /// price of a frame without hands.
  bool thorough = false;
};

/// One thread at a time; the sessions must be of one backend.
class HandFinder {
 public:
  /// Sessions of the palm detector and the landmark network, as mediapipe::lower() makes them, f32 or f64.
  /// Throws Error (kMismatch) when inputs or outputs do not have the shapes of these networks.
  HandFinder(std::unique_ptr<Session> palm, std::unique_ptr<Session> landmark);

  /// Hands by falling score, none twice. The palm detector sees the whole frame; as long as no hand with a
  /// presence of kSurePresence was found, the frame with a margin, then tiles of it. So where a near hand is
  /// found far ones are not looked for, unless `thorough`. A hand that is less sure and lies over a sure one
  /// is left out. Numbers of a network that are not finite count as no hand. Throws Error (kUsage) for a
  /// frame without pixels or senseless options.
  std::vector<FoundHand> find(const Image& frame, const FinderOptions& options = {});

  /// Runs of the networks since construction, for figures.
  struct Runs {
    int palm = 0, landmark = 0;
  };
  const Runs& runs() const { return runs_; }

 private:
  std::vector<mediapipe::Palm> palms_in(const Image& frame, const FrameSquare& view, Border border,
                                        double min_score);
  std::optional<FoundHand> look(const Image& frame, const FrameSquare& square);
  std::optional<FoundHand> hand_at(const Image& frame, const mediapipe::Palm& palm,
                                   const FinderOptions& options);
  void search(const Image& frame, const SearchStage& stage, const FinderOptions& options,
              std::vector<FoundHand>& hands);

  std::unique_ptr<Session> palm_;
  std::unique_ptr<Session> landmark_;
  std::vector<Vec2> anchors_;
  std::vector<float> pixels_, boxes_, logits_;  // of one run, reused
  Runs runs_;
};

}  // namespace sinew

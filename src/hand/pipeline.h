// One hand: frame and box in, the network's numbers, camera and joints out.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "hand/camera.h"
#include "hand/finder.h"
#include "hand/hand_model.h"
#include "hand/skeleton.h"
#include "image/crop.h"
#include "models/hamer/config.h"

namespace sinew {

struct HandOptions {
  double rescale = 2.0;  // the demo's rho
  CropKind crop = CropKind::kPillow;
  /// What is posed by the network's rotations and betas; without one, builtin_skeleton() gives the joints.
  std::shared_ptr<const HandModel> model;
  /// The camera of the frames, when it is known; else the original's assumption for each frame's size.
  std::optional<Intrinsics> camera;
};

struct HandTimings {
  double find_ms = 0;    // detector and landmarks of the whole frame, shared by its hands
  double crop_ms = 0;    // crop, resize, normalise into the network's input
  double model_ms = 0;   // Session::run
  double finish_ms = 0;  // camera and joints
};

/// Rotations, betas and cam are the network's, which only knows right hands: of a left hand they describe its
/// mirror image (spec hamer 5.3). cam_t_full, joints and vertices are of the hand as it is in the frame.
struct HandResult {
  HandBox box;
  std::optional<FoundHand> found;  // what the detector said; absent when the box was given
  CropGeometry geometry;
  int frame_width = 0, frame_height = 0;
  std::array<double, 144> rotmats{};  // 16 row-major matrices, joint 0 the global orientation
  std::array<double, 10> betas{};
  std::array<double, 3> cam{};                   // s, tx, ty
  double scale = 1;                              // of the hand model; the network's hands have their betas
  Intrinsics camera;                             // of the whole frame
  Vec3 cam_t_full{};                             // metres
  HandKeypoints joints_3d{};                     // metres, OpenPose order, without cam_t_full
  std::array<Vec2, kHandKeypoints> joints_2d{};  // pixels of the frame; pixel (0, 0) covers 0..1
  std::vector<Vec3> vertices;                    // as joints_3d; empty without a hand model
  std::optional<double> fit_error_px;  // mean distance of joints_2d from the landmarks they were fitted to
  HandTimings timings;
};

/// The pipeline of one session. One thread at a time.
class HandPipeline {
 public:
  /// `session` must be a compiled hamer::Graph; its input's dtype decides between u8 and normalised pixels.
  HandPipeline(std::unique_ptr<Session> session, const hamer::Config& config, const HandOptions& options);

  /// Throws Error: kUsage (box, see check_box), kUnsupported (8-bit input with a blurred OpenCV crop),
  /// kMismatch (the network gave a number that is not finite, which no sound checkpoint does).
  HandResult run(const Image& frame, const HandBox& box);
  const Session& session() const { return *session_; }

 private:
  void fill_input(const Crop& crop);
  void read_output(HandResult& result) const;
  void pose(HandResult& result) const;
  void place(HandResult& result) const;

  std::unique_ptr<Session> session_;
  hamer::Config config_;
  HandOptions options_;
};

}  // namespace sinew

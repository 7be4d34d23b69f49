#include "hand/pipeline.h"

#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace sinew {

HandPipeline::HandPipeline(std::unique_ptr<Session> session, const hamer::Config& config,
                           const HandOptions& options)
    : session_(std::move(session)), config_(config), options_(options) {}

HandResult HandPipeline::run(const Image& frame, const HandBox& box) {
  check_box(box, frame.width, frame.height);
  Stopwatch watch;
  HandResult result;
  result.box = box;
  result.frame_width = frame.width;
  result.frame_height = frame.height;
  result.geometry = crop_geometry(box, options_.rescale);
  fill_input(crop(options_.crop, frame, result.geometry, box.is_right));
  result.timings.crop_ms = watch.lap_ms();
  session_->run();
  result.timings.model_ms = watch.lap_ms();
  read_output(result);
  pose(result);
  place(result);
  result.timings.finish_ms = watch.lap_ms();
  return result;
}

void HandPipeline::fill_input(const Crop& crop) {
  const auto input = session_->input("image");
  const Program& program = session_->program();
  const DType dtype = program.value(program.find("image")).dtype;
  if (dtype == DType::kU8) {
    if (!crop.is_u8()) {
      throw Error(ErrorCode::kUnsupported,
                  "this crop was blurred and is no longer 8-bit, which u8 input needs",
                  "use f32 input or the pillow crop");
    }
    to_chw_u8(crop, reinterpret_cast<std::uint8_t*>(input.data()));
  } else if (dtype == DType::kF32) {
    normalise(crop, reinterpret_cast<float*>(input.data()), {config_.image_mean, config_.image_std});
  } else {
    Tensor pixels(DType::kF32, program.value(program.find("image")).shape);
    normalise(crop, pixels.as<float>().data(), {config_.image_mean, config_.image_std});
    convert_into(pixels, dtype, input.data());
  }
}

void HandPipeline::read_output(HandResult& result) const {
  std::array<double, 157> numbers{};
  convert_into(session_->output("out157"), DType::kF64, numbers.data());
  for (const double v : numbers) {
    if (!std::isfinite(v))
      throw fail(ErrorCode::kMismatch, "the network's output is not finite: the checkpoint is damaged");
  }
  auto next = numbers.begin();
  const auto take = [&](auto& out) {
    std::copy(next, next + static_cast<std::ptrdiff_t>(out.size()), out.begin());
    next += static_cast<std::ptrdiff_t>(out.size());
  };
  take(result.rotmats);
  take(result.betas);
  take(result.cam);
}

void HandPipeline::pose(HandResult& result) const {
  if (options_.model != nullptr) {
    PosedHand hand = options_.model->pose(result.rotmats, result.betas);
    result.joints_3d = hand.keypoints;
    result.vertices = std::move(hand.vertices);
  } else {
    result.joints_3d = pose_skeleton(builtin_skeleton(), result.rotmats);
  }
  if (result.box.is_right) return;
  for (Vec3& joint : result.joints_3d) joint[0] = -joint[0];
  for (Vec3& vertex : result.vertices) vertex[0] = -vertex[0];
}

void HandPipeline::place(HandResult& result) const {
  const double mirror = result.box.is_right ? 1 : -1;
  result.camera =
      options_.camera.value_or(assumed_camera(config_.focal_length, result.frame_width, result.frame_height));
  result.cam_t_full = full_frame_translation({result.cam[0], mirror * result.cam[1], result.cam[2]},
                                             result.geometry, result.camera);
  for (std::size_t i = 0; i < result.joints_3d.size(); ++i) {
    result.joints_2d[i] = project(result.joints_3d[i], result.cam_t_full, result.camera);
  }
}

}  // namespace sinew

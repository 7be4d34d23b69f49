// The C ABI: hands from pictures.
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "capi/guard.h"
#include "capi/struct_size.h"
#include "hand/pipeline.h"
#include "plan/cache.h"
#include "runtime/runtime.h"
#include "sinew/sinew.h"

struct sinew_hands {
  std::optional<sinew::HandPipeline> pipeline;
  sinew::Image frame;  // kept, so that pictures of one size allocate once
};

namespace sinew::capi {
namespace {

// Up to the last field of the first ABI version.
constexpr std::size_t kFirstOptions = offsetof(sinew_hands_options, rescale) + sizeof(double);
constexpr std::size_t kFirstHand = offsetof(sinew_hand, joints_2d) + sizeof(float[21][2]);
constexpr int kMaxSide = 65535;

void require(bool holds, std::string_view text) {
  if (!holds) throw fail(ErrorCode::kUsage, "{}", text);
}

RuntimeOptions runtime_options(const sinew_hands_options& given) {
  RuntimeOptions options;
  if (given.policy != nullptr) {
    options.policy = parse_policy(given.policy);
    if (!options.policy) throw fail(ErrorCode::kUsage, "policy {}: expected f32, bf16 or bfp8", given.policy);
  }
  options.machine.threads = given.threads;
  // This is an edge: here the environment may be read.
  if (given.cache != nullptr) options.cache.root = *given.cache == '\0' ? cache_root() : given.cache;
  return options;
}

HandOptions hand_options(const sinew_hands_options& given) {
  HandOptions options;
  const auto crop = parse_crop_kind(given.crop == nullptr ? "pillow" : given.crop);
  if (!crop) throw fail(ErrorCode::kUsage, "crop {}: expected pillow or opencv", given.crop);
  options.crop = *crop;
  if (given.rescale != 0) options.rescale = given.rescale;
  return options;
}

void copy_frame(const std::uint8_t* rgb, int width, int height, std::ptrdiff_t row_stride, Image& frame) {
  require(width > 0 && height > 0, "a frame has at least one row and one column");
  if (width > kMaxSide || height > kMaxSide) {
    throw fail(ErrorCode::kLimit, "a frame of {} x {} pixels; {} a side are possible", width, height,
               kMaxSide);
  }
  const std::ptrdiff_t row = 3 * static_cast<std::ptrdiff_t>(width);
  if (row_stride == 0) row_stride = row;
  if (row_stride < row) {
    throw fail(ErrorCode::kUsage, "row_stride {}: a row of {} pixels has {} bytes", row_stride, width, row);
  }
  if (frame.width != width || frame.height != height) frame = Image(width, height);
  for (int y = 0; y < height; ++y) {
    std::memcpy(frame.pixel(0, y), rgb + y * row_stride, static_cast<std::size_t>(row));
  }
}

/// `out` is a C array of floats of any rank, `in` as many doubles.
template <typename Out>
void copy_floats(const double* in, Out& out) {
  auto* floats = reinterpret_cast<float*>(&out);
  for (std::size_t i = 0; i < sizeof(out) / sizeof(float); ++i) floats[i] = static_cast<float>(in[i]);
}

sinew_hand to_c(const HandResult& result) {
  sinew_hand hand = {};
  copy_floats(result.rotmats.data(), hand.rotmat);
  copy_floats(result.betas.data(), hand.betas);
  copy_floats(result.cam.data(), hand.cam);
  copy_floats(result.cam_t_full.data(), hand.cam_t_full);
  hand.focal_length = static_cast<float>(result.camera.fx);
  for (std::size_t joint = 0; joint < result.joints_3d.size(); ++joint) {
    copy_floats(result.joints_3d[joint].data(), hand.joints_3d[joint]);
    copy_floats(result.joints_2d[joint].data(), hand.joints_2d[joint]);
  }
  return hand;
}

}  // namespace
}  // namespace sinew::capi

using namespace sinew;

sinew_status sinew_hands_open(const char* model_path, const sinew_hands_options* options, sinew_hands** out) {
  return capi::guarded([&] {
    capi::require(out != nullptr, "out is NULL");
    *out = nullptr;
    capi::require(model_path != nullptr, "model_path is NULL");
    sinew_hands_options given = {};
    if (options != nullptr) given = capi::read_struct(options, capi::kFirstOptions, "sinew_hands_options");
    set_log_level(LogLevel::kOff);  // a library says what it has to say through its status
    const HandOptions hand_options = capi::hand_options(given);
    HamerRuntime runtime = open_hamer(model_path, capi::runtime_options(given));
    auto hands = std::make_unique<sinew_hands>();
    hands->pipeline.emplace(std::move(runtime.session), runtime.config, hand_options);
    *out = hands.release();
  });
}

sinew_status sinew_hands_run(sinew_hands* hands, const uint8_t* rgb, int width, int height,
                             ptrdiff_t row_stride, const sinew_box* box, sinew_hand* out) {
  return capi::guarded([&] {
    capi::require(hands != nullptr && rgb != nullptr && box != nullptr && out != nullptr,
                  "hands, rgb, box and out must not be NULL");
    capi::struct_size(out, capi::kFirstHand, "sinew_hand");
    capi::copy_frame(rgb, width, height, row_stride, hands->frame);
    const HandResult result =
        hands->pipeline->run(hands->frame, {box->x1, box->y1, box->x2, box->y2, box->is_right != 0});
    capi::write_struct(capi::to_c(result), capi::kFirstHand, "sinew_hand", out);
  });
}

void sinew_hands_close(sinew_hands* hands) { delete hands; }

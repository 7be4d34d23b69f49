#include "hand/record.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

Json detection_of(const HandResult& result) {
  if (!result.found) return nullptr;
  const FoundHand& found = *result.found;
  return {{"score", found.score},           {"presence", found.presence},
          {"right", found.right},           {"landmarks_2d", found.landmarks},
          {"landmarks_depth", found.depth}, {"landmarks_3d", found.world}};
}

}  // namespace

std::string to_json(const HandResult& result, const RecordContext& context) {
  Json rotmats = Json::array();
  for (std::size_t joint = 0; joint < kHandJoints; ++joint) {
    Json matrix = Json::array();
    for (std::size_t row = 0; row < 3; ++row) {
      const double* r = &result.rotmats[9 * joint + 3 * row];
      matrix.push_back({r[0], r[1], r[2]});
    }
    rotmats.push_back(std::move(matrix));
  }
  Json json = {
      {"image", context.image},
      {"image_size", {result.frame_width, result.frame_height}},
      {"hand", context.hand},
      {"bbox", {result.box.x1, result.box.y1, result.box.x2, result.box.y2}},
      {"is_right", result.box.is_right},
      {"detection", detection_of(result)},
      {"box_center", {result.geometry.center_x, result.geometry.center_y}},
      {"box_size", result.geometry.box_size},
      {"rotmats", std::move(rotmats)},
      {"betas", result.betas},
      {"cam", result.cam},
      {"cam_t_full", result.cam_t_full},
      {"scale", result.scale},
      {"focal_length", result.camera.fx},
      {"camera",
       {{"fx", result.camera.fx},
        {"fy", result.camera.fy},
        {"cx", result.camera.cx},
        {"cy", result.camera.cy}}},
      {"hand_model", context.hand_model},
      {"fit_error_px", result.fit_error_px ? Json(*result.fit_error_px) : Json(nullptr)},
      {"joints_3d", result.joints_3d},
      {"joints_2d", result.joints_2d},
      {"model", context.model},
      {"backend", context.backend},
      {"policy", context.policy},
      {"crop", context.crop},
      {"rescale", context.rescale},
      {"timings_ms",
       {{"decode", context.decode_ms},
        {"find", result.timings.find_ms},
        {"crop", result.timings.crop_ms},
        {"model", result.timings.model_ms},
        {"finish", result.timings.finish_ms}}},
  };
  // A file name may hold any bytes; JSON holds UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sinew

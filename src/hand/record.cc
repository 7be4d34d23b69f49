#include "hand/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hand/rasterise.h"
#include "image/draw.h"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

/// One colour a finger, thumb to pinky, and the wrist: told apart on skin and with the common colour
/// blindnesses.
constexpr std::array<Colour, 5> kFingers = {
    {{230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}, {204, 121, 167}}};
constexpr Colour kBoxRight = {0, 220, 90};
constexpr Colour kBoxLeft = {255, 80, 60};
constexpr Colour kOutline = {20, 20, 20};

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
      {"box_center", {result.geometry.center_x, result.geometry.center_y}},
      {"box_size", result.geometry.box_size},
      {"rotmats", std::move(rotmats)},
      {"betas", result.betas},
      {"cam", result.cam},
      {"cam_t_full", result.cam_t_full},
      {"focal_length", result.focal_px},
      {"hand_model", context.hand_model},
      {"joints_3d", result.joints_3d},
      {"joints_2d", result.joints_2d},
      {"model", context.model},
      {"backend", context.backend},
      {"policy", context.policy},
      {"crop", context.crop},
      {"rescale", context.rescale},
      {"timings_ms",
       {{"decode", context.decode_ms},
        {"crop", result.timings.crop_ms},
        {"model", result.timings.model_ms},
        {"finish", result.timings.finish_ms}}},
  };
  // A file name may hold any bytes; JSON holds UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Mesh mesh_of(const HandResult& result, const HandModel& model) {
  Mesh mesh;
  mesh.vertices.reserve(result.vertices.size());
  for (const Vec3& v : result.vertices) {
    mesh.vertices.push_back({static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])});
  }
  mesh.faces.assign(model.faces().begin(), model.faces().end());
  // A left hand's vertices are mirrored already; its faces have to look outwards again.
  for (Face& face : mesh.faces) {
    if (!result.box.is_right) std::swap(face[1], face[2]);
  }
  return mesh;
}

void draw_mesh(Image& frame, const HandResult& result, const HandModel& model) {
  if (result.vertices.empty()) return;
  const Mesh mesh = mesh_of(result, model);
  PinholeCamera camera = centred_camera(result.focal_px, frame.width, frame.height);
  // joints_2d and draw.h count from pixel centres, the rasteriser from pixel corners: without this the mesh
  // would lie half a pixel off the skeleton.
  camera.cx += 0.5;
  camera.cy += 0.5;
  compose(frame, render({{&mesh, result.cam_t_full, kHandColour}}, camera, frame.width, frame.height));
}

void draw_hand(Image& frame, const HandResult& result) {
  const double side = std::max(result.box.x2 - result.box.x1, result.box.y2 - result.box.y1);
  const double width = std::clamp(side / 60, 1.0, 6.0);
  draw_box(frame, result.box.x1, result.box.y1, result.box.x2 - 1, result.box.y2 - 1, width,
           result.box.is_right ? kBoxRight : kBoxLeft);
  const auto& points = result.joints_2d;
  for (int pass = 0; pass < 2; ++pass) {  // outlines first, so that a bone never hides another's colour
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Vec2& from = points[static_cast<std::size_t>(kOpenPoseParents[i])];
      const Colour& colour = pass == 0 ? kOutline : kFingers[(i - 1) / 4];
      draw_line(frame, from[0], from[1], points[i][0], points[i][1], pass == 0 ? 1.7 * width : width, colour);
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    draw_disc(frame, points[i][0], points[i][1], 1.5 * width, kOutline);
    draw_disc(frame, points[i][0], points[i][1], width,
              i == 0 ? Colour{255, 255, 255} : kFingers[(i - 1) / 4]);
  }
}

}  // namespace sinew

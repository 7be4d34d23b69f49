#include "hand/overlay.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "image/draw.h"

namespace sinew {
namespace {

/// One colour a finger, thumb to pinky, and the wrist: told apart on skin and with the common colour
/// blindnesses.
constexpr std::array<Colour, 5> kFingers = {
    {{230, 159, 0}, {86, 180, 233}, {0, 158, 115}, {240, 228, 66}, {204, 121, 167}}};
constexpr Colour kBoxRight = {0, 220, 90};
constexpr Colour kBoxLeft = {255, 80, 60};
constexpr Colour kOutline = {20, 20, 20};

double line_width(const HandBox& box) {
  return std::clamp(std::max(box.x2 - box.x1, box.y2 - box.y1) / 60, 1.0, 6.0);
}

void draw_box_of(Image& frame, const HandBox& box) {
  draw_box(frame, box.x1, box.y1, box.x2 - 1, box.y2 - 1, line_width(box),
           box.is_right ? kBoxRight : kBoxLeft);
}

bool same_camera(const Intrinsics& a, const Intrinsics& b) {
  return a.fx == b.fx && a.fy == b.fy && a.cx == b.cx && a.cy == b.cy;
}

}  // namespace

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

PinholeCamera render_camera(const Intrinsics& camera, double x0, double y0, double scale) {
  return {camera.fx * scale, camera.fy * scale, (camera.cx - x0) * scale, (camera.cy - y0) * scale};
}

void draw_mesh(Image& frame, const HandResult& result, const HandModel& model) {
  if (result.vertices.empty()) return;
  const Mesh mesh = mesh_of(result, model);
  compose(frame,
          render({{&mesh, result.cam_t_full}}, render_camera(result.camera), frame.width, frame.height));
}

void draw_skeleton(Image& image, std::array<Vec2, kHandKeypoints> points, double width) {
  for (Vec2& point : points) point = {point[0] - 0.5, point[1] - 0.5};  // draw.h counts from pixel centres
  for (int pass = 0; pass < 2; ++pass) {  // outlines first, so that a bone never hides another's colour
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Vec2& from = points[static_cast<std::size_t>(kOpenPoseParents[i])];
      const Colour& colour = pass == 0 ? kOutline : kFingers[(i - 1) / 4];
      draw_line(image, from[0], from[1], points[i][0], points[i][1], pass == 0 ? 1.7 * width : width, colour);
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    draw_disc(image, points[i][0], points[i][1], 1.5 * width, kOutline);
    draw_disc(image, points[i][0], points[i][1], width,
              i == 0 ? Colour{255, 255, 255} : kFingers[(i - 1) / 4]);
  }
}

void draw_hand(Image& frame, const HandResult& result) {
  draw_box_of(frame, result.box);
  draw_skeleton(frame, result.joints_2d, line_width(result.box));
}

void draw_all(Image& frame, std::span<const HandResult> results, const HandModel* model, bool boxes) {
  std::vector<Mesh> meshes;
  std::vector<MeshInstance> instances;
  meshes.reserve(results.size());  // instances point into it
  for (const HandResult& result : results) {
    if (!same_camera(result.camera, results.front().camera)) {
      throw fail(ErrorCode::kMismatch,
                 "hands of one picture under different cameras: focal lengths {} and {}",
                 results.front().camera.fx, result.camera.fx);
    }
    if (model == nullptr || result.vertices.empty()) continue;
    meshes.push_back(mesh_of(result, *model));
    instances.push_back({&meshes.back(), result.cam_t_full});
  }
  if (!instances.empty()) {
    compose(frame, render(instances, render_camera(results.front().camera), frame.width, frame.height));
  }
  for (const HandResult& result : results) {
    if (boxes) draw_box_of(frame, result.box);
    if (model == nullptr || result.vertices.empty()) {
      draw_skeleton(frame, result.joints_2d, line_width(result.box));
    }
  }
}

}  // namespace sinew

#include "hand/save.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "base/error.h"
#include "base/text.h"
#include "hand/mesh_files.h"
#include "hand/overlay.h"
#include "io/npz_writer.h"
#include "tensor/tensor.h"

namespace sinew {
namespace {

Mesh mesh_in_frame(const HandResult& result, const HandModel& model) {
  Mesh mesh = mesh_of(result, model);
  if (mesh.vertices.size() == kManoVertices) close_wrist(mesh, result.box.is_right);
  return in_opengl_axes(translated(mesh, result.cam_t_full));
}

/// Rest joints and rotations of the hand as it is in the frame: a left one is the mirror image M R M, M =
/// diag(-1, 1, 1).
void save_glb(const std::string& path, const HandResult& result, const HandModel& model) {
  std::array<Vec3, kHandJoints> joints = model.rest_joints(result.betas);
  for (Vec3& joint : joints) {
    for (double& v : joint) v *= result.scale;
  }
  std::array<double, 9 * kHandJoints> rotations = result.rotmats;
  if (!result.box.is_right) {
    for (Vec3& joint : joints) joint[0] = -joint[0];
    for (std::size_t i = 0; i < rotations.size(); ++i) {
      const bool row_is_x = i % 9 / 3 == 0;
      const bool column_is_x = i % 3 == 0;
      if (row_is_x != column_is_x) rotations[i] = -rotations[i];
    }
  }
  const std::vector<float> weights(model.weights().begin(), model.weights().end());
  Skin skin;
  skin.joints = joints;
  skin.parents = kHandParents;
  skin.rotations = rotations;
  skin.weights = weights;
  GlbOptions options;
  options.skin = &skin;
  write_glb(path, mesh_of(result, model), options);
}

void save_npz(const std::string& path, const HandResult& result, const HandModel& model) {
  const Mesh mesh = mesh_of(result, model);
  NpzWriter writer(path);
  const auto add = [&](const char* name, DType dtype, const Shape& shape, const void* data) {
    writer.add(name, convert({dtype == DType::kU32 ? DType::kU32 : DType::kF64, shape, data}, dtype));
  };
  const auto vertices = static_cast<std::int64_t>(result.vertices.size());
  add("vertices", DType::kF32, {vertices, 3}, result.vertices.data());
  add("faces", DType::kU32, {static_cast<std::int64_t>(mesh.faces.size()), 3}, mesh.faces.data());
  add("joints_3d", DType::kF32, {kHandKeypoints, 3}, result.joints_3d.data());
  add("joints_2d", DType::kF32, {kHandKeypoints, 2}, result.joints_2d.data());
  add("rotmats", DType::kF32, {kHandJoints, 3, 3}, result.rotmats.data());
  add("betas", DType::kF32, {10}, result.betas.data());
  add("cam", DType::kF32, {3}, result.cam.data());
  add("cam_t_full", DType::kF32, {3}, result.cam_t_full.data());
  add("focal_length", DType::kF32, {}, &result.camera.fx);
  add("scale", DType::kF32, {}, &result.scale);
  const std::array<double, 4> camera = {result.camera.fx, result.camera.fy, result.camera.cx,
                                        result.camera.cy};
  add("camera", DType::kF32, {4}, camera.data());
  writer.commit();
}

}  // namespace

const std::vector<std::string>& save_words() {
  static const std::vector<std::string> words = {"json", "png", "obj", "ply", "glb", "npz"};
  return words;
}

bool needs_mesh(std::string_view word) { return word != "json" && word != "png"; }

std::vector<std::string> parse_save_words(const std::string& list) {
  std::vector<std::string> words = split(list, ',');
  for (const std::string& word : words) {
    if (std::ranges::find(save_words(), word) == save_words().end()) {
      throw fail(ErrorCode::kUsage, "--save {}: there is no format called '{}'; there are {}", list, word,
                 fmt::join(save_words(), ", "));
    }
  }
  return words;
}

void save_hand(const std::string& base, std::string_view format, const HandResult& result,
               const HandModel& model) {
  assert(!result.vertices.empty());
  const std::string path = fmt::format("{}.{}", base, format);
  if (format == "obj") return write_obj(path, mesh_in_frame(result, model));
  if (format == "ply") return write_ply(path, mesh_in_frame(result, model));
  if (format == "glb") return save_glb(path, result, model);
  if (format == "npz") return save_npz(path, result, model);
  throw fail(ErrorCode::kUsage, "no format is called {}", format);
}

}  // namespace sinew

#include "hand/glb_hand.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "io/printable.h"

namespace sinew {
namespace {

/// The WebXR joint (W3C WebXR Hand Input) that each joint in MANO's order is: the joint map of
/// shared/data/hand_mesh/mano16_map.json, checked there by bending the hand to a fist.
constexpr std::array<std::string_view, kHandJoints> kSourceJoints = {"wrist",
                                                                     "index-finger-phalanx-proximal",
                                                                     "index-finger-phalanx-intermediate",
                                                                     "index-finger-phalanx-distal",
                                                                     "middle-finger-phalanx-proximal",
                                                                     "middle-finger-phalanx-intermediate",
                                                                     "middle-finger-phalanx-distal",
                                                                     "pinky-finger-phalanx-proximal",
                                                                     "pinky-finger-phalanx-intermediate",
                                                                     "pinky-finger-phalanx-distal",
                                                                     "ring-finger-phalanx-proximal",
                                                                     "ring-finger-phalanx-intermediate",
                                                                     "ring-finger-phalanx-distal",
                                                                     "thumb-metacarpal",
                                                                     "thumb-phalanx-proximal",
                                                                     "thumb-phalanx-distal"};
constexpr std::array<std::string_view, 5> kSourceTips = {"thumb-tip", "index-finger-tip", "middle-finger-tip",
                                                         "ring-finger-tip", "pinky-finger-tip"};
constexpr std::size_t kThumb = 0, kIndex = 1, kPinky = 4;  // of the tips
/// Weights come normalised, as float32 or as bytes that were rounded one by one.
constexpr double kWeightTolerance = 0.02;

using Matrix = std::array<double, 9>;

Vec3 minus(const Vec3& a, const Vec3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vec3 unit(const Vec3& a) {
  const double length = std::sqrt(dot(a, a));
  return {a[0] / length, a[1] / length, a[2] / length};
}

/// The file has the fingers along -y, the thumb towards -z, the palm towards -x; MANO -x, +z, -y.
Vec3 to_mano_axes(const Vec3& p) { return {p[1], p[0], -p[2]}; }

std::size_t joint_named(const GlbSkinnedMesh& mesh, std::string_view name) {
  const auto found = std::find_if(mesh.skeleton.begin(), mesh.skeleton.end(),
                                  [&](const GlbJoint& joint) { return joint.name == name; });
  if (found == mesh.skeleton.end()) {
    throw fail(ErrorCode::kMismatch, "the skin has no joint {}, expected the joints of a WebXR hand", name);
  }
  return static_cast<std::size_t>(found - mesh.skeleton.begin());
}

/// Where a joint was bound: the point that its inverse bind matrix [A | t] takes to the origin, -A^-1 t.
Vec3 bound_at(const GlbJoint& joint) {
  const auto& m = joint.inverse_bind;
  const Vec3 a = {m[0], m[4], m[8]}, b = {m[1], m[5], m[9]}, c = {m[2], m[6], m[10]}, t = {m[3], m[7], m[11]};
  const double det = dot(a, cross(b, c));
  // Cramer's rule by columns: A x = -t.
  const Vec3 at = {-dot(t, cross(b, c)) / det, -dot(a, cross(t, c)) / det, -dot(a, cross(b, t)) / det};
  if (!std::isfinite(at[0]) || !std::isfinite(at[1]) || !std::isfinite(at[2])) {
    throw fail(ErrorCode::kMismatch, "the inverse bind matrix of joint {} has no inverse",
               printable(joint.name));
  }
  return to_mano_axes(at);
}

/// Row `vertex` of the weights over MANO's joints, summing to 1.
void append_weights(const GlbSkinnedMesh& mesh, std::size_t vertex, std::span<const std::size_t> mano_of,
                    std::vector<double>& out) {
  std::array<double, kHandJoints> row{};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double weight = mesh.weights[vertex][i];
    row[mano_of[mesh.joints[vertex][i]]] += weight;
    sum += weight;
  }
  if (!(std::abs(sum - 1) <= kWeightTolerance)) {
    throw fail(ErrorCode::kMismatch, "vertex {}: weights sum to {}, expected 1", vertex, sum);
  }
  for (const double weight : row) out.push_back(weight / sum);
}

/// Vertices, weights and triangles. A file repeats a vertex where the texture has a seam; here it is one, so
/// that the surface is closed.
void take_mesh(const GlbSkinnedMesh& mesh, std::span<const std::size_t> mano_of, HandModelData& data) {
  using Key = std::tuple<std::array<float, 3>, std::array<std::uint16_t, 4>, std::array<float, 4>>;
  std::map<Key, std::uint32_t> known;
  std::vector<std::uint32_t> merged(mesh.positions.size());
  for (std::size_t v = 0; v < mesh.positions.size(); ++v) {
    const auto& p = mesh.positions[v];
    if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) {
      throw fail(ErrorCode::kMismatch, "vertex {} is not finite", v);
    }
    const auto next = static_cast<std::uint32_t>(data.v_template.size());
    std::vector<double> row;
    append_weights(mesh, v, mano_of, row);  // before the map: NaN has no order
    const auto [entry, is_new] = known.try_emplace({p, mesh.joints[v], mesh.weights[v]}, next);
    merged[v] = entry->second;
    if (!is_new) continue;
    data.v_template.push_back(to_mano_axes({p[0], p[1], p[2]}));
    data.weights.insert(data.weights.end(), row.begin(), row.end());
  }
  for (const auto& face : mesh.triangles) {
    const Triangle t = {merged[face[0]], merged[face[1]], merged[face[2]]};
    if (t[0] != t[1] && t[1] != t[2] && t[2] != t[0]) data.faces.push_back(t);
  }
}

/// The vertex that lies farthest along a finger's last bone among those that it moves.
std::uint32_t tip_vertex(const HandModelData& data, std::size_t tip, const Vec3& towards) {
  const auto joint = static_cast<std::size_t>(Skeleton::kTipJoints[tip]);
  const Vec3 along = minus(towards, data.rest_joints[joint]);
  double farthest = -std::numeric_limits<double>::infinity();
  std::uint32_t found = 0;
  for (std::size_t v = 0; v < data.v_template.size(); ++v) {
    if (data.weights[kHandJoints * v + joint] <= 0.5) continue;
    const double reach = dot(minus(data.v_template[v], data.rest_joints[joint]), along);
    if (reach <= farthest) continue;
    farthest = reach;
    found = static_cast<std::uint32_t>(v);
  }
  if (std::isinf(farthest)) {
    throw fail(ErrorCode::kMismatch, "no vertex belongs to joint {}", kSourceJoints[joint]);
  }
  return found;
}

void check_right_hand(const HandModelData& data) {
  const auto tip = [&](std::size_t i) { return data.v_template[data.tips[i]]; };
  const bool fingers = tip(kIndex)[0] < data.rest_joints[0][0];
  const bool thumb = tip(kThumb)[2] > tip(kPinky)[2];
  const bool palm = tip(kThumb)[1] < data.rest_joints[1][1];  // the thumb stands before the knuckles
  if (fingers && thumb && palm) return;
  throw Error(ErrorCode::kMismatch,
              fingers && thumb ? "a left hand, expected the right one" : "not a flat hand as WebXR has it",
              "right.glb of @webxr-input-profiles/assets; left hands are drawn as its mirror image");
}

/// The smallest rotation that takes the unit vector a to b.
Matrix turning(const Vec3& a, const Vec3& b) {
  const Vec3 axis = cross(a, b);
  const double cosine = dot(a, b);
  const double k = 1 / std::max(1 + cosine, 1e-9);  // bones are never opposite; if they are, nothing breaks
  Matrix out{};
  const Matrix skew = {0, -axis[2], axis[1], axis[2], 0, -axis[0], -axis[1], axis[0], 0};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      out[3 * r + c] = skew[3 * r + c] + k * (axis[r] * axis[c]) + (r == c ? cosine : 0);
    }
  }
  return out;
}

/// What follows joint j on its finger, in the rest pose: the next joint, or the tip.
template <typename Joints, typename Tips>
Vec3 next_on_finger(std::size_t j, const Joints& joints, const Tips& tips) {
  for (std::size_t t = 0; t < Skeleton::kTipJoints.size(); ++t) {
    if (static_cast<std::size_t>(Skeleton::kTipJoints[t]) == j) return tips(t);
  }
  return joints[j + 1];
}

/// Poses the model so that each finger bone points as builtin_skeleton()'s, and makes that its rest pose.
HandModelData flattened(HandModelData data) {
  const Skeleton& target = builtin_skeleton();
  std::array<Matrix, kHandJoints> world{};
  std::vector<double> rotations(kHandRotationNumbers);
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    world[j] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    if (j > 0) {
      const Vec3 own =
          next_on_finger(j, data.rest_joints, [&](auto t) { return data.v_template[data.tips[t]]; });
      const Vec3 wanted = next_on_finger(j, target.joints, [&](auto t) { return target.tips[t]; });
      world[j] = turning(unit(minus(own, data.rest_joints[j])), unit(minus(wanted, target.joints[j])));
    }
    const Matrix& above = world[static_cast<std::size_t>(std::max(kHandParents[j], 0))];
    for (std::size_t i = 0; i < 9; ++i) {  // local = above^T world; the wrist's is the identity
      for (std::size_t k = 0; k < 3; ++k)
        rotations[9 * j + i] += above[3 * k + i / 3] * world[j][3 * k + i % 3];
    }
  }
  const PosedHand posed = HandModel(data, "rest pose").pose(rotations, {});
  data.v_template = posed.vertices;
  data.rest_joints.assign(posed.joints.begin(), posed.joints.end());
  return data;
}

}  // namespace

HandModelData hand_from_glb(const GlbSkinnedMesh& mesh, const std::string& name, GlbRestPose rest) {
  HandModelData data;
  data.name = name;
  std::copy(kHandParents.begin(), kHandParents.end(), data.parents.begin());
  std::vector<std::size_t> mano_of(mesh.skeleton.size(), 0);
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const std::size_t source = joint_named(mesh, kSourceJoints[j]);
    mano_of[source] = j;
    data.rest_joints.push_back(bound_at(mesh.skeleton[source]));
  }
  take_mesh(mesh, mano_of, data);
  for (std::size_t tip = 0; tip < kSourceTips.size(); ++tip) {
    data.tips[tip] = tip_vertex(data, tip, bound_at(mesh.skeleton[joint_named(mesh, kSourceTips[tip])]));
  }
  check_right_hand(data);
  const Vec3 shift = minus(builtin_skeleton().joints[0], data.rest_joints[0]);
  for (auto* points : {&data.rest_joints, &data.v_template}) {
    for (Vec3& p : *points) p = {p[0] + shift[0], p[1] + shift[1], p[2] + shift[2]};
  }
  return rest == GlbRestPose::kFlat ? flattened(std::move(data)) : data;
}

HandModelData load_glb_hand(const std::string& path, GlbRestPose rest) {
  const GlbSkinnedMesh mesh = read_glb(path);
  try {
    return hand_from_glb(
        mesh, fmt::format("webxr generic hand ({})", std::filesystem::path(path).filename().string()), rest);
  } catch (const Error& error) {
    throw error.prefixed(path + ": ");
  }
}

}  // namespace sinew

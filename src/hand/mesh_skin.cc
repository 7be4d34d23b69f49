#include "hand/mesh_skin.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace sinew {
namespace {

constexpr std::size_t kMostJoints = 255;  // indices of vertices are bytes
constexpr std::size_t kInfluences = 4;    // what every viewer supports
// Networks give rotations to float accuracy, 1e-6; a matrix that is off by 1e-3 is none.
constexpr double kRotationTolerance = 1e-3;

using Matrix = std::array<double, 9>;  // row-major
using Quaternion = std::array<double, 4>;

bool is_rotation(std::span<const double> m) {
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = a; b < 3; ++b) {
      const double dot = m[3 * a] * m[3 * b] + m[3 * a + 1] * m[3 * b + 1] + m[3 * a + 2] * m[3 * b + 2];
      if (!(std::abs(dot - (a == b ? 1 : 0)) <= kRotationTolerance)) return false;  // NaN, too
    }
  }
  const double determinant = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
                             m[2] * (m[3] * m[7] - m[4] * m[6]);
  return determinant > 0;
}

/// Shepperd's way: from the largest of the four components, so that nothing cancels.
Quaternion quaternion_of(std::span<const double> m) {
  const double trace = m[0] + m[4] + m[8];
  const std::array<double, 4> squares = {m[0] * 2 - trace + 1, m[4] * 2 - trace + 1, m[8] * 2 - trace + 1,
                                         trace + 1};
  Quaternion q;
  switch (std::ranges::max_element(squares) - squares.begin()) {
    case 0:
      q = {squares[0], m[1] + m[3], m[2] + m[6], m[7] - m[5]};
      break;
    case 1:
      q = {m[1] + m[3], squares[1], m[5] + m[7], m[2] - m[6]};
      break;
    case 2:
      q = {m[2] + m[6], m[5] + m[7], squares[2], m[3] - m[1]};
      break;
    default:
      q = {m[7] - m[5], m[2] - m[6], m[3] - m[1], squares[3]};
  }
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& c : q) c /= length;
  return q;
}

Matrix matrix_of(const Quaternion& q) {
  const auto [x, y, z, w] = q;
  return {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
          2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
          2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};
}

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix out{};
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t k = 0; k < 3; ++k) out[i] += a[i / 3 * 3 + k] * b[3 * k + i % 3];
  }
  return out;
}

void check(const std::string& path, const Skin& skin, std::size_t vertices) {
  const std::size_t count = skin.joints.size();
  if (count < 1 || count > kMostJoints || skin.parents.size() != count ||
      (!skin.rotations.empty() && skin.rotations.size() != 9 * count) ||
      skin.weights.size() != vertices * count) {
    throw fail(ErrorCode::kMismatch,
               "{}: a skin of {} joints, {} parents, {} numbers of rotations and {} weights for {} vertices",
               path, count, skin.parents.size(), skin.rotations.size(), skin.weights.size(), vertices);
  }
  for (std::size_t j = 0; j < count; ++j) {
    const int parent = skin.parents[j];
    const bool in_order = j == 0 ? parent == -1 : parent >= 0 && parent < static_cast<int>(j);
    if (!in_order)
      throw fail(ErrorCode::kMismatch, "{}: joint {} of the skin has parent {}", path, j, parent);
    if (!std::ranges::all_of(skin.joints[j], [](double c) { return std::isfinite(c); })) {
      throw fail(ErrorCode::kMismatch, "{}: joint {} of the skin is not finite", path, j);
    }
    if (!skin.rotations.empty() && !is_rotation(skin.rotations.subspan(9 * j, 9))) {
      throw fail(ErrorCode::kMismatch, "{}: the rotation of joint {} of the skin is none", path, j);
    }
  }
  for (std::size_t i = 0; i < skin.weights.size(); ++i) {
    if (!(skin.weights[i] >= 0 && skin.weights[i] <= 1e6F)) {
      throw fail(ErrorCode::kMismatch, "{}: weight {} of joint {} at vertex {} of the skin", path,
                 skin.weights[i], i % count, i / count);
    }
  }
}

std::vector<GltfJoint> pose_joints(const Skin& skin) {
  std::vector<GltfJoint> out(skin.joints.size());
  std::vector<Matrix> turned(out.size());  // in the mesh's axes
  std::vector<Vec3> places(out.size());
  for (std::size_t j = 0; j < out.size(); ++j) {
    GltfJoint& joint = out[j];
    joint.parent = skin.parents[j];
    joint.rotation =
        skin.rotations.empty() ? Quaternion{0, 0, 0, 1} : quaternion_of(skin.rotations.subspan(9 * j, 9));
    joint.translation = skin.joints[j];
    turned[j] = matrix_of(joint.rotation);  // what viewers will compute
    places[j] = skin.joints[j];
    if (joint.parent >= 0) {
      const auto parent = static_cast<std::size_t>(joint.parent);
      places[j] = places[parent];
      for (std::size_t i = 0; i < 3; ++i) joint.translation[i] -= skin.joints[parent][i];
      for (std::size_t i = 0; i < 9; ++i) places[j][i / 3] += turned[parent][i] * joint.translation[i % 3];
      turned[j] = times(turned[parent], turned[j]);
    }
    // The inverse of (R, p) is (R^T, -R^T p).
    joint.inverse_bind[15] = 1;
    for (std::size_t row = 0; row < 3; ++row) {
      double shift = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        joint.inverse_bind[4 * k + row] = static_cast<float>(turned[j][3 * k + row]);
        shift -= turned[j][3 * k + row] * places[j][k];
      }
      joint.inverse_bind[12 + row] = static_cast<float>(shift);
    }
  }
  return out;
}

/// The four heaviest of a vertex; equal ones in the order of joints.
void choose_weights(std::span<const float> all, std::array<std::uint8_t, kInfluences>& indices,
                    std::array<float, kInfluences>& weights) {
  std::array<std::uint8_t, kMostJoints> order;
  const auto used = std::span(order).first(all.size());
  std::iota(used.begin(), used.end(), std::uint8_t{0});
  std::ranges::sort(used, {}, [&](std::uint8_t j) { return std::pair(-all[j], j); });
  indices.fill(0);
  weights.fill(0);
  double sum = 0;
  for (std::size_t i = 0; i < std::min(kInfluences, used.size()); ++i) {
    if (all[used[i]] <= 0) break;
    indices[i] = used[i];
    weights[i] = all[used[i]];
    sum += weights[i];
  }
  if (sum <= 0) {
    weights[0] = 1;  // of no joint: goes with the root
    return;
  }
  for (float& w : weights) w = static_cast<float>(w / sum);
}

}  // namespace

GltfSkin to_gltf(const std::string& path, const Skin& skin, std::size_t vertices) {
  check(path, skin, vertices);
  GltfSkin out;
  out.joints = pose_joints(skin);
  out.indices.resize(vertices);
  out.weights.resize(vertices);
  const std::size_t count = skin.joints.size();
  for (std::size_t v = 0; v < vertices; ++v) {
    choose_weights(skin.weights.subspan(v * count, count), out.indices[v], out.weights[v]);
  }
  return out;
}

}  // namespace sinew

#include "hand/hand_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sinew {
namespace {

constexpr std::size_t kMaxVertices = 65536;
constexpr std::size_t kMaxFaces = 4 * kMaxVertices;
/// A hand lies within this of its origin; a model in millimetres does not, and is told so.
constexpr double kMaxMetres = 10;
/// No blend direction, regressor entry or weight is near this; it keeps every pose finite.
constexpr double kMaxNumber = 1e6;
/// Weights come as float32 or bytes and were normalised there: a row is off by a few parts in 1e7.
constexpr double kWeightTolerance = 1e-4;

using Joints = std::array<Vec3, kHandJoints>;

void check_count(std::string_view array, std::size_t found, std::size_t expected) {
  if (found != expected) {
    throw fail(ErrorCode::kMismatch, "{}: {} numbers, expected {}", array, found, expected);
  }
}

/// `columns` to say where: [row][column].
void check_numbers(std::string_view array, std::span<const double> values, std::size_t columns, double most) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) <= most) continue;  // false for NaN too
    throw fail(ErrorCode::kMismatch, "{}[{}][{}] is {}, expected a number within +-{}", array, i / columns,
               i % columns, values[i], most);
  }
}

std::span<const double> flat(const std::vector<Vec3>& points) {
  return {points.empty() ? nullptr : points.front().data(), 3 * points.size()};
}

void check_sizes(const HandModelData& data) {
  const std::size_t vertices = data.v_template.size();
  if (vertices == 0 || vertices > kMaxVertices) {
    throw fail(ErrorCode::kLimit, "v_template: {} vertices, expected 1 to {}", vertices, kMaxVertices);
  }
  if (data.shapes > kMaxHandShapes) {
    throw fail(ErrorCode::kLimit, "shapedirs: {} shapes, at most {} are used", data.shapes, kMaxHandShapes);
  }
  if (data.faces.size() > kMaxFaces) {
    throw fail(ErrorCode::kLimit, "faces: {} triangles, at most {}", data.faces.size(), kMaxFaces);
  }
  check_count("shapedirs", data.shapedirs.size(), 3 * vertices * data.shapes);
  if (!data.posedirs.empty()) check_count("posedirs", data.posedirs.size(), 3 * vertices * kHandPoseBlend);
  check_count("weights", data.weights.size(), vertices * kHandJoints);
  if (data.regressor.empty()) {
    check_count("rest joints", data.rest_joints.size(), kHandJoints);
  } else {
    check_count("joint regressor", data.regressor.size(), kHandJoints * vertices);
    check_count("rest joints beside a regressor", data.rest_joints.size(), 0);
  }
}

void check_values(const HandModelData& data) {
  const std::size_t vertices = data.v_template.size();
  check_numbers("v_template", flat(data.v_template), 3, kMaxMetres);
  check_numbers("rest joints", flat(data.rest_joints), 3, kMaxMetres);
  check_numbers("shapedirs", data.shapedirs, std::max<std::size_t>(3 * data.shapes, 1), kMaxNumber);
  check_numbers("posedirs", data.posedirs, 3 * kHandPoseBlend, kMaxNumber);
  check_numbers("joint regressor", data.regressor, vertices, kMaxNumber);
  check_numbers("weights", data.weights, kHandJoints, kMaxNumber);
  for (std::size_t v = 0; v < vertices; ++v) {
    double sum = 0;
    for (std::size_t j = 0; j < kHandJoints; ++j) sum += data.weights[kHandJoints * v + j];
    if (std::abs(sum - 1) > kWeightTolerance) {
      throw fail(ErrorCode::kMismatch, "weights[{}] sums to {}, expected 1", v, sum);
    }
  }
}

void check_indices(const HandModelData& data) {
  const std::size_t vertices = data.v_template.size();
  for (std::size_t f = 0; f < data.faces.size(); ++f) {
    for (const std::uint32_t v : data.faces[f]) {
      if (v < vertices) continue;
      throw fail(ErrorCode::kMismatch, "faces[{}] names vertex {}, there are {}", f, v, vertices);
    }
  }
  for (const std::uint32_t v : data.tips) {
    if (v < vertices) continue;
    throw fail(ErrorCode::kMismatch, "finger tip: vertex {}, there are {}", v, vertices);
  }
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    if (data.parents[j] == kHandParents[j]) continue;
    throw fail(ErrorCode::kMismatch, "the parent of joint {} is {}, MANO's tree has {}", j, data.parents[j],
               kHandParents[j]);
  }
}

Joints regress(std::span<const double> regressor, std::span<const double> points) {
  Joints out{};
  const std::size_t vertices = points.size() / 3;
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    for (std::size_t v = 0; v < vertices; ++v) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        out[j][axis] += regressor[j * vertices + v] * points[3 * v + axis];
      }
    }
  }
  return out;
}

/// [V][3][K] -> K rows of [V][3], appended.
void append_rows(std::vector<double>& rows, std::span<const double> columns, std::size_t count) {
  const std::size_t entries = count == 0 ? 0 : columns.size() / count;
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < entries; ++i) rows.push_back(columns[i * count + k]);
  }
}

void add_scaled(std::span<double> out, double factor, const double* row) {
  if (factor == 0) return;  // the flat hand has 135 of these
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += factor * row[i];
}

}  // namespace

HandModel::HandModel(HandModelData data, const std::string& where) {
  try {
    check_sizes(data);
    check_values(data);
    check_indices(data);
  } catch (const Error& error) {
    throw error.prefixed(where + ": ");
  }
  name_ = std::move(data.name);
  shapes_ = data.shapes;
  pose_blend_ = !data.posedirs.empty();
  directions_.reserve(data.shapedirs.size() + data.posedirs.size());
  append_rows(directions_, data.shapedirs, shapes_);
  append_rows(directions_, data.posedirs, pose_blend_ ? kHandPoseBlend : 0);
  joint_directions_.resize(shapes_);
  if (data.regressor.empty()) {
    std::copy(data.rest_joints.begin(), data.rest_joints.end(), joint_template_.begin());
  } else {
    const std::size_t row = 3 * data.v_template.size();
    joint_template_ = regress(data.regressor, flat(data.v_template));
    for (std::size_t k = 0; k < shapes_; ++k) {
      joint_directions_[k] = regress(data.regressor, std::span(directions_).subspan(k * row, row));
    }
  }
  v_template_ = std::move(data.v_template);
  weights_ = std::move(data.weights);
  faces_ = std::move(data.faces);
  tips_ = data.tips;
}

std::array<Vec3, kHandJoints> HandModel::rest_joints(std::span<const double> betas) const {
  Joints out = joint_template_;
  for (std::size_t k = 0; k < std::min(shapes_, betas.size()); ++k) {
    for (std::size_t j = 0; j < kHandJoints; ++j) {
      for (std::size_t axis = 0; axis < 3; ++axis) out[j][axis] += betas[k] * joint_directions_[k][j][axis];
    }
  }
  return out;
}

Skeleton HandModel::skeleton(std::span<const double> betas) const {
  Skeleton out = {rest_joints(betas), {}};
  for (std::size_t t = 0; t < tips_.size(); ++t) {
    out.tips[t] = v_template_[tips_[t]];
    for (std::size_t k = 0; k < std::min(shapes_, betas.size()); ++k) {
      const double* moves = &directions_[3 * (k * v_template_.size() + tips_[t])];
      for (std::size_t axis = 0; axis < 3; ++axis) out.tips[t][axis] += betas[k] * moves[axis];
    }
  }
  return out;
}

HandModel::SkinMatrices HandModel::skin_matrices(std::span<const double> rotations,
                                                 std::span<const double> betas, Joints& joints) const {
  const Joints rest = rest_joints(betas);
  SkinMatrices out{};
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const double* own = &rotations[9 * j];
    auto& matrix = out[j];
    joints[j] = rest[j];
    if (kHandParents[j] < 0) {
      for (std::size_t r = 0; r < 3; ++r)
        std::copy_n(own + 3 * r, 3, matrix.begin() + static_cast<long>(4 * r));
    } else {
      const auto parent = static_cast<std::size_t>(kHandParents[j]);
      const auto& above = out[parent];
      for (std::size_t r = 0; r < 3; ++r) {
        joints[j][r] = joints[parent][r];
        for (std::size_t k = 0; k < 3; ++k) {
          joints[j][r] += above[4 * r + k] * (rest[j][k] - rest[parent][k]);
          for (std::size_t c = 0; c < 3; ++c) matrix[4 * r + c] += above[4 * r + k] * own[3 * k + c];
        }
      }
    }
    for (std::size_t r = 0; r < 3; ++r) {
      matrix[4 * r + 3] = joints[j][r];
      for (std::size_t k = 0; k < 3; ++k) matrix[4 * r + 3] -= matrix[4 * r + k] * rest[j][k];
    }
  }
  return out;
}

void HandModel::blend_shapes(std::span<const double> rotations, std::span<const double> betas,
                             std::vector<Vec3>& vertices) const {
  const std::span<double> out(vertices.front().data(), 3 * vertices.size());
  const double* row = directions_.data();
  for (std::size_t k = 0; k < shapes_; ++k, row += out.size()) {
    add_scaled(out, k < betas.size() ? betas[k] : 0, row);
  }
  if (!pose_blend_) return;
  for (std::size_t k = 0; k < kHandPoseBlend; ++k, row += out.size()) {
    const bool diagonal = k % 9 % 4 == 0;
    add_scaled(out, rotations[9 + k] - (diagonal ? 1 : 0), row);
  }
}

PosedHand HandModel::pose(std::span<const double> rotations, std::span<const double> betas) const {
  assert(rotations.size() == kHandRotationNumbers);
  PosedHand out;
  const SkinMatrices skin = skin_matrices(rotations, betas, out.joints);
  out.vertices = v_template_;
  blend_shapes(rotations, betas, out.vertices);
  for (std::size_t v = 0; v < out.vertices.size(); ++v) {
    std::array<double, 12> blend{};
    for (std::size_t j = 0; j < kHandJoints; ++j) {
      const double weight = weights_[kHandJoints * v + j];
      if (weight == 0) continue;  // most of them: two or three joints move a vertex
      for (std::size_t i = 0; i < blend.size(); ++i) blend[i] += weight * skin[j][i];
    }
    const Vec3 p = out.vertices[v];
    for (std::size_t r = 0; r < 3; ++r) {
      const double* m = &blend[4 * r];
      out.vertices[v][r] = m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3];
    }
  }
  for (std::size_t i = 0; i < out.keypoints.size(); ++i) {
    const auto from = static_cast<std::size_t>(kOpenPoseFromMano[i]);
    out.keypoints[i] = from < kHandJoints ? out.joints[from] : out.vertices[tips_[from - kHandJoints]];
  }
  return out;
}

}  // namespace sinew

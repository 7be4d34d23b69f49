// A skinned hand: 16 rotations and a few shape numbers in, a mesh and its key points out.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hand/skeleton.h"

namespace sinew {

inline constexpr std::size_t kHandRotationNumbers = std::size_t{9} * kHandJoints;  // 16 row-major matrices
inline constexpr std::size_t kHandPoseBlend = std::size_t{9} * (kHandJoints - 1);  // columns of posedirs
inline constexpr std::size_t kMaxHandShapes = 10;

using Triangle = std::array<std::uint32_t, 3>;

/// What a hand model is made of, in metres and MANO's axes (fingers along -x, thumb towards +z, palm towards
/// -y). V vertices, S shapes; all arrays row-major.
struct HandModelData {
  std::string name;                     // for the record: "mano (MANO_RIGHT.pkl)"
  std::vector<Vec3> v_template;         // [V]
  std::size_t shapes = 0;               // S, 0 to 10
  std::vector<double> shapedirs;        // [V][3][S]
  std::vector<double> posedirs;         // [V][3][135], or empty: no pose-dependent correction
  std::vector<double> regressor;        // [16][V], or empty: joints stay at rest_joints whatever the shape
  std::vector<Vec3> rest_joints;        // [16] when there is no regressor, else empty
  std::vector<double> weights;          // [V][16], rows sum to 1
  std::vector<Triangle> faces;          // counter-clockwise seen from outside
  std::array<std::uint32_t, 5> tips{};  // vertices: thumb, index, middle, ring, pinky
  std::array<std::int64_t, kHandJoints> parents{};  // must be kHandParents; a file says so itself
};

struct PosedHand {
  std::vector<Vec3> vertices;
  std::array<Vec3, kHandJoints> joints{};  // MANO order
  HandKeypoints keypoints{};               // OpenPose order, tips are vertices
};

/// Linear blend skinning over MANO's tree (spec hamer 5.2). Immutable: any number of threads may share one.
class HandModel {
 public:
  /// Checks everything once, so that pose() cannot fail: sizes, indices, the tree, finite numbers of
  /// plausible size, weights that sum to 1. Throws Error (kMismatch, kLimit) that begins with `where` (the
  /// file) and names the array, the place and the value.
  HandModel(HandModelData data, const std::string& where);

  const std::string& name() const { return name_; }
  std::size_t vertex_count() const { return v_template_.size(); }
  std::size_t shapes() const { return shapes_; }
  const std::vector<Triangle>& faces() const { return faces_; }
  const std::array<std::uint32_t, 5>& tips() const { return tips_; }
  /// [V][16]
  const std::vector<double>& weights() const { return weights_; }

  /// The mesh of a right hand in metres. `rotations` are 144 numbers, 16 row-major matrices, absolute with
  /// respect to the flat template; the root's turns about the wrist joint. Of `betas` the first shapes()
  /// count; missing ones are zero.
  PosedHand pose(std::span<const double> rotations, std::span<const double> betas) const;
  /// The joints before any rotation, in MANO order.
  std::array<Vec3, kHandJoints> rest_joints(std::span<const double> betas) const;
  /// The same with the tips, which are vertices: what fit_hand() bends. A tip moves with its finger's last
  /// bone here, while in the mesh it also follows joints before that and pose-dependent corrections a little.
  Skeleton skeleton(std::span<const double> betas) const;

 private:
  /// Each joint's 3x4 matrix [G | t - G J] of spec 5.2, and t itself in `joints`.
  using SkinMatrices = std::array<std::array<double, 12>, kHandJoints>;
  SkinMatrices skin_matrices(std::span<const double> rotations, std::span<const double> betas,
                             std::array<Vec3, kHandJoints>& joints) const;
  void blend_shapes(std::span<const double> rotations, std::span<const double> betas,
                    std::vector<Vec3>& vertices) const;

  std::string name_;
  std::vector<Vec3> v_template_;
  std::size_t shapes_ = 0;
  bool pose_blend_ = false;
  std::vector<double> directions_;  // [S + 135 or S][V][3]: rows, so that a blend is one pass of a = a + k b
  std::vector<double> weights_;
  std::vector<Triangle> faces_;
  std::array<std::uint32_t, 5> tips_{};
  // The regressor is linear in the shape numbers: applied to template and directions once, not at each pose.
  std::array<Vec3, kHandJoints> joint_template_{};
  std::vector<std::array<Vec3, kHandJoints>> joint_directions_;  // [S]
};

}  // namespace sinew

// Family: rotations.
#pragma once

#include "program/program.h"

namespace sinew {

/// Gram-Schmidt of 6D rotations (Zhou et al. 2019; spec hamer 1.4). x [1, 6*joints], out [1, 9*joints]: each
/// group of six numbers is two vectors a1, a2; b1 = a1/max(|a1|,1e-12), b2 likewise from a2 - (b1.a2) b1, b3
/// = b1 x b2 are the COLUMNS of the row-major 3x3 result. All f32 (f64).
struct Rotation6dToMatrix final : Op {
  ValueId x, out;

  std::string_view name() const override { return "rotation_6d_to_matrix"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
};

/// The meaning of the op for one joint, in the precision of T.
template <typename T>
void rotation_6d_to_matrix(const T* six, T* matrix);

}  // namespace sinew

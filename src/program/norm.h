// Family: normalisation over the last axis.
#pragma once

#include "program/program.h"

namespace sinew {

/// out = (x - mean) / sqrt(variance + eps) * gamma + beta over the last axis, biased variance, computed in
/// f32 (f64). x [M,C] f32 (f64); gamma, beta [C] f32 (f64); out [M,C] f32 or bf16 (f64).
struct LayerNorm final : Op {
  ValueId x, gamma, beta, out;
  double eps = 0;

  std::string_view name() const override { return "layer_norm"; }
  std::vector<ValueId> inputs() const override { return {x, gamma, beta}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

}  // namespace sinew

// Family: matrix products with weights.
#pragma once

#include "program/program.h"

namespace sinew {

enum class Activation : std::uint8_t { kNone, kGelu };

/// out = act(x * weight^T + bias) + residual, accumulated in f32 (f64 in double programs).
///
/// x [M,K]; weight [N,K] as PyTorch stores it; bias [N] and residual [M,N] optional; out [M,N]. x and weight
/// have one dtype (f32 or bf16); in a double program x is f64 and the weight may be any float type, since
/// widening it is exact. bias and residual are f32 (f64); out is f32 or, for bf16 operands, also bf16 (f64).
/// GELU is the exact form x/2 (1 + erf(x/sqrt 2)).
struct Linear final : Op {
  ValueId x, weight, bias, residual, out;
  Activation activation = Activation::kNone;

  std::string_view name() const override { return "linear"; }
  std::vector<ValueId> inputs() const override;
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override { return activation == Activation::kGelu ? "gelu" : ""; }
};

}  // namespace sinew

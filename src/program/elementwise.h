// Family: one element at a time.
#pragma once

#include "program/program.h"
#include "program/rectifier.h"

namespace sinew {

/// out = a + b. a, out of one shape; b of that shape too or, for a of two axes [M,N], [1,N] which is added to
/// every row. All f32 (f64).
struct Add final : Op {
  ValueId a, b, out;

  std::string_view name() const override { return "add"; }
  std::vector<ValueId> inputs() const override { return {a, b}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
};

/// out = x/2 (1 + erf(x/sqrt 2)), computed in f32 (f64). x f32 (f64); out of x's shape, f32 or bf16 (f64).
struct Gelu final : Op {
  ValueId x, out;

  std::string_view name() const override { return "gelu"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
};

/// out = rectifier(x), see Rectifier; not kNone. x [..., C], slope [C] for kPRelu and absent otherwise, out
/// of x's shape, all f32 (f64).
struct Rectify final : Op {
  ValueId x, slope, out;
  Rectifier rectifier = Rectifier::kRelu;

  std::string_view name() const override { return "rectify"; }
  std::vector<ValueId> inputs() const override;
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

/// out = 1 / (1 + exp(-x)). x and out of one shape, f32 (f64).
struct Logistic final : Op {
  ValueId x, out;

  std::string_view name() const override { return "logistic"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
};

/// out = x in another float type, rounded to nearest even. x, out f32, bf16 or f64, of one shape.
struct Convert final : Op {
  ValueId x, out;

  std::string_view name() const override { return "convert"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
};

}  // namespace sinew

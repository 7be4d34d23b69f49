// Family: scaled dot-product attention.
#pragma once

#include "program/program.h"

namespace sinew {

/// Columns [column, column + heads * head_dim) of a row-major matrix: how Q, K and V lie inside a fused
/// projection.
struct HeadColumns {
  ValueId value;
  std::int64_t column = 0;
};

/// For each head h: out[:, h] = softmax(scale * q_h k_h^T) v_h, softmax in f32 (f64) over all keys, no mask.
///
/// q is [Tq, >= column + heads*head_dim], k and v [Tk, ...], each head a run of head_dim columns, heads
/// consecutive; all of one dtype (f32, bf16; f64 in double programs). out [Tq, heads*head_dim] of the same
/// dtype.
struct Attention final : Op {
  HeadColumns q, k, v;
  ValueId out;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  double scale = 1;

  std::string_view name() const override { return "attention"; }
  std::vector<ValueId> inputs() const override { return {q.value, k.value, v.value}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

}  // namespace sinew

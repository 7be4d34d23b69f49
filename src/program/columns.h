// Family: moving columns of matrices.
#pragma once

#include "program/program.h"

namespace sinew {

/// out = x[:, column : column + out columns]. x [M,N], out [M,n], any one dtype.
struct SliceColumns final : Op {
  ValueId x, out;
  std::int64_t column = 0;

  std::string_view name() const override { return "slice_columns"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
  std::string attributes() const override;
};

/// out = the parts side by side. Parts [M,n_i] of one dtype, out [M, sum n_i].
struct ConcatColumns final : Op {
  std::vector<ValueId> parts;
  ValueId out;

  std::string_view name() const override { return "concat_columns"; }
  std::vector<ValueId> inputs() const override { return parts; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
};

}  // namespace sinew

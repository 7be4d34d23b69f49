// Family: where elements lie: padding, scaling, reshaping, stacking.
#pragma once

#include <array>

#include "program/program.h"

namespace sinew {

/// Zeros around x: out axis i has before[i] + x axis i + after[i]. x and out have three axes, f32 (f64).
struct Pad final : Op {
  ValueId x, out;
  std::array<std::int64_t, 3> before{}, after{};

  std::string_view name() const override { return "pad"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
  std::string attributes() const override;
};

/// Bilinear scaling with pixel centres at half integers: output row r samples row (r + 0.5) * H / H' - 0.5,
/// clamped to the picture; columns alike. x [H,W,C], out [H',W',C], f32 (f64).
struct ResizeBilinear final : Op {
  ValueId x, out;

  std::string_view name() const override { return "resize_bilinear"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
};

/// The same elements in the same order under another shape; any one dtype.
struct Reshape final : Op {
  ValueId x, out;

  std::string_view name() const override { return "reshape"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
};

/// out = the parts below one another. Parts [m_i,N] of one dtype, out [sum m_i,N].
struct ConcatRows final : Op {
  std::vector<ValueId> parts;
  ValueId out;

  std::string_view name() const override { return "concat_rows"; }
  std::vector<ValueId> inputs() const override { return parts; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
};

}  // namespace sinew

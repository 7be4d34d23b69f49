// What the rules of ops are written with: each helper throws Error (kMismatch) that names op and value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "program/program.h"
#include "program/rectifier.h"

namespace sinew {

class Rules {
 public:
  Rules(const Program& program, std::string_view op) : program_(program), op_(op) {}

  const Value& value(ValueId id) const { return program_.value(id); }
  /// The value has exactly this shape.
  void shape(ValueId id, const Shape& expected) const;
  /// The value has this many axes.
  void rank(ValueId id, int expected) const;
  /// The value has one of these dtypes.
  void dtype(ValueId id, std::initializer_list<DType> allowed) const;
  void same_dtype(ValueId a, ValueId b) const;
  /// A rectifier of `out` with one slope per channel (last axis) has one, of out's dtype; others have none.
  void slope(ValueId id, Rectifier rectifier, ValueId out) const;
  /// Any other rule: `text` says what must hold.
  void require(bool holds, ValueId id, std::string_view text) const;

 private:
  const Program& program_;
  std::string_view op_;
};

/// True for dtypes in which activations may be kept: f32, bf16, f64.
bool is_activation(DType dtype);

}  // namespace sinew

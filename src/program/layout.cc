#include "program/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/rules.h"

namespace sinew {

void Pad::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 3);
  rules.dtype(x, {DType::kF32, DType::kF64});
  rules.same_dtype(x, out);
  const auto not_negative = [](std::int64_t n) { return n >= 0; };
  rules.require(std::ranges::all_of(before, not_negative) && std::ranges::all_of(after, not_negative), x,
                "padding must not be negative");
  const Shape& shape = rules.value(x).shape;
  rules.shape(out, {before[0] + shape[0] + after[0], before[1] + shape[1] + after[1],
                    before[2] + shape[2] + after[2]});
}

std::string Pad::attributes() const {
  return fmt::format("{}+{} x {}+{} x {}+{}", before[0], after[0], before[1], after[1], before[2], after[2]);
}

void ResizeBilinear::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 3);
  rules.rank(out, 3);
  rules.dtype(x, {DType::kF32, DType::kF64});
  rules.same_dtype(x, out);
  rules.require(rules.value(out).shape[2] == rules.value(x).shape[2], out,
                "needs as many channels as its source");
}

Cost ResizeBilinear::cost(const Program& program) const {
  // Two interpolations between rows and one between columns, each a subtraction, a product and a sum.
  return {9.0 * static_cast<double>(program.value(out).shape.count())};
}

void Reshape::check(const Program& program) const {
  const Rules rules(program, name());
  rules.same_dtype(x, out);
  rules.require(rules.value(out).shape.count() == rules.value(x).shape.count(), out,
                "needs as many elements as its source");
}

void ConcatRows::check(const Program& program) const {
  const Rules rules(program, name());
  rules.require(!parts.empty(), out, "has no parts");
  rules.rank(out, 2);
  std::int64_t rows = 0;
  for (const ValueId part : parts) {
    rules.rank(part, 2);
    rules.same_dtype(out, part);
    rules.require(rules.value(part).shape[1] == rules.value(out).shape[1], part,
                  "needs as many columns as the result");
    rows += rules.value(part).shape[0];
  }
  rules.shape(out, {rows, rules.value(out).shape[1]});
}

}  // namespace sinew

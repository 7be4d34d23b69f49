#include "program/elementwise.h"

#include "program/rules.h"

namespace sinew {

void Add::check(const Program& program) const {
  const Rules rules(program, name());
  rules.dtype(a, {DType::kF32, DType::kF64});
  rules.same_dtype(a, b);
  rules.same_dtype(a, out);
  const Shape& shape = rules.value(a).shape;
  rules.shape(out, shape);
  if (shape.rank() != 2) {
    rules.shape(b, shape);
    return;
  }
  rules.rank(b, 2);
  const std::int64_t rows = rules.value(b).shape[0];
  rules.require(rows == 1 || rows == shape[0], b, "needs one row or as many as the other operand");
  rules.require(rules.value(b).shape[1] == shape[1], b, "needs as many columns as the other operand");
}

Cost Add::cost(const Program& program) const { return {static_cast<double>(program.value(a).shape.count())}; }

void Gelu::check(const Program& program) const {
  const Rules rules(program, name());
  rules.dtype(x, {DType::kF32, DType::kF64});
  rules.shape(out, rules.value(x).shape);
  if (rules.value(x).dtype == DType::kF64) {
    rules.dtype(out, {DType::kF64});
  } else {
    rules.dtype(out, {DType::kF32, DType::kBF16});
  }
}

Cost Gelu::cost(const Program& program) const {
  return {20.0 * static_cast<double>(program.value(x).shape.count())};
}

std::vector<ValueId> Rectify::inputs() const {
  return slope ? std::vector<ValueId>{x, slope} : std::vector<ValueId>{x};
}

void Rectify::check(const Program& program) const {
  const Rules rules(program, name());
  rules.dtype(x, {DType::kF32, DType::kF64});
  rules.require(rules.value(x).shape.rank() > 0, x, "needs at least one axis");
  rules.require(rectifier != Rectifier::kNone, x, "the rectifier must not be none");
  rules.same_dtype(x, out);
  rules.shape(out, rules.value(x).shape);
  rules.slope(slope, rectifier, out);
}

Cost Rectify::cost(const Program& program) const {
  return {static_cast<double>(program.value(x).shape.count())};
}

std::string Rectify::attributes() const { return std::string(to_string(rectifier)); }

void Logistic::check(const Program& program) const {
  const Rules rules(program, name());
  rules.dtype(x, {DType::kF32, DType::kF64});
  rules.same_dtype(x, out);
  rules.shape(out, rules.value(x).shape);
}

Cost Logistic::cost(const Program& program) const {
  return {20.0 * static_cast<double>(program.value(x).shape.count())};
}

void Convert::check(const Program& program) const {
  const Rules rules(program, name());
  rules.require(is_activation(rules.value(x).dtype), x, "must be f32, bf16 or f64");
  rules.require(is_activation(rules.value(out).dtype), out, "must be f32, bf16 or f64");
  rules.shape(out, rules.value(x).shape);
}

}  // namespace sinew

#include "program/linear.h"

#include "program/rules.h"

namespace sinew {

std::vector<ValueId> Linear::inputs() const {
  std::vector<ValueId> ids = {x, weight};
  if (bias) ids.push_back(bias);
  if (residual) ids.push_back(residual);
  return ids;
}

void Linear::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 2);
  rules.rank(weight, 2);
  rules.dtype(x, {DType::kF32, DType::kBF16, DType::kF64});
  const bool in_double = rules.value(x).dtype == DType::kF64;
  const std::int64_t m = rules.value(x).shape[0];
  const std::int64_t k = rules.value(x).shape[1];
  const std::int64_t n = rules.value(weight).shape[0];
  rules.shape(weight, {n, k});
  const DType accumulator = in_double ? DType::kF64 : DType::kF32;
  if (in_double) {
    rules.dtype(weight, {DType::kF64, DType::kF32, DType::kBF16, DType::kF16});
    rules.dtype(out, {DType::kF64});
  } else {
    rules.same_dtype(x, weight);
    if (rules.value(x).dtype == DType::kBF16) {
      rules.dtype(out, {DType::kF32, DType::kBF16});
    } else {
      rules.dtype(out, {DType::kF32});
    }
  }
  rules.shape(out, {m, n});
  if (bias) {
    rules.shape(bias, {n});
    rules.dtype(bias, {accumulator});
  }
  if (residual) {
    rules.shape(residual, {m, n});
    rules.dtype(residual, {accumulator});
  }
}

Cost Linear::cost(const Program& program) const {
  const Shape& rows = program.value(x).shape;
  return {2.0 * static_cast<double>(rows[0]) * static_cast<double>(rows[1]) *
          static_cast<double>(program.value(weight).shape[0])};
}

}  // namespace sinew

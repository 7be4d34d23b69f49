#include "program/norm.h"

#include <fmt/format.h>

#include "program/rules.h"

namespace sinew {

void LayerNorm::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 2);
  rules.dtype(x, {DType::kF32, DType::kF64});
  const std::int64_t channels = rules.value(x).shape[1];
  rules.shape(gamma, {channels});
  rules.shape(beta, {channels});
  rules.same_dtype(x, gamma);
  rules.same_dtype(x, beta);
  rules.shape(out, rules.value(x).shape);
  if (rules.value(x).dtype == DType::kF64) {
    rules.dtype(out, {DType::kF64});
  } else {
    rules.dtype(out, {DType::kF32, DType::kBF16});
  }
  rules.require(eps > 0, x, "eps must be positive");
}

Cost LayerNorm::cost(const Program& program) const {
  return {8.0 * static_cast<double>(program.value(x).shape.count())};
}

std::string LayerNorm::attributes() const { return fmt::format("eps={:g}", eps); }

}  // namespace sinew

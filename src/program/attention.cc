#include "program/attention.h"

#include <fmt/format.h>

#include "program/rules.h"

namespace sinew {

void Attention::check(const Program& program) const {
  const Rules rules(program, name());
  rules.require(heads > 0 && head_dim > 0, out, "heads and head_dim must be positive");
  const std::int64_t width = heads * head_dim;
  for (const HeadColumns& part : {q, k, v}) {
    rules.rank(part.value, 2);
    rules.same_dtype(q.value, part.value);
    rules.require(part.column >= 0 && part.column + width <= rules.value(part.value).shape[1], part.value,
                  "the heads do not fit in its columns");
  }
  rules.dtype(q.value, {DType::kF32, DType::kBF16, DType::kF64});
  rules.require(rules.value(k.value).shape[0] == rules.value(v.value).shape[0], v.value,
                "needs as many rows as there are keys");
  rules.shape(out, {rules.value(q.value).shape[0], width});
  rules.same_dtype(q.value, out);
}

Cost Attention::cost(const Program& program) const {
  const auto queries = static_cast<double>(program.value(q.value).shape[0]);
  const auto keys = static_cast<double>(program.value(k.value).shape[0]);
  return {4.0 * queries * keys * static_cast<double>(heads * head_dim)};
}

std::string Attention::attributes() const {
  return fmt::format("{} heads of {}, columns q={} k={} v={}, scale={:g}", heads, head_dim, q.column,
                     k.column, v.column, scale);
}

}  // namespace sinew

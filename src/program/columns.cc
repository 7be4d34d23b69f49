#include "program/columns.h"

#include <fmt/format.h>

#include "program/rules.h"

namespace sinew {

void SliceColumns::check(const Program& program) const {
  const Rules rules(program, name());
  rules.rank(x, 2);
  rules.rank(out, 2);
  rules.same_dtype(x, out);
  const Shape& shape = rules.value(x).shape;
  rules.require(rules.value(out).shape[0] == shape[0], out, "needs as many rows as its source");
  rules.require(column >= 0 && column + rules.value(out).shape[1] <= shape[1], out,
                "reaches beyond the columns of its source");
}

std::string SliceColumns::attributes() const { return fmt::format("column={}", column); }

void ConcatColumns::check(const Program& program) const {
  const Rules rules(program, name());
  rules.require(!parts.empty(), out, "has no parts");
  rules.rank(out, 2);
  std::int64_t columns = 0;
  for (const ValueId part : parts) {
    rules.rank(part, 2);
    rules.same_dtype(out, part);
    rules.require(rules.value(part).shape[0] == rules.value(out).shape[0], part,
                  "needs as many rows as the result");
    columns += rules.value(part).shape[1];
  }
  rules.shape(out, {rules.value(out).shape[0], columns});
}

}  // namespace sinew

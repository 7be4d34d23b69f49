#include "program/columns.h"

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

void run_slice_columns(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const SliceColumns&>(base);
  const std::vector<double> x = context.load(op.x);
  const std::int64_t width = context.program().value(op.x).shape[1];
  const Shape& shape = context.program().value(op.out).shape;
  std::vector<double> out;
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const auto first = x.begin() + row * width + op.column;
    out.insert(out.end(), first, first + shape[1]);
  }
  context.store(op.out, out);
}

void run_concat_columns(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const ConcatColumns&>(base);
  const Shape& shape = context.program().value(op.out).shape;
  std::vector<double> out(static_cast<std::size_t>(shape.count()));
  std::int64_t column = 0;
  for (const ValueId part : op.parts) {
    const std::vector<double> values = context.load(part);
    const std::int64_t width = context.program().value(part).shape[1];
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
      out[static_cast<std::size_t>(i / width * shape[1] + column + i % width)] =
          values[static_cast<std::size_t>(i)];
    }
    column += width;
  }
  context.store(op.out, out);
}

}  // namespace

void register_columns(Forms& forms) {
  forms.add<SliceColumns>(run_slice_columns);
  forms.add<ConcatColumns>(run_concat_columns);
}

}  // namespace sinew::reference

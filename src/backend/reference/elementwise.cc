#include "program/elementwise.h"

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

void run_add(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Add&>(base);
  std::vector<double> a = context.load(op.a);
  const std::vector<double> b = context.load(op.b);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i % b.size()];
  context.store(op.out, a);
}

void run_gelu(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Gelu&>(base);
  std::vector<double> x = context.load(op.x);
  for (double& value : x) value = gelu(value);
  context.store(op.out, x);
}

void run_convert(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Convert&>(base);
  context.store(op.out, context.load(op.x));
}

}  // namespace

void register_elementwise(Forms& forms) {
  forms.add<Add>(run_add);
  forms.add<Gelu>(run_gelu);
  forms.add<Convert>(run_convert);
}

}  // namespace sinew::reference

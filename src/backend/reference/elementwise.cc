#include "program/elementwise.h"

#include <algorithm>
#include <cmath>

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

void run_rectify(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Rectify&>(base);
  std::vector<double> x = context.load(op.x);
  const std::vector<double> slope = op.slope ? context.load(op.slope) : std::vector<double>{0};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rectify(op.rectifier, x[i], slope[i % slope.size()]);
  context.store(op.out, x);
}

void run_logistic(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Logistic&>(base);
  std::vector<double> x = context.load(op.x);
  for (double& value : x) value = 1 / (1 + std::exp(-value));
  context.store(op.out, x);
}

void run_convert(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Convert&>(base);
  context.store(op.out, context.load(op.x));
}

}  // namespace

double rectify(Rectifier rectifier, double x, double slope) {
  switch (rectifier) {
    case Rectifier::kNone:
      return x;
    case Rectifier::kRelu:
      return std::max(x, 0.0);
    case Rectifier::kRelu6:
      return std::min(std::max(x, 0.0), 6.0);
    case Rectifier::kPRelu:
      return x >= 0 ? x : slope * x;
  }
  return x;
}

void register_elementwise(Forms& forms) {
  forms.add<Add>(run_add);
  forms.add<Gelu>(run_gelu);
  forms.add<Rectify>(run_rectify);
  forms.add<Logistic>(run_logistic);
  forms.add<Convert>(run_convert);
}

}  // namespace sinew::reference

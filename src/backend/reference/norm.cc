#include "program/norm.h"

#include <cmath>

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

void run_layer_norm(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const LayerNorm&>(base);
  std::vector<double> x = context.load(op.x);
  const std::vector<double> gamma = context.load(op.gamma);
  const std::vector<double> beta = context.load(op.beta);
  const std::size_t channels = gamma.size();
  for (std::size_t row = 0; row < x.size(); row += channels) {
    double mean = 0;
    for (std::size_t c = 0; c < channels; ++c) mean += x[row + c];
    mean /= static_cast<double>(channels);
    double variance = 0;
    for (std::size_t c = 0; c < channels; ++c) variance += (x[row + c] - mean) * (x[row + c] - mean);
    variance /= static_cast<double>(channels);
    const double scale = 1 / std::sqrt(variance + op.eps);
    for (std::size_t c = 0; c < channels; ++c) x[row + c] = (x[row + c] - mean) * scale * gamma[c] + beta[c];
  }
  context.store(op.out, x);
}

}  // namespace

void register_norm(Forms& forms) { forms.add<LayerNorm>(run_layer_norm); }

}  // namespace sinew::reference

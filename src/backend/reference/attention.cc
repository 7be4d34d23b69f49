#include "program/attention.h"

#include <algorithm>
#include <cmath>

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

void run_attention(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Attention&>(base);
  const std::vector<double> q = context.load(op.q.value);
  const std::vector<double> k = context.load(op.k.value);
  const std::vector<double> v = context.load(op.v.value);
  const Program& program = context.program();
  const std::int64_t q_width = program.value(op.q.value).shape[1];
  const std::int64_t k_width = program.value(op.k.value).shape[1];
  const std::int64_t v_width = program.value(op.v.value).shape[1];
  const std::int64_t queries = program.value(op.q.value).shape[0];
  const std::int64_t keys = program.value(op.k.value).shape[0];
  std::vector<double> out(static_cast<std::size_t>(queries * op.heads * op.head_dim));

  context.pool().parallel_for(static_cast<int>(op.heads), [&](int head, int) {
    const std::int64_t first = head * op.head_dim;
    std::vector<double> weights(static_cast<std::size_t>(keys));
    for (std::int64_t i = 0; i < queries; ++i) {
      const double* query = &q[static_cast<std::size_t>(i * q_width + op.q.column + first)];
      for (std::int64_t j = 0; j < keys; ++j) {
        const double* key = &k[static_cast<std::size_t>(j * k_width + op.k.column + first)];
        double score = 0;
        for (std::int64_t d = 0; d < op.head_dim; ++d) score += query[d] * key[d];
        weights[static_cast<std::size_t>(j)] = score * op.scale;
      }
      const double largest = *std::ranges::max_element(weights);
      double sum = 0;
      for (double& w : weights) sum += w = std::exp(w - largest);
      double* result = &out[static_cast<std::size_t>((i * op.heads + head) * op.head_dim)];
      for (std::int64_t j = 0; j < keys; ++j) {
        const double* value = &v[static_cast<std::size_t>(j * v_width + op.v.column + first)];
        const double weight = weights[static_cast<std::size_t>(j)] / sum;
        for (std::int64_t d = 0; d < op.head_dim; ++d) result[d] += weight * value[d];
      }
    }
  });
  context.store(op.out, out);
}

}  // namespace

void register_attention(Forms& forms) { forms.add<Attention>(run_attention); }

}  // namespace sinew::reference

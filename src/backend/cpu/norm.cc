#include "program/norm.h"

#include <algorithm>

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

template <typename Out>
class LayerNormKernel final : public Kernel {
 public:
  using Row = void (*)(const float*, const float*, const float*, std::int64_t, float, Out*);
  LayerNormKernel(const LayerNorm& op, Compiler& compiler, Row row)
      : x_(compiler.as<float>(op.x)),
        gamma_(compiler.as<float>(op.gamma)),
        beta_(compiler.as<float>(op.beta)),
        out_(compiler.as<Out>(op.out)),
        rows_(compiler.value(op.x).shape[0]),
        channels_(compiler.value(op.x).shape[1]),
        eps_(static_cast<float>(op.eps)),
        row_(row) {}

  void run(ThreadPool& pool) noexcept override {
    // 16 rows of 1280 take about 10 us on one core: enough to outweigh the hand-over, enough tasks to
    // balance.
    constexpr std::int64_t kRowsPerTask = 16;
    const auto tasks = static_cast<int>((rows_ + kRowsPerTask - 1) / kRowsPerTask);
    pool.parallel_for(tasks, [this](int task, int) {
      const std::int64_t last = std::min(rows_, (task + 1) * kRowsPerTask);
      for (std::int64_t r = task * kRowsPerTask; r < last; ++r) {
        row_(x_ + r * channels_, gamma_, beta_, channels_, eps_, out_ + r * channels_);
      }
    });
  }

 private:
  const float* x_;
  const float* gamma_;
  const float* beta_;
  Out* out_;
  std::int64_t rows_;
  std::int64_t channels_;
  float eps_;
  Row row_;
};

std::unique_ptr<Kernel> make_layer_norm(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const LayerNorm&>(base);
  if (compiler.value(op.out).dtype == DType::kBF16) {
    return std::make_unique<LayerNormKernel<BF16>>(op, compiler, compiler.vectors().layer_norm_bf16);
  }
  return std::make_unique<LayerNormKernel<float>>(op, compiler, compiler.vectors().layer_norm_f32);
}

}  // namespace

void register_norm(Forms& forms) { forms.add<LayerNorm>(make_layer_norm); }

}  // namespace sinew::cpu

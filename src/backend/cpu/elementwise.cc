#include "program/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

// About 8 us a task for a plain add: see the layer norm kernel.
constexpr std::int64_t kElementsPerTask = 16384;

/// Runs body(first, last) over [0, count) in pieces.
template <typename Body>
void in_pieces(ThreadPool& pool, std::int64_t count, Body&& body) {
  const auto tasks = static_cast<int>((count + kElementsPerTask - 1) / kElementsPerTask);
  pool.parallel_for(tasks, [&](int task, int) {
    body(task * kElementsPerTask, std::min(count, (task + 1) * kElementsPerTask));
  });
}

class AddKernel final : public Kernel {
 public:
  AddKernel(const Add& op, Compiler& compiler)
      : a_(compiler.as<float>(op.a)),
        b_(compiler.as<float>(op.b)),
        out_(compiler.as<float>(op.out)),
        count_(compiler.value(op.a).shape.count()),
        period_(compiler.value(op.b).shape.count()) {}
  void run(ThreadPool& pool) noexcept override {
    in_pieces(pool, count_, [this](std::int64_t first, std::int64_t last) {
      if (period_ == count_) {
        for (std::int64_t i = first; i < last; ++i) out_[i] = a_[i] + b_[i];
      } else {
        for (std::int64_t i = first; i < last; ++i) out_[i] = a_[i] + b_[i % period_];
      }
    });
  }

 private:
  const float* a_;
  const float* b_;
  float* out_;
  std::int64_t count_;
  std::int64_t period_;
};

/// Only the plain program runs GELU by itself; the fused one has it in the product.
template <typename Out>
class GeluKernel final : public Kernel {
 public:
  GeluKernel(const Gelu& op, Compiler& compiler)
      : x_(compiler.as<float>(op.x)),
        out_(compiler.as<Out>(op.out)),
        count_(compiler.value(op.x).shape.count()) {}
  void run(ThreadPool& pool) noexcept override {
    in_pieces(pool, count_, [this](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const float value = 0.5F * x_[i] * (1 + std::erf(x_[i] * static_cast<float>(M_SQRT1_2)));
        if constexpr (std::is_same_v<Out, BF16>) {
          out_[i] = to_bf16(value);
        } else {
          out_[i] = value;
        }
      }
    });
  }

 private:
  const float* x_;
  Out* out_;
  std::int64_t count_;
};

std::unique_ptr<Kernel> make_gelu(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const Gelu&>(base);
  if (compiler.value(op.out).dtype == DType::kBF16) return std::make_unique<GeluKernel<BF16>>(op, compiler);
  return std::make_unique<GeluKernel<float>>(op, compiler);
}

/// Rows of channels; PReLU has a slope for each.
class RectifyKernel final : public Kernel {
 public:
  RectifyKernel(const Rectify& op, Compiler& compiler)
      : x_(compiler.as<float>(op.x)),
        slope_(op.slope ? compiler.as<float>(op.slope) : nullptr),
        out_(compiler.as<float>(op.out)),
        count_(compiler.value(op.x).shape.count()),
        channels_(compiler.value(op.x).shape.back()),
        rectifier_(op.rectifier) {}
  void run(ThreadPool& pool) noexcept override {
    if (rectifier_ == Rectifier::kPRelu) {
      const auto rows_per_task = std::max<std::int64_t>(1, kElementsPerTask / channels_);
      const std::int64_t rows = count_ / channels_;
      pool.parallel_for(static_cast<int>((rows + rows_per_task - 1) / rows_per_task), [&](int task, int) {
        const std::int64_t last = std::min(rows, (task + 1) * rows_per_task);
        for (std::int64_t row = task * rows_per_task; row < last; ++row) prelu(row * channels_);
      });
      return;
    }
    const float top = rectifier_ == Rectifier::kRelu6 ? 6.0F : std::numeric_limits<float>::infinity();
    in_pieces(pool, count_, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) out_[i] = std::min(std::max(x_[i], 0.0F), top);
    });
  }

 private:
  void prelu(std::int64_t at) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const float x = x_[at + c];
      out_[at + c] = x >= 0 ? x : slope_[c] * x;
    }
  }

  const float* x_;
  const float* slope_;
  float* out_;
  std::int64_t count_;
  std::int64_t channels_;
  Rectifier rectifier_;
};

class LogisticKernel final : public Kernel {
 public:
  LogisticKernel(const Logistic& op, Compiler& compiler)
      : x_(compiler.as<float>(op.x)),
        out_(compiler.as<float>(op.out)),
        count_(compiler.value(op.x).shape.count()) {}
  void run(ThreadPool& pool) noexcept override {
    in_pieces(pool, count_, [this](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) out_[i] = 1 / (1 + std::exp(-x_[i]));
    });
  }

 private:
  const float* x_;
  float* out_;
  std::int64_t count_;
};

template <typename K, typename T>
std::unique_ptr<Kernel> make(const Op& base, Compiler& compiler) {
  return std::make_unique<K>(dynamic_cast<const T&>(base), compiler);
}

class ConvertKernel final : public Kernel {
 public:
  ConvertKernel(const Convert& op, Compiler& compiler)
      : x_(compiler.data(op.x)),
        out_(compiler.data(op.out)),
        from_(compiler.value(op.x).dtype),
        to_(compiler.value(op.out).dtype),
        count_(compiler.value(op.x).shape.count()),
        vectors_(compiler.vectors()) {}
  void run(ThreadPool& pool) noexcept override {
    in_pieces(pool, count_, [this](std::int64_t first, std::int64_t last) {
      const std::byte* x = x_ + static_cast<std::size_t>(first) * size_of(from_);
      std::byte* out = out_ + static_cast<std::size_t>(first) * size_of(to_);
      const std::int64_t n = last - first;
      if (from_ == to_) {
        std::memcpy(out, x, static_cast<std::size_t>(n) * size_of(from_));
      } else if (to_ == DType::kBF16) {
        vectors_.f32_to_bf16(reinterpret_cast<const float*>(x), n, reinterpret_cast<BF16*>(out));
      } else {
        vectors_.bf16_to_f32(reinterpret_cast<const BF16*>(x), n, reinterpret_cast<float*>(out));
      }
    });
  }

 private:
  const std::byte* x_;
  std::byte* out_;
  DType from_, to_;
  std::int64_t count_;
  const VectorKernels& vectors_;
};

}  // namespace

void register_elementwise(Forms& forms) {
  forms.add<Add>(make<AddKernel, Add>);
  forms.add<Gelu>(make_gelu);
  forms.add<Rectify>(make<RectifyKernel, Rectify>);
  forms.add<Logistic>(make<LogisticKernel, Logistic>);
  forms.add<Convert>(make<ConvertKernel, Convert>);
}

}  // namespace sinew::cpu

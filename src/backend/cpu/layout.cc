#include "program/layout.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

/// One output row a task.
class PadKernel final : public Kernel {
 public:
  PadKernel(const Pad& op, Compiler& compiler)
      : before_(op.before),
        x_(compiler.as<float>(op.x)),
        out_(compiler.as<float>(op.out)),
        picture_(compiler.value(op.x).shape),
        shape_(compiler.value(op.out).shape) {}

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(shape_[0]), [this](int task, int) {
      const std::int64_t row = task - before_[0];
      float* out = out_ + task * shape_[1] * shape_[2];
      if (row < 0 || row >= picture_[0]) {
        std::fill_n(out, shape_[1] * shape_[2], 0.0F);
        return;
      }
      for (std::int64_t c = 0; c < shape_[1]; ++c, out += shape_[2]) {
        const std::int64_t column = c - before_[1];
        if (column < 0 || column >= picture_[1]) {
          std::fill_n(out, shape_[2], 0.0F);
        } else {
          pixel(x_ + (row * picture_[1] + column) * picture_[2], out);
        }
      }
    });
  }

 private:
  void pixel(const float* x, float* out) const {
    std::fill_n(out, before_[2], 0.0F);
    std::copy_n(x, picture_[2], out + before_[2]);
    std::fill(out + before_[2] + picture_[2], out + shape_[2], 0.0F);
  }

  std::array<std::int64_t, 3> before_;
  const float* x_;
  float* out_;
  Shape picture_, shape_;
};

std::unique_ptr<Kernel> make_pad(const Op& base, Compiler& compiler) {
  return std::make_unique<PadKernel>(dynamic_cast<const Pad&>(base), compiler);
}

/// One output row a task; where each row and column comes from is known when the kernel is made.
class ResizeBilinearKernel final : public Kernel {
 public:
  ResizeBilinearKernel(const ResizeBilinear& op, Compiler& compiler)
      : x_(compiler.as<float>(op.x)), out_(compiler.as<float>(op.out)) {
    const Shape& x = compiler.value(op.x).shape;
    const Shape& out = compiler.value(op.out).shape;
    channels_ = x[2];
    row_floats_ = x[1] * x[2];
    for (std::int64_t r = 0; r < out[0]; ++r) rows_.push_back(between(r, x[0], out[0]));
    for (std::int64_t c = 0; c < out[1]; ++c) columns_.push_back(between(c, x[1], out[1]));
  }

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(rows_.size()), [this](int task, int) {
      const Between& r = rows_[static_cast<std::size_t>(task)];
      const float* above = x_ + r.low * row_floats_;
      const float* below = x_ + r.high * row_floats_;
      float* out = out_ + task * static_cast<std::int64_t>(columns_.size()) * channels_;
      for (const Between& c : columns_) {
        const std::int64_t low = c.low * channels_;
        const std::int64_t high = c.high * channels_;
        for (std::int64_t i = 0; i < channels_; ++i) {
          const float upper = mix(above[low + i], above[high + i], c.share);
          out[i] = mix(upper, mix(below[low + i], below[high + i], c.share), r.share);
        }
        out += channels_;
      }
    });
  }

 private:
  /// Between which two pixels of an axis an output pixel lies, and how much of the second it takes.
  struct Between {
    std::int64_t low = 0, high = 0;
    float share = 0;
  };
  static Between between(std::int64_t at, std::int64_t extent, std::int64_t out_extent) {
    const double centre =
        (static_cast<double>(at) + 0.5) * static_cast<double>(extent) / static_cast<double>(out_extent) - 0.5;
    const double position = std::clamp(centre, 0.0, static_cast<double>(extent - 1));
    const auto low = static_cast<std::int64_t>(position);
    return {low, std::min(low + 1, extent - 1), static_cast<float>(position - static_cast<double>(low))};
  }
  static float mix(float low, float high, float share) { return low * (1 - share) + high * share; }

  const float* x_;
  float* out_;
  std::int64_t channels_ = 0, row_floats_ = 0;
  std::vector<Between> rows_, columns_;
};

std::unique_ptr<Kernel> make_resize(const Op& base, Compiler& compiler) {
  return std::make_unique<ResizeBilinearKernel>(dynamic_cast<const ResizeBilinear&>(base), compiler);
}

/// Pieces of memory one after another.
class CopyKernel final : public Kernel {
 public:
  CopyKernel(std::span<const ValueId> parts, ValueId out, Compiler& compiler) : out_(compiler.data(out)) {
    for (const ValueId part : parts) {
      const Value& value = compiler.value(part);
      parts_.push_back(
          {compiler.data(part), static_cast<std::size_t>(value.shape.count()) * size_of(value.dtype)});
    }
  }
  void run(ThreadPool&) noexcept override {
    std::byte* to = out_;
    for (const auto& [from, bytes] : parts_) {
      std::memcpy(to, from, bytes);
      to += bytes;
    }
  }

 private:
  struct Part {
    const std::byte* from;
    std::size_t bytes;
  };
  std::byte* out_;
  std::vector<Part> parts_;
};

std::unique_ptr<Kernel> make_reshape(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const Reshape&>(base);
  return std::make_unique<CopyKernel>(std::span(&op.x, 1), op.out, compiler);
}

std::unique_ptr<Kernel> make_concat_rows(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const ConcatRows&>(base);
  return std::make_unique<CopyKernel>(op.parts, op.out, compiler);
}

}  // namespace

void register_layout(Forms& forms) {
  forms.add<Pad>(make_pad);
  forms.add<ResizeBilinear>(make_resize);
  forms.add<Reshape>(make_reshape);
  forms.add<ConcatRows>(make_concat_rows);
}

}  // namespace sinew::cpu

#include "program/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

// Multiply-adds that are worth a task: about 8 us on one core, where handing one over costs 0.2 us. How work
// is cut does not depend on the number of threads (nor do the results, see pack_panels).
constexpr std::int64_t kProductsPerTask = 1 << 19;

Finish finish_of(ValueId bias, ValueId slope, Rectifier rectifier, Compiler& compiler) {
  Finish finish;
  finish.bias = compiler.as<float>(bias);
  if (slope) finish.slope = compiler.as<float>(slope);
  finish.rectifier = rectifier;
  return finish;
}

using Pack = Tensor (*)(const TensorView& weight, std::int64_t lanes);

/// An f32 weight as `pack` lays it out: `vectors` of lanes for each of `rows`.
const float* packed_by(Pack pack, std::string_view layout, ValueId weight, std::int64_t vectors,
                       std::int64_t rows, Compiler& compiler) {
  const std::int64_t lanes = compiler.vectors().lanes;
  const WeightForm form{"f32", fmt::format("{} of {} lanes", layout, lanes),
                        static_cast<std::size_t>(vectors * lanes * rows) * sizeof(float)};
  const auto make = [pack, lanes](const TensorView& stored, std::span<std::byte> out) {
    copy_row_major(pack(stored, lanes), out);
  };
  return reinterpret_cast<const float*>(compiler.resident(weight, form, make));
}

const float* panels(const Convolution& op, Compiler& compiler) {
  const Shape& shape = compiler.value(op.weight).shape;
  return packed_by(pack_panels, "panels", op.weight, vectors_for(shape[0], compiler.vectors().lanes),
                   shape.count() / shape[0], compiler);
}

/// All that a convolution's products have in common; x, pixels, residual and out are the picture's.
PixelProduct product_of(const Convolution& op, Compiler& compiler) {
  PixelProduct product;
  product.x = compiler.as<float>(op.x);
  product.weight = panels(op, compiler);
  product.n = compiler.value(op.out).shape[2];
  product.last_panel = panels_for(product.n, compiler.vectors().lanes);
  product.finish = finish_of(op.bias, op.slope, op.rectifier, compiler);
  if (op.residual) product.residual = compiler.as<float>(op.residual);
  product.out = compiler.as<float>(op.out);
  return product;
}

/// Windows of one pixel at stride 1: the picture is one list of pixels. Tasks cut the larger of pixels and
/// weights, so that neither is read more often than it must be.
class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const Convolution& op, Compiler& compiler)
      : whole_(product_of(op, compiler)), call_(compiler.vectors().pixel_product) {
    const Shape& x = compiler.value(op.x).shape;
    whole_.pixels = x[0] * x[1];
    whole_.pixel_stride = whole_.length = x[2];
    cut_panels_ = whole_.n > whole_.pixels;
    const std::int64_t tasks = std::max<std::int64_t>(1, whole_.pixels * x[2] * whole_.n / kProductsPerTask);
    // 24 pixels: whole tiles of any height that the kernels use.
    const std::int64_t most = cut_panels_ ? whole_.last_panel : std::max<std::int64_t>(1, whole_.pixels / 24);
    tasks_ = static_cast<int>(std::min(tasks, most));
  }

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(tasks_, [this](int task, int) {
      PixelProduct part = whole_;
      if (cut_panels_) {
        part.first_panel = whole_.last_panel * task / tasks_;
        part.last_panel = whole_.last_panel * (task + 1) / tasks_;
      } else {
        const std::int64_t first = whole_.pixels * task / tasks_;
        part.pixels = whole_.pixels * (task + 1) / tasks_ - first;
        part.x += first * part.pixel_stride;
        part.out += first * part.n;
        if (part.residual != nullptr) part.residual += first * part.n;
      }
      call_(part);
    });
  }

 private:
  PixelProduct whole_;
  void (*call_)(const PixelProduct&);
  bool cut_panels_ = false;
  int tasks_ = 1;
};

/// Any window, in bands of output rows. The rows of a window are pieces of rows of the picture or, where
/// there is padding, of a copy of the band with zeros around it.
class WindowKernel final : public Kernel {
 public:
  WindowKernel(const Convolution& op, Compiler& compiler)
      : window_(op.window),
        row_(product_of(op, compiler)),
        call_(compiler.vectors().pixel_product),
        picture_(compiler.value(op.x).shape),
        out_(compiler.value(op.out).shape),
        padded_(window_.pad_top + window_.pad_bottom + window_.pad_left + window_.pad_right > 0) {
    width_ = (picture_[1] + window_.pad_left + window_.pad_right) * picture_[2];
    row_.pixels = out_[1];
    row_.pixel_stride = window_.stride_columns * picture_[2];
    row_.segments = window_.rows;
    row_.segment_stride = width_;
    row_.length = window_.columns * picture_[2];
    band_ = std::clamp<std::int64_t>(kProductsPerTask / (out_[1] * out_[2] * row_.segments * row_.length), 1,
                                     out_[0]);
    if (padded_) {
      const auto bytes = static_cast<std::size_t>(seen(band_) * width_) * sizeof(float);
      compiler.want_scratch({.per_thread = bytes}, [this](const Scratch& scratch) { scratch_ = scratch; });
    }
  }

  void run(ThreadPool& pool) noexcept override {
    const auto bands = static_cast<int>((out_[0] + band_ - 1) / band_);
    pool.parallel_for(bands, [this](int task, int worker) {
      const std::int64_t first = task * band_;
      const std::int64_t count = std::min(out_[0] - first, band_);
      const float* x = row_.x + first * window_.stride_rows * width_;
      if (padded_) {
        auto* copy = reinterpret_cast<float*>(scratch_.of_thread(worker));
        copy_band(first * window_.stride_rows - window_.pad_top, seen(count), copy);
        x = copy;
      }
      for (std::int64_t r = first; r < first + count; ++r, x += window_.stride_rows * width_) {
        PixelProduct row = row_;
        row.x = x;
        row.out += r * out_[1] * out_[2];
        if (row.residual != nullptr) row.residual += r * out_[1] * out_[2];
        call_(row);
      }
    });
  }

 private:
  /// Rows that `count` output rows see.
  std::int64_t seen(std::int64_t count) const { return (count - 1) * window_.stride_rows + window_.rows; }

  /// Rows [first, first + count) of the picture with its padding.
  void copy_band(std::int64_t first, std::int64_t count, float* to) const {
    const std::int64_t left = window_.pad_left * picture_[2];
    const std::int64_t inside = picture_[1] * picture_[2];
    for (std::int64_t r = first; r < first + count; ++r, to += width_) {
      if (r < 0 || r >= picture_[0]) {
        std::fill_n(to, width_, 0.0F);
        continue;
      }
      std::fill_n(to, left, 0.0F);
      std::copy_n(row_.x + r * inside, inside, to + left);
      std::fill(to + left + inside, to + width_, 0.0F);
    }
  }

  Window window_;
  PixelProduct row_;  // of one output row
  void (*call_)(const PixelProduct&);
  Shape picture_, out_;
  bool padded_;
  std::int64_t width_ = 0;  // floats of a row, padding included
  std::int64_t band_ = 1;   // output rows of a task
  Scratch scratch_;
};

std::unique_ptr<Kernel> make_convolution(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const Convolution&>(base);
  const Window& w = op.window;
  if (w.rows == 1 && w.columns == 1 && w.stride_rows == 1 && w.stride_columns == 1) {
    return std::make_unique<PointwiseKernel>(op, compiler);
  }
  return std::make_unique<WindowKernel>(op, compiler);
}

/// One output row a task.
class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(const DepthwiseConvolution& op, Compiler& compiler)
      : window_(op.window),
        call_(compiler.vectors().depthwise_row),
        rows_(compiler.value(op.x).shape[0]),
        out_rows_(compiler.value(op.out).shape[0]) {
    const std::int64_t lanes = compiler.vectors().lanes;
    const Shape& shape = compiler.value(op.weight).shape;
    row_.weight = packed_by(pack_channel_blocks, "channel blocks", op.weight,
                            vectors_for(shape.back(), lanes), shape.count() / shape.back(), compiler);
    const Shape& x = compiler.value(op.x).shape;
    row_.x = compiler.as<float>(op.x);
    row_.columns = x[1];
    row_.channels = x[2];
    row_.window_rows = window_.rows;
    row_.window_columns = window_.columns;
    row_.stride = window_.stride_columns;
    row_.pad_left = window_.pad_left;
    row_.finish = finish_of(op.bias, op.slope, op.rectifier, compiler);
    row_.out_columns = compiler.value(op.out).shape[1];
    row_.out = compiler.as<float>(op.out);
  }

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(out_rows_), [this](int task, int) {
      const std::int64_t start = task * window_.stride_rows - window_.pad_top;
      DepthwiseRow row = row_;
      row.first_row = std::max<std::int64_t>(0, -start);
      row.rows = std::min(window_.rows, rows_ - start) - row.first_row;
      row.x += (start + row.first_row) * row.columns * row.channels;
      row.out += task * row.out_columns * row.channels;
      call_(row);
    });
  }

 private:
  Window window_;
  void (*call_)(const DepthwiseRow&);
  std::int64_t rows_, out_rows_;
  DepthwiseRow row_;
};

std::unique_ptr<Kernel> make_depthwise(const Op& base, Compiler& compiler) {
  return std::make_unique<DepthwiseKernel>(dynamic_cast<const DepthwiseConvolution&>(base), compiler);
}

/// One output row a task.
class MaxPoolKernel final : public Kernel {
 public:
  MaxPoolKernel(const MaxPool& op, Compiler& compiler)
      : window_(op.window),
        x_(compiler.as<float>(op.x)),
        out_(compiler.as<float>(op.out)),
        picture_(compiler.value(op.x).shape),
        shape_(compiler.value(op.out).shape) {}

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(shape_[0]), [this](int row, int) {
      for (std::int64_t column = 0; column < shape_[1]; ++column) pixel(row, column);
    });
  }

 private:
  void pixel(std::int64_t row, std::int64_t column) const {
    const std::int64_t channels = picture_[2];
    const std::int64_t top = row * window_.stride_rows - window_.pad_top;
    const std::int64_t left = column * window_.stride_columns - window_.pad_left;
    const std::int64_t bottom = std::min(picture_[0], top + window_.rows);
    const std::int64_t right = std::min(picture_[1], left + window_.columns);
    float* out = out_ + (row * shape_[1] + column) * channels;
    bool first = true;
    for (std::int64_t r = std::max<std::int64_t>(0, top); r < bottom; ++r) {
      for (std::int64_t c = std::max<std::int64_t>(0, left); c < right; ++c) {
        const float* x = x_ + (r * picture_[1] + c) * channels;
        if (first) {
          std::copy_n(x, channels, out);
        } else {
          for (std::int64_t i = 0; i < channels; ++i) out[i] = std::max(out[i], x[i]);
        }
        first = false;
      }
    }
  }

  Window window_;
  const float* x_;
  float* out_;
  Shape picture_, shape_;
};

std::unique_ptr<Kernel> make_max_pool(const Op& base, Compiler& compiler) {
  return std::make_unique<MaxPoolKernel>(dynamic_cast<const MaxPool&>(base), compiler);
}

/// On one thread: 49 pixels of 1152 channels take 10 us.
class MeanPoolKernel final : public Kernel {
 public:
  MeanPoolKernel(const MeanPool& op, Compiler& compiler)
      : x_(compiler.as<float>(op.x)),
        out_(compiler.as<float>(op.out)),
        pixels_(compiler.value(op.x).shape[0] * compiler.value(op.x).shape[1]),
        channels_(compiler.value(op.x).shape[2]) {}

  void run(ThreadPool&) noexcept override {
    std::copy_n(x_, channels_, out_);
    for (std::int64_t p = 1; p < pixels_; ++p) {
      for (std::int64_t c = 0; c < channels_; ++c) out_[c] += x_[p * channels_ + c];
    }
    const float share = 1.0F / static_cast<float>(pixels_);
    for (std::int64_t c = 0; c < channels_; ++c) out_[c] *= share;
  }

 private:
  const float* x_;
  float* out_;
  std::int64_t pixels_, channels_;
};

std::unique_ptr<Kernel> make_mean_pool(const Op& base, Compiler& compiler) {
  return std::make_unique<MeanPoolKernel>(dynamic_cast<const MeanPool&>(base), compiler);
}

}  // namespace

void register_convolution(Forms& forms) {
  forms.add<Convolution>(make_convolution);
  forms.add<DepthwiseConvolution>(make_depthwise);
  forms.add<MaxPool>(make_max_pool);
  forms.add<MeanPool>(make_mean_pool);
}

}  // namespace sinew::cpu

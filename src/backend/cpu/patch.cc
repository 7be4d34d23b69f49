#include "program/patch.h"

#include <array>

#include "backend/cpu/kernel.h"

namespace sinew::cpu {
namespace {

float pixel(float value, float) { return value; }
float pixel(std::uint8_t value, float offset) { return static_cast<float>(value) - offset; }
void put(float& out, float value) { out = value; }
void put(BF16& out, float value) { out = to_bf16(value); }

/// im2col; one task a grid row.
template <typename In, typename Out>
class PatchColumnsKernel final : public Kernel {
 public:
  PatchColumnsKernel(const In* image, const Shape& shape, const PatchGrid& grid,
                     const std::vector<int>& offset, Out* out)
      : image_(image), channels_(shape[0]), rows_(shape[1]), columns_(shape[2]), grid_(grid), out_(out) {
    offset_.assign(static_cast<std::size_t>(channels_), 0.0F);
    for (std::size_t c = 0; c < offset.size(); ++c) offset_[c] = static_cast<float>(offset[c]);
  }

  void run(ThreadPool& pool) noexcept override {
    pool.parallel_for(static_cast<int>(grid_.count(rows_)), [this](int grid_row, int) {
      const std::int64_t across = grid_.count(columns_);
      const std::int64_t width = channels_ * grid_.patch * grid_.patch;
      for (std::int64_t grid_column = 0; grid_column < across; ++grid_column) {
        patch(grid_row, grid_column, out_ + (grid_row * across + grid_column) * width);
      }
    });
  }

 private:
  void patch(std::int64_t grid_row, std::int64_t grid_column, Out* out) const {
    const std::int64_t x0 = grid_column * grid_.patch - grid_.padding;
    for (std::int64_t c = 0; c < channels_; ++c) {
      const float offset = offset_[static_cast<std::size_t>(c)];
      for (std::int64_t r = 0; r < grid_.patch; ++r, out += grid_.patch) {
        const std::int64_t y = grid_row * grid_.patch - grid_.padding + r;
        const bool row_inside = y >= 0 && y < rows_;
        const In* row = image_ + (c * rows_ + (row_inside ? y : 0)) * columns_;
        for (std::int64_t i = 0; i < grid_.patch; ++i) {
          const bool inside = row_inside && x0 + i >= 0 && x0 + i < columns_;
          put(out[i], inside ? pixel(row[x0 + i], offset) : 0.0F);
        }
      }
    }
  }

  const In* image_;
  std::int64_t channels_, rows_, columns_;
  PatchGrid grid_;
  std::vector<float> offset_;
  Out* out_;
};

template <typename In>
std::unique_ptr<Kernel> make_columns_from(const PatchColumns& op, Compiler& compiler) {
  const Shape& shape = compiler.value(op.image).shape;
  const In* image = compiler.as<In>(op.image);
  if (compiler.value(op.out).dtype == DType::kBF16) {
    return std::make_unique<PatchColumnsKernel<In, BF16>>(image, shape, op.grid, op.offset,
                                                          compiler.as<BF16>(op.out));
  }
  return std::make_unique<PatchColumnsKernel<In, float>>(image, shape, op.grid, op.offset,
                                                         compiler.as<float>(op.out));
}

std::unique_ptr<Kernel> make_patch_columns(const Op& base, Compiler& compiler) {
  const auto& op = dynamic_cast<const PatchColumns&>(base);
  if (compiler.value(op.image).dtype == DType::kU8) return make_columns_from<std::uint8_t>(op, compiler);
  return make_columns_from<float>(op, compiler);
}

/// The plain form: im2col into memory of its own, then a product. Not a fast path.
class PatchConvolutionKernel final : public Kernel {
 public:
  PatchConvolutionKernel(const PatchConvolution& op, Compiler& compiler)
      : columns_(DType::kF32, {compiler.value(op.out).shape[0],
                               compiler.value(op.weight).shape.count() / compiler.value(op.weight).shape[0]}),
        gather_(compiler.as<float>(op.image), compiler.value(op.image).shape, op.grid, {},
                columns_.as<float>().data()) {
    GemmShape shape;
    shape.m = columns_.shape()[0];
    shape.k = columns_.shape()[1];
    shape.n = compiler.value(op.weight).shape[0];
    shape.bias = true;
    shape.isa = compiler.isa();
    GemmOperands operands;
    operands.x = columns_.data();
    operands.bias = compiler.as<float>(op.bias);
    operands.out = compiler.data(op.out);
    operands.weight = compiler.packed(op.weight, shape);
    product_ = make_gemm(shape, operands, compiler.threads());
    compiler.want_scratch(product_->scratch(),
                          [this](const Scratch& scratch) { product_->bind_scratch(scratch); });
  }

  void run(ThreadPool& pool) noexcept override {
    gather_.run(pool);
    product_->run(pool);
  }

 private:
  Tensor columns_;
  PatchColumnsKernel<float, float> gather_;
  std::unique_ptr<Gemm> product_;
};

std::unique_ptr<Kernel> make_patch_convolution(const Op& base, Compiler& compiler) {
  return std::make_unique<PatchConvolutionKernel>(dynamic_cast<const PatchConvolution&>(base), compiler);
}

}  // namespace

void register_patch(Forms& forms) {
  forms.add<PatchColumns>(make_patch_columns);
  forms.add<PatchConvolution>(make_patch_convolution);
}

}  // namespace sinew::cpu

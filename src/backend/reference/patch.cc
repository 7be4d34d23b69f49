#include "program/patch.h"

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

/// The image with its padding, and the patches' pixels in im2col order.
class Patches {
 public:
  Patches(std::vector<double> pixels, const Shape& shape, const PatchGrid& grid)
      : pixels_(std::move(pixels)), shape_(shape), grid_(grid) {}

  /// Pixel (row, column) of patch (grid_row, grid_column), zero in the padding.
  double at(std::int64_t channel, std::int64_t grid_row, std::int64_t grid_column, std::int64_t row,
            std::int64_t column) const {
    const std::int64_t y = grid_row * grid_.patch + row - grid_.padding;
    const std::int64_t x = grid_column * grid_.patch + column - grid_.padding;
    if (y < 0 || y >= shape_[1] || x < 0 || x >= shape_[2]) return 0;
    return pixels_[static_cast<std::size_t>((channel * shape_[1] + y) * shape_[2] + x)];
  }

  /// Row-major over (patch, channel, row, column).
  std::vector<double> columns() const {
    std::vector<double> out;
    for (std::int64_t gr = 0; gr < grid_.count(shape_[1]); ++gr) {
      for (std::int64_t gc = 0; gc < grid_.count(shape_[2]); ++gc) {
        for (std::int64_t c = 0; c < shape_[0]; ++c) {
          for (std::int64_t r = 0; r < grid_.patch; ++r) {
            for (std::int64_t x = 0; x < grid_.patch; ++x) out.push_back(at(c, gr, gc, r, x));
          }
        }
      }
    }
    return out;
  }

 private:
  std::vector<double> pixels_;
  Shape shape_;
  PatchGrid grid_;
};

void run_patch_columns(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const PatchColumns&>(base);
  const Shape& shape = context.program().value(op.image).shape;
  std::vector<double> pixels = context.load(op.image);
  const std::size_t plane = static_cast<std::size_t>(shape[1] * shape[2]);
  for (std::size_t i = 0; i < pixels.size() && !op.offset.empty(); ++i) pixels[i] -= op.offset[i / plane];
  context.store(op.out, Patches(std::move(pixels), shape, op.grid).columns());
}

void run_patch_convolution(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const PatchConvolution&>(base);
  const Shape& shape = context.program().value(op.image).shape;
  const Patches patches(context.load(op.image), shape, op.grid);
  const std::vector<double> weight = context.load(op.weight);
  const std::vector<double> bias = context.load(op.bias);
  const std::int64_t grid_columns = op.grid.count(shape[2]);
  const auto n = static_cast<std::int64_t>(bias.size());
  std::vector<double> out(static_cast<std::size_t>(context.program().value(op.out).shape.count()));
  context.pool().parallel_for(static_cast<int>(n), [&](int channel_out, int) {
    for (std::int64_t token = 0; token < static_cast<std::int64_t>(out.size()) / n; ++token) {
      double sum = bias[static_cast<std::size_t>(channel_out)];
      const double* w =
          &weight[static_cast<std::size_t>(channel_out * shape[0] * op.grid.patch * op.grid.patch)];
      for (std::int64_t c = 0; c < shape[0]; ++c) {
        for (std::int64_t r = 0; r < op.grid.patch; ++r) {
          for (std::int64_t x = 0; x < op.grid.patch; ++x) {
            sum += *w++ * patches.at(c, token / grid_columns, token % grid_columns, r, x);
          }
        }
      }
      out[static_cast<std::size_t>(token * n + channel_out)] = sum;
    }
  });
  context.store(op.out, out);
}

}  // namespace

void register_patch(Forms& forms) {
  forms.add<PatchColumns>(run_patch_columns);
  forms.add<PatchConvolution>(run_patch_convolution);
}

}  // namespace sinew::reference

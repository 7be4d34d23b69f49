#include "program/convolution.h"

#include <algorithm>

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

/// The part of one axis of a window that lies inside the picture: taps [first, last), the first at `start`.
struct Taps {
  std::int64_t first = 0, last = 0, start = 0;
};

Taps taps(std::int64_t at, std::int64_t stride, std::int64_t pad, std::int64_t window, std::int64_t extent) {
  const std::int64_t start = at * stride - pad;
  const std::int64_t first = std::max<std::int64_t>(0, -start);
  return {first, std::min(window, extent - start), start + first};
}

Taps row_taps(const Window& w, const Shape& x, std::int64_t row) {
  return taps(row, w.stride_rows, w.pad_top, w.rows, x[0]);
}
Taps column_taps(const Window& w, const Shape& x, std::int64_t column) {
  return taps(column, w.stride_columns, w.pad_left, w.columns, x[1]);
}

/// Calls fn(row, column, offset of the pixel's first channel in `out`); rows are shared among threads.
template <typename Fn>
void for_each_pixel(Context& context, const Shape& out, Fn&& fn) {
  context.pool().parallel_for(static_cast<int>(out[0]), [&](int row, int) {
    for (std::int64_t column = 0; column < out[1]; ++column)
      fn(row, column, (row * out[1] + column) * out[2]);
  });
}

std::vector<double> load_if(const Context& context, ValueId id) {
  return id ? context.load(id) : std::vector<double>{};
}

std::vector<double> room_for(const Shape& shape) {
  return std::vector<double>(static_cast<std::size_t>(shape.count()));
}

void run_convolution(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Convolution&>(base);
  const Window& w = op.window;
  const Shape& in = context.program().value(op.x).shape;
  const Shape& shape = context.program().value(op.out).shape;
  const std::int64_t channels = in[2];
  const std::vector<double> x = context.load(op.x);
  const std::vector<double> weight = context.load(op.weight);
  const std::vector<double> bias = context.load(op.bias);
  const std::vector<double> residual = load_if(context, op.residual);
  const std::vector<double> slope = load_if(context, op.slope);
  std::vector<double> out = room_for(shape);
  for_each_pixel(context, shape, [&](std::int64_t row, std::int64_t column, std::int64_t at) {
    const Taps rows = row_taps(w, in, row);
    const Taps columns = column_taps(w, in, column);
    for (std::int64_t n = 0; n < shape[2]; ++n) {
      double sum = bias[static_cast<std::size_t>(n)];
      for (std::int64_t i = rows.first; i < rows.last; ++i) {
        const std::int64_t pixel = (rows.start + i - rows.first) * in[1] + columns.start;
        const std::int64_t tap = (n * w.rows + i) * w.columns + columns.first;
        sum += dot(x.data() + pixel * channels, weight.data() + tap * channels,
                   (columns.last - columns.first) * channels);
      }
      const auto index = static_cast<std::size_t>(at + n);
      if (op.residual) sum += residual[index];
      out[index] = rectify(op.rectifier, sum, op.slope ? slope[static_cast<std::size_t>(n)] : 0);
    }
  });
  context.store(op.out, out);
}

void run_depthwise(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const DepthwiseConvolution&>(base);
  const Window& w = op.window;
  const Shape& in = context.program().value(op.x).shape;
  const Shape& shape = context.program().value(op.out).shape;
  const std::int64_t channels = in[2];
  const std::vector<double> x = context.load(op.x);
  const std::vector<double> weight = context.load(op.weight);
  const std::vector<double> bias = context.load(op.bias);
  const std::vector<double> slope = load_if(context, op.slope);
  std::vector<double> out = room_for(shape);
  for_each_pixel(context, shape, [&](std::int64_t row, std::int64_t column, std::int64_t at) {
    const Taps rows = row_taps(w, in, row);
    const Taps columns = column_taps(w, in, column);
    double* sums = out.data() + at;
    std::ranges::copy(bias, sums);
    for (std::int64_t i = rows.first; i < rows.last; ++i) {
      for (std::int64_t j = columns.first; j < columns.last; ++j) {
        const double* pixel =
            x.data() + ((rows.start + i - rows.first) * in[1] + columns.start + j - columns.first) * channels;
        const double* tap = weight.data() + (i * w.columns + j) * channels;
        for (std::int64_t c = 0; c < channels; ++c) sums[c] += pixel[c] * tap[c];
      }
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      sums[c] = rectify(op.rectifier, sums[c], op.slope ? slope[static_cast<std::size_t>(c)] : 0);
    }
  });
  context.store(op.out, out);
}

void run_max_pool(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const MaxPool&>(base);
  const Shape& in = context.program().value(op.x).shape;
  const Shape& shape = context.program().value(op.out).shape;
  const std::vector<double> x = context.load(op.x);
  std::vector<double> out = room_for(shape);
  for_each_pixel(context, shape, [&](std::int64_t row, std::int64_t column, std::int64_t at) {
    const Taps rows = row_taps(op.window, in, row);
    const Taps columns = column_taps(op.window, in, column);
    for (std::int64_t c = 0; c < shape[2]; ++c) {
      const auto pixel = [&](std::int64_t i, std::int64_t j) {
        return x[static_cast<std::size_t>(((rows.start + i) * in[1] + columns.start + j) * in[2] + c)];
      };
      double largest = pixel(0, 0);
      for (std::int64_t i = 0; i < rows.last - rows.first; ++i) {
        for (std::int64_t j = 0; j < columns.last - columns.first; ++j) {
          largest = std::max(largest, pixel(i, j));
        }
      }
      out[static_cast<std::size_t>(at + c)] = largest;
    }
  });
  context.store(op.out, out);
}

void run_mean_pool(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const MeanPool&>(base);
  const std::vector<double> x = context.load(op.x);
  std::vector<double> out = room_for(context.program().value(op.out).shape);
  for (std::size_t i = 0; i < x.size(); ++i) out[i % out.size()] += x[i];
  const std::size_t pixels = x.size() / out.size();
  for (double& value : out) value /= static_cast<double>(pixels);
  context.store(op.out, out);
}

}  // namespace

void register_convolution(Forms& forms) {
  forms.add<Convolution>(run_convolution);
  forms.add<DepthwiseConvolution>(run_depthwise);
  forms.add<MaxPool>(run_max_pool);
  forms.add<MeanPool>(run_mean_pool);
}

}  // namespace sinew::reference

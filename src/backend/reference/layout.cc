#include "program/layout.h"

#include <algorithm>

#include "backend/reference/context.h"

namespace sinew::reference {
namespace {

void run_pad(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Pad&>(base);
  const Shape& in = context.program().value(op.x).shape;
  const Shape& shape = context.program().value(op.out).shape;
  const std::vector<double> x = context.load(op.x);
  std::vector<double> out(static_cast<std::size_t>(shape.count()), 0.0);
  for (std::int64_t row = 0; row < in[0]; ++row) {
    for (std::int64_t column = 0; column < in[1]; ++column) {
      for (std::int64_t c = 0; c < in[2]; ++c) {
        const std::int64_t to = ((row + op.before[0]) * shape[1] + column + op.before[1]) * shape[2];
        out[static_cast<std::size_t>(to + c + op.before[2])] =
            x[static_cast<std::size_t>((row * in[1] + column) * in[2] + c)];
      }
    }
  }
  context.store(op.out, out);
}

/// Between which two pixels of an axis an output pixel lies, and how far from the first.
struct Between {
  std::int64_t low = 0, high = 0;
  double share = 0;  // of `high`
};

Between between(std::int64_t at, std::int64_t extent, std::int64_t out_extent) {
  const double scale = static_cast<double>(extent) / static_cast<double>(out_extent);
  const double position =
      std::clamp((static_cast<double>(at) + 0.5) * scale - 0.5, 0.0, static_cast<double>(extent - 1));
  const auto low = static_cast<std::int64_t>(position);
  return {low, std::min(low + 1, extent - 1), position - static_cast<double>(low)};
}

void run_resize(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const ResizeBilinear&>(base);
  const Shape& in = context.program().value(op.x).shape;
  const Shape& shape = context.program().value(op.out).shape;
  const std::vector<double> x = context.load(op.x);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(shape.count()));
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const Between r = between(row, in[0], shape[0]);
    for (std::int64_t column = 0; column < shape[1]; ++column) {
      const Between s = between(column, in[1], shape[1]);
      for (std::int64_t c = 0; c < shape[2]; ++c) {
        const auto pixel = [&](std::int64_t i, std::int64_t j) {
          return x[static_cast<std::size_t>((i * in[1] + j) * in[2] + c)];
        };
        const double above = pixel(r.low, s.low) * (1 - s.share) + pixel(r.low, s.high) * s.share;
        const double below = pixel(r.high, s.low) * (1 - s.share) + pixel(r.high, s.high) * s.share;
        out.push_back(above * (1 - r.share) + below * r.share);
      }
    }
  }
  context.store(op.out, out);
}

void run_reshape(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const Reshape&>(base);
  context.store(op.out, context.load(op.x));
}

void run_concat_rows(const Op& base, Context& context) {
  const auto& op = dynamic_cast<const ConcatRows&>(base);
  std::vector<double> out;
  for (const ValueId part : op.parts) {
    const std::vector<double> values = context.load(part);
    out.insert(out.end(), values.begin(), values.end());
  }
  context.store(op.out, out);
}

}  // namespace

void register_layout(Forms& forms) {
  forms.add<Pad>(run_pad);
  forms.add<ResizeBilinear>(run_resize);
  forms.add<Reshape>(run_reshape);
  forms.add<ConcatRows>(run_concat_rows);
}

}  // namespace sinew::reference

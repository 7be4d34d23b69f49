#include "plan/folds.h"

#include <utility>

#include "base/error.h"

namespace sinew::transforms {
namespace {

void expect_row(const char* what, const Shape& shape, std::int64_t elements) {
  const bool row = shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 1);
  if (!row || shape.back() != elements) {
    throw fail(ErrorCode::kMismatch, "the {} is {}; expected a row of {}", what, to_string(shape), elements);
  }
}
void expect_matrix(const char* what, const Shape& shape) {
  if (shape.rank() != 2)
    throw fail(ErrorCode::kMismatch, "the {} is {}; expected a matrix", what, to_string(shape));
}

Chain add_product(Chain bias, Chain weight, Chain vector, const std::string& step, const char* what,
                  double sign) {
  return combined({std::move(bias), std::move(weight), std::move(vector)}, step, [what, sign](Operands from) {
    const Shape& shape = from[1].shape();
    expect_matrix("weight", shape);
    expect_row("bias", from[0].shape(), shape[0]);
    expect_row(what, from[2].shape(), shape[1]);
    const double* w = from[1].as<double>().data();
    const auto x = from[2].as<double>();
    for (double& out : from[0].as<double>()) {
      double sum = 0;
      for (const double v : x) sum += *w++ * v;
      out += sign * sum;
    }
    return std::move(from[0]);
  });
}

}  // namespace

Chain fold_input_scale(Chain weight, Chain scale) {
  return combined({std::move(weight), std::move(scale)}, "fold input scale", [](Operands from) {
    expect_matrix("weight", from[0].shape());
    expect_row("scale", from[1].shape(), from[0].shape()[1]);
    double* w = from[0].as<double>().data();
    const auto scales = from[1].as<double>();
    for (std::int64_t n = 0; n < from[0].shape()[0]; ++n) {
      for (const double factor : scales) *w++ *= factor;
    }
    return std::move(from[0]);
  });
}

Chain fold_input_offset(Chain bias, Chain weight, Chain offset) {
  return add_product(std::move(bias), std::move(weight), std::move(offset), "fold input offset", "offset",
                     -1);
}

Chain fold_input_shift(Chain bias, Chain weight, Chain shift) {
  return add_product(std::move(bias), std::move(weight), std::move(shift), "fold input shift", "shift", 1);
}

Chain fold_row(Chain table, Chain row) {
  return combined({std::move(table), std::move(row)}, "add a row", [](Operands from) {
    expect_matrix("table", from[0].shape());
    expect_row("row", from[1].shape(), from[0].shape()[1]);
    double* next = from[0].as<double>().data();
    const auto added = from[1].as<double>();
    for (std::int64_t t = 0; t < from[0].shape()[0]; ++t) {
      for (const double v : added) *next++ += v;
    }
    return std::move(from[0]);
  });
}

}  // namespace sinew::transforms

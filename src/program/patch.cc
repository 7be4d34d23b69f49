#include "program/patch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "program/rules.h"

namespace sinew {
namespace {

void check_grid(const Rules& rules, ValueId image, const PatchGrid& grid) {
  rules.rank(image, 3);
  rules.require(grid.patch > 0 && grid.padding >= 0, image,
                "patch must be positive and padding not negative");
  const Shape& shape = rules.value(image).shape;
  rules.require(shape[1] + 2 * grid.padding >= grid.patch && shape[2] + 2 * grid.padding >= grid.patch, image,
                "smaller than one patch");
}

std::int64_t patches(const Shape& image, const PatchGrid& grid) {
  return grid.count(image[1]) * grid.count(image[2]);
}

}  // namespace

void PatchColumns::check(const Program& program) const {
  const Rules rules(program, name());
  check_grid(rules, image, grid);
  const Value& source = rules.value(image);
  rules.dtype(image, {DType::kF32, DType::kF64, DType::kU8});
  const bool is_u8 = source.dtype == DType::kU8;
  rules.require(static_cast<std::int64_t>(offset.size()) == (is_u8 ? source.shape[0] : 0), image,
                "a u8 image needs one offset per channel, a float image none");
  for (const int o : offset) rules.require(o >= 0 && o <= 255, image, "offsets lie in 0..255");
  rules.shape(out, {patches(source.shape, grid), source.shape[0] * grid.patch * grid.patch});
  if (is_u8) {
    rules.dtype(out, {DType::kF32, DType::kBF16, DType::kF64});
  } else if (source.dtype == DType::kF64) {
    rules.dtype(out, {DType::kF64});
  } else {
    rules.dtype(out, {DType::kF32, DType::kBF16});
  }
}

std::string PatchColumns::attributes() const {
  const std::string offsets = offset.empty() ? "" : fmt::format(", offset={}", fmt::join(offset, "/"));
  return fmt::format("patch={}, padding={}{}", grid.patch, grid.padding, offsets);
}

void PatchConvolution::check(const Program& program) const {
  const Rules rules(program, name());
  check_grid(rules, image, grid);
  const Value& source = rules.value(image);
  rules.dtype(image, {DType::kF32, DType::kF64});
  rules.rank(weight, 4);
  const std::int64_t n = rules.value(weight).shape[0];
  rules.shape(weight, {n, source.shape[0], grid.patch, grid.patch});
  rules.shape(bias, {n});
  rules.same_dtype(image, bias);
  rules.same_dtype(image, out);
  if (source.dtype == DType::kF32) {
    rules.same_dtype(image, weight);
  } else {
    rules.dtype(weight, {DType::kF64, DType::kF32, DType::kBF16, DType::kF16});
  }
  rules.shape(out, {patches(source.shape, grid), n});
}

Cost PatchConvolution::cost(const Program& program) const {
  const auto tokens = static_cast<double>(program.value(out).shape[0]);
  return {2.0 * tokens * static_cast<double>(program.value(weight).shape.count())};
}

std::string PatchConvolution::attributes() const {
  return fmt::format("patch={}, padding={}", grid.patch, grid.padding);
}

}  // namespace sinew

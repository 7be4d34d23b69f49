#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace sinew {

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > static_cast<std::size_t>(kMaxRank)) {
    throw fail(ErrorCode::kLimit, "shape with {} dimensions; at most {} are supported", dims.size(),
               kMaxRank);
  }
  for (const std::int64_t dim : dims) {
    if (dim < 0) throw fail(ErrorCode::kFormat, "shape [{}] has a negative extent", fmt::join(dims, ","));
    dims_[rank_++] = dim;
  }
  // A zero extent makes the count zero, but the others must still multiply without overflow: strides use
  // them.
  std::int64_t nonzero_product = 1;
  for (const std::int64_t dim : dims) {
    const auto product = checked_mul(nonzero_product, std::max<std::int64_t>(dim, 1));
    if (!product)
      throw fail(ErrorCode::kLimit, "shape [{}] has more than 2^63 elements", fmt::join(dims, ","));
    nonzero_product = *product;
    count_ = dim == 0 ? 0 : count_;
  }
  count_ = count_ == 0 ? 0 : nonzero_product;
}

std::int64_t Shape::rows() const {
  assert(rank_ > 0 && back() > 0);
  return count_ / back();
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), ",")); }

}  // namespace sinew

#include "program/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace sinew {

void Rules::shape(ValueId id, const Shape& expected) const {
  if (!(value(id).shape == expected)) {
    throw fail(ErrorCode::kMismatch, "{}: {} has shape {}, expected {}", op_, value(id).name,
               to_string(value(id).shape), to_string(expected));
  }
}

void Rules::rank(ValueId id, int expected) const {
  if (value(id).shape.rank() != expected) {
    throw fail(ErrorCode::kMismatch, "{}: {} has shape {}, expected {} axes", op_, value(id).name,
               to_string(value(id).shape), expected);
  }
}

void Rules::dtype(ValueId id, std::initializer_list<DType> allowed) const {
  if (std::ranges::find(allowed, value(id).dtype) == allowed.end()) {
    std::vector<std::string_view> names;
    for (const DType d : allowed) names.push_back(to_string(d));
    throw fail(ErrorCode::kMismatch, "{}: {} is {}, expected {}", op_, value(id).name,
               to_string(value(id).dtype), fmt::join(names, " or "));
  }
}

void Rules::same_dtype(ValueId a, ValueId b) const { dtype(b, {value(a).dtype}); }

void Rules::slope(ValueId id, Rectifier rectifier, ValueId out) const {
  if (rectifier == Rectifier::kPRelu) {
    require(static_cast<bool>(id), out, "prelu needs slopes");
    same_dtype(out, id);
    shape(id, {value(out).shape.back()});
  } else {
    require(!id, out, "only prelu has slopes");
  }
}

void Rules::require(bool holds, ValueId id, std::string_view text) const {
  if (!holds) {
    throw fail(ErrorCode::kMismatch, "{}: {} {}: {}", op_, value(id).name, to_string(value(id).shape), text);
  }
}

bool is_activation(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF64;
}

}  // namespace sinew

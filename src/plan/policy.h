// Numeric policies: which types weights, products and the rest are kept in (docs/NUMERICS.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/weight_storage.h"

namespace sinew {

enum class Policy : std::uint8_t {
  kF64,   // everything in double; the reference backend's oracle
  kF32,   // everything in f32
  kBF16,  // weights and operands of products in bf16, accumulation, residual stream, layer norm and softmax
          // in f32
  kBfp8,  // as kBF16, but weights of products hold bfp8_b values, in 8.5 bits each where a backend can
};

std::string_view to_string(Policy policy);
/// Nothing for an unknown word.
std::optional<Policy> parse_policy(std::string_view word);

/// Operands of matrix products.
DType product_dtype(Policy policy);
/// How the weights of matrix products are kept.
WeightStorage product_storage(Policy policy);
/// The residual stream, biases, norms and results: the accumulator's type.
DType stream_dtype(Policy policy);

}  // namespace sinew

#include "plan/policy.h"

namespace sinew {

std::string_view to_string(Policy policy) {
  switch (policy) {
    case Policy::kF64:
      return "f64";
    case Policy::kF32:
      return "f32";
    case Policy::kBF16:
      return "bf16";
  }
  return "unknown";
}

std::optional<Policy> parse_policy(std::string_view word) {
  for (const Policy policy : {Policy::kF64, Policy::kF32, Policy::kBF16}) {
    if (word == to_string(policy)) return policy;
  }
  return std::nullopt;
}

DType product_dtype(Policy policy) {
  return policy == Policy::kF64 ? DType::kF64 : policy == Policy::kBF16 ? DType::kBF16 : DType::kF32;
}

DType stream_dtype(Policy policy) { return policy == Policy::kF64 ? DType::kF64 : DType::kF32; }

}  // namespace sinew

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
    case Policy::kBfp8:
      return "bfp8";
  }
  return "unknown";
}

std::optional<Policy> parse_policy(std::string_view word) {
  for (const Policy policy : {Policy::kF64, Policy::kF32, Policy::kBF16, Policy::kBfp8}) {
    if (word == to_string(policy)) return policy;
  }
  return std::nullopt;
}

DType product_dtype(Policy policy) {
  switch (policy) {
    case Policy::kF64:
      return DType::kF64;
    case Policy::kF32:
      return DType::kF32;
    case Policy::kBF16:
    case Policy::kBfp8:
      return DType::kBF16;
  }
  return DType::kF32;
}

WeightStorage product_storage(Policy policy) {
  return policy == Policy::kBfp8 ? WeightStorage::kBfp8 : WeightStorage::kPlain;
}

DType stream_dtype(Policy policy) { return policy == Policy::kF64 ? DType::kF64 : DType::kF32; }

}  // namespace sinew

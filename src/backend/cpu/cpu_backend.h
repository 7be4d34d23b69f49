// The fast path: packed weights, fused kernels, chosen for this processor.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "tensor/weight_storage.h"

namespace sinew {

/// Throws Error (kUsage) for a senseless thread count.
std::unique_ptr<Backend> make_cpu_backend(int threads);

/// True when products with these operands and weights can be run here.
bool cpu_has_products(DType operand, WeightStorage storage = WeightStorage::kPlain);
/// True when bf16 products are faster than f32 ones here: AVX512-BF16 or AMX.
bool cpu_prefers_bf16();

}  // namespace sinew

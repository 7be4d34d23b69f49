// The fast path: packed weights, fused kernels, chosen for this processor.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace sinew {

/// Throws Error (kUsage) for a senseless thread count.
std::unique_ptr<Backend> make_cpu_backend(int threads);

/// True when products with bf16 operands can be run here (oneDNN 2.6 has none below AVX-512).
bool cpu_has_bf16_products();
/// True when bf16 products are faster than f32 ones here: AVX512-BF16 or AMX.
bool cpu_prefers_bf16();

}  // namespace sinew

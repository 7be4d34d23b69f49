// The fast path: packed weights, fused kernels, chosen for this processor.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/machine.h"
#include "tensor/weight_storage.h"

namespace sinew {

/// Throws Error: kUsage for a senseless thread count; kUnsupported for an instruction set that this processor
/// lacks, or one below AVX2 once products above it were made (a limit of oneDNN, which makes them there).
std::unique_ptr<Backend> make_cpu_backend(const MachineOptions& options = {});

/// True when products with these operands and weights can be run here, with instruction sets up to `isa`.
bool cpu_has_products(DType operand, WeightStorage storage = WeightStorage::kPlain, Isa isa = best_isa());
/// True when bf16 products are faster than f32 ones here: AVX512-BF16 (not Intel's) or AMX.
bool cpu_prefers_bf16(Isa isa = best_isa());

}  // namespace sinew

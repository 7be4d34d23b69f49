// The fast path: packed weights, fused kernels, chosen for this processor.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/machine.h"
#include "tensor/weight_storage.h"

namespace sinew {

/// Throws Error: kUsage for a senseless thread count; kUnsupported for an instruction set that this processor
/// lacks, or one below AVX2 where oneDNN, which makes the products there, has chosen a higher one already. It
/// is held to the lower one for the rest of the process then.
std::unique_ptr<Backend> make_cpu_backend(const MachineOptions& options = {});

/// True when products with these operands and weights can be run here.
bool cpu_has_products(DType operand, WeightStorage storage = WeightStorage::kPlain);

}  // namespace sinew

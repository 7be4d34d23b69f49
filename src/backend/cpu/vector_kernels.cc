#include "backend/cpu/vector_kernels.h"

#include "base/checked.h"

namespace sinew::cpu {

const VectorKernels& vector_kernels(Isa limit) {
#if defined(__x86_64__)
  if (limit >= Isa::kAvx512) return kAvx512Kernels;
  if (limit >= Isa::kAvx2) return kAvx2Kernels;
#else
  (void)limit;
#endif
  return kBaselineKernels;
}

std::int64_t attention_scratch(std::int64_t keys, std::int64_t dim) {
  constexpr std::int64_t kLanes = 16;  // of the widest table
  const std::int64_t padded_keys = round_up(keys, kLanes);
  const std::int64_t padded_dim = round_up(dim, kLanes);
  return dim * padded_keys + keys * padded_dim + 4 * padded_keys + 4 * padded_dim;
}

}  // namespace sinew::cpu

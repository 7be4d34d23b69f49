#define SINEW_LANES 16
#define SINEW_ISA_NAMESPACE avx512

#include "backend/cpu/convolution_kernels_impl.h"

namespace sinew::cpu {

SINEW_VECTOR_KERNELS(kAvx512Kernels, Isa::kAvx512);

}  // namespace sinew::cpu

#define SINEW_LANES 8
#define SINEW_ISA_NAMESPACE avx2

#include "backend/cpu/convolution_kernels_impl.h"

namespace sinew::cpu {

SINEW_VECTOR_KERNELS(kAvx2Kernels, Isa::kAvx2);

}  // namespace sinew::cpu

#define SINEW_LANES 4
#define SINEW_ISA_NAMESPACE baseline

#include "backend/cpu/convolution_kernels_impl.h"

namespace sinew::cpu {

SINEW_VECTOR_KERNELS(kBaselineKernels, Isa::kBaseline);

}  // namespace sinew::cpu

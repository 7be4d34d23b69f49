#if defined(__x86_64__)

#define SINEW_LANES 8
#define SINEW_ISA_NAMESPACE avx2

#include "backend/cpu/gemm_kernels_impl.h"

namespace sinew::cpu {

constexpr GemmKernels kGemmAvx2 = avx2::table(Isa::kAvx2);

}  // namespace sinew::cpu

#endif

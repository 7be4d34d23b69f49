#if defined(__x86_64__)

#define SINEW_LANES 16
#define SINEW_ISA_NAMESPACE avx512

#include "backend/cpu/gemm_kernels_impl.h"

namespace sinew::cpu {

constexpr GemmKernels kGemmAvx512 = avx512::table(Isa::kAvx512);

}  // namespace sinew::cpu

#endif

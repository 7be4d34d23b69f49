#if defined(__x86_64__)

#define SINEW_LANES 16
#define SINEW_ISA_NAMESPACE avx512bf16
#define SINEW_BF16_DOT

#include <immintrin.h>

#include "backend/cpu/gemm_kernels_impl.h"

namespace sinew::cpu {

constexpr GemmKernels kGemmAvx512Bf16 = avx512bf16::table(Isa::kAvx512Bf16);

}  // namespace sinew::cpu

#endif

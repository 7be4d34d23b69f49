// Row kernels, compiled once per instruction set from one source and chosen at run time.
#pragma once

#include <cstdint>

#include "backend/cpu/convolution_kernels.h"
#include "base/cpu.h"
#include "tensor/float16.h"

namespace sinew::cpu {

/// One head of attention; see program/attention.h. Strides in elements.
template <typename T>
struct HeadArguments {
  const T* q = nullptr;  // [queries, dim]
  const T* k = nullptr;  // [keys, dim]
  const T* v = nullptr;  // [keys, dim]
  T* out = nullptr;      // [queries, dim]
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0;
  std::int64_t queries = 0, keys = 0, dim = 0;
  float scale = 1;
  float* scratch = nullptr;  // attention_scratch(keys, dim) floats, 64-byte aligned
};

/// Floats of scratch for one head: K transposed and V widened to f32, four rows of queries and of scores,
/// each padded to a vector.
std::int64_t attention_scratch(std::int64_t keys, std::int64_t dim);

struct VectorKernels {
  Isa isa;
  /// One row of n: (x - mean)/sqrt(var + eps) * gamma + beta, two passes in f32.
  void (*layer_norm_f32)(const float* x, const float* gamma, const float* beta, std::int64_t n, float eps,
                         float* out);
  void (*layer_norm_bf16)(const float* x, const float* gamma, const float* beta, std::int64_t n, float eps,
                          BF16* out);
  void (*attention_f32)(const HeadArguments<float>& head);
  void (*attention_bf16)(const HeadArguments<BF16>& head);
  void (*f32_to_bf16)(const float* x, std::int64_t n, BF16* out);
  void (*bf16_to_f32)(const BF16* x, std::int64_t n, float* out);
  /// Floats in a vector: what weights of the kernels below are packed by.
  std::int64_t lanes;
  void (*pixel_product)(const PixelProduct& product);
  void (*depthwise_row)(const DepthwiseRow& row);
};

/// The best table up to `limit`.
const VectorKernels& vector_kernels(Isa limit);

extern const VectorKernels kBaselineKernels;
#if defined(__x86_64__)
extern const VectorKernels kAvx2Kernels;
extern const VectorKernels kAvx512Kernels;
#endif

}  // namespace sinew::cpu

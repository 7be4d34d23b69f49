// Matrix products with packed weights. Two libraries stand behind it: own kernels (gemm_native.h) and oneDNN
// (gemm_onednn.h); gemm.cc chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "program/weight_source.h"
#include "tensor/tensor.h"
#include "tensor/weight_storage.h"

namespace sinew::cpu {

/// out[m,n] = x[m,k] * weight[n,k]^T (+ bias[n]), then GELU, then + residual[m,n]; see program/linear.h. All
/// row-major; sums in f32.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  DType operand = DType::kF32;  // of x and the weight: f32 or bf16
  DType out = DType::kF32;      // f32 or bf16
  WeightStorage storage = WeightStorage::kPlain;
  bool bias = false;
  bool gelu = false;  // the exact form
  bool residual = false;
  Isa isa = best_isa();  // the highest instruction set to be used
};

/// What a weight [N,K] becomes for products of this shape. Throws Error (kUnsupported) when this processor
/// has no such product.
WeightForm packed_form(const GemmShape& shape);
/// Writes `weight` [N,K], of the operand's dtype, in packed_form(shape).
void pack_matrix(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out);

/// Addresses of one product.
struct GemmOperands {
  const std::byte* x = nullptr;
  const std::byte* weight = nullptr;  // packed, on a 64-byte boundary
  const float* bias = nullptr;
  const float* residual = nullptr;
  std::byte* out = nullptr;
};

/// Bytes that a running kernel needs; their contents need not survive.
struct ScratchSize {
  std::size_t shared = 0;
  std::size_t per_thread = 0;
};

/// Where they are, on 64-byte boundaries; thread t's part lies at per_thread + t * stride.
struct Scratch {
  std::byte* shared = nullptr;
  std::byte* per_thread = nullptr;
  std::size_t stride = 0;
  std::byte* of_thread(int thread) const { return per_thread + static_cast<std::size_t>(thread) * stride; }
};

/// One product, bound to its addresses. Its bits do not depend on the number of threads or who runs what.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual ScratchSize scratch() const = 0;
  /// Must be called once before run().
  virtual void bind_scratch(const Scratch& scratch) = 0;
  /// `pool` has the number of threads the product was made for.
  virtual void run(ThreadPool& pool) noexcept = 0;
  /// The implementation's name, for the log.
  virtual std::string implementation() const = 0;
};

/// Throws as packed_form() does.
std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, const GemmOperands& operands, int threads);

/// Who makes f32 products up to an instruction set, for people: "own products", or gemm_library().
std::string gemm_maker(Isa isa);
/// Everything outside this program that decides packed bytes: "oneDNN 2.6.3".
std::string gemm_library();
/// True when a product of these operands can be made at all.
bool has_product(DType operand, WeightStorage storage, Isa isa = best_isa());
/// Holds every library to an instruction set, for the rest of the process; needed where own products do not
/// reach. Throws Error (kUnsupported) when the library has run already and cannot be held to it any more.
void limit_library(Isa isa);

}  // namespace sinew::cpu

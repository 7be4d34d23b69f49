// Matrix products with packed weights. oneDNN today (spec cpu_kernels); this interface is what own kernels
// will take over. The one file that knows oneDNN is gemm_onednn.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tensor/tensor.h"

namespace sinew::cpu {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  DType operand = DType::kF32;  // of x and the weight
  DType out = DType::kF32;
  bool bias = false;
  bool gelu = false;
  bool residual = false;
};

/// A weight [N,K] in the layout that the product likes best. Resident for the life of the session.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  virtual std::size_t bytes() const = 0;
};

/// Packs `weight` for products of this shape. Throws Error (kUnsupported) when this processor has no such
/// product.
std::shared_ptr<const PackedMatrix> pack_matrix(const TensorView& weight, const GemmShape& shape);
/// True when `packed` (made for another shape) serves this one too.
bool pack_serves(const PackedMatrix& packed, const GemmShape& shape);

/// Addresses of one product; see program/linear.h for the meaning.
struct GemmOperands {
  const std::byte* x = nullptr;
  const float* bias = nullptr;
  const float* residual = nullptr;
  std::byte* out = nullptr;
};

/// One product, its rows cut into slices that any thread may run. Each slice is serial, so that threading is
/// ours and a slice's bits do not depend on who runs it.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual int slices() const = 0;
  /// Bytes of scratch that a running slice needs.
  virtual std::size_t scratch_bytes() const = 0;
  /// Must be called once before run(); `scratch` + i * stride is slice i's.
  virtual void bind_scratch(std::byte* scratch, std::size_t stride) = 0;
  virtual void run(int slice) noexcept = 0;
  /// The implementation's name, for the log.
  virtual std::string implementation() const = 0;
};

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, std::shared_ptr<const PackedMatrix> weight,
                                const GemmOperands& operands, int threads);

/// "oneDNN 2.6.3"
std::string gemm_library();
/// True when a bf16 product can be made at all.
bool has_bf16_product();

}  // namespace sinew::cpu

// Own products: one kernel per instruction set (gemm_kernels.h), weights packed into column panels.
#pragma once

#include <memory>
#include <span>

#include "backend/cpu/gemm.h"
#include "base/cpu.h"

namespace sinew::cpu {

/// The instruction set up to `limit` that is the fastest for products here: the best, but no bf16 dot
/// products on Intel, where one takes as long as four f32 multiply-adds of as many lanes (a Xeon of family 6,
/// model 207: 77 against 154 GFLOP/s a core). Weights are widened to f32 there. The packed bytes are the
/// same.
Isa native_isa(Isa limit = best_isa());

/// True when an own kernel of an instruction set up to `limit` makes this product.
bool native_serves(const GemmShape& shape, Isa limit = native_isa());
/// As packed_form(), pack_matrix() and make_gemm() in gemm.h; each asserts native_serves(). native_pack()
/// throws Error (kMismatch) when the storage is kBfp8 and a value is not a bfp8_b one.
WeightForm native_form(const GemmShape& shape, Isa limit = native_isa());
void native_pack(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out,
                 Isa limit = native_isa());
std::unique_ptr<Gemm> make_native_gemm(const GemmShape& shape, const GemmOperands& operands, int threads,
                                       Isa limit = native_isa());

}  // namespace sinew::cpu

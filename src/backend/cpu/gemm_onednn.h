// Products by oneDNN.
#pragma once

#include "backend/cpu/gemm.h"

namespace sinew::cpu {

/// True when oneDNN has this product for this processor; it has none with bfp8 weights.
bool onednn_serves(const GemmShape& shape);
/// As packed_form(), pack_matrix() and make_gemm() in gemm.h.
WeightForm onednn_form(const GemmShape& shape);
void onednn_pack(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out);
std::unique_ptr<Gemm> make_onednn_gemm(const GemmShape& shape, const GemmOperands& operands, int threads);

/// SSE 4.1 from now on. Throws Error (kUnsupported) when oneDNN has made something already.
void onednn_limit_to_baseline();

/// "oneDNN 2.6.3"
std::string onednn_version();

}  // namespace sinew::cpu

#include "backend/cpu/gemm.h"

#include "backend/cpu/gemm_native.h"
#include "backend/cpu/gemm_onednn.h"

namespace sinew::cpu {

WeightForm packed_form(const GemmShape& shape) {
  return native_serves(shape) ? native_form(shape) : onednn_form(shape);
}

void pack_matrix(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out) {
  native_serves(shape) ? native_pack(weight, shape, out) : onednn_pack(weight, shape, out);
}

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, const GemmOperands& operands, int threads) {
  return native_serves(shape) ? make_native_gemm(shape, operands, threads)
                              : make_onednn_gemm(shape, operands, threads);
}

std::string gemm_library() { return onednn_version(); }

bool has_product(DType operand, WeightStorage storage) {
  const GemmShape shape{.m = 16, .n = 64, .k = 64, .operand = operand, .storage = storage};
  return native_serves(shape) || onednn_serves(shape);
}

}  // namespace sinew::cpu

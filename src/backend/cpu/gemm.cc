#include "backend/cpu/gemm.h"

#include "backend/cpu/gemm_native.h"
#include "backend/cpu/gemm_onednn.h"
#include "base/cpu.h"

namespace sinew::cpu {

namespace {

/// Own kernels wherever there are some, but for AMX, which only oneDNN has: its tiles multiply bf16 at
/// several times the rate of any vector unit.
bool is_native(const GemmShape& shape) {
  const bool tiles =
      shape.operand == DType::kBF16 && shape.storage == WeightStorage::kPlain && has_amx_bf16();
  return native_serves(shape) && !(tiles && onednn_serves(shape));
}

}  // namespace

WeightForm packed_form(const GemmShape& shape) {
  return is_native(shape) ? native_form(shape) : onednn_form(shape);
}

void pack_matrix(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out) {
  is_native(shape) ? native_pack(weight, shape, out) : onednn_pack(weight, shape, out);
}

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, const GemmOperands& operands, int threads) {
  return is_native(shape) ? make_native_gemm(shape, operands, threads)
                          : make_onednn_gemm(shape, operands, threads);
}

std::string gemm_maker() {
  return native_serves({.m = 16, .n = 64, .k = 64}) ? "own products" : gemm_library();
}

std::string gemm_library() { return onednn_version(); }

bool has_product(DType operand, WeightStorage storage) {
  const GemmShape shape{.m = 16, .n = 64, .k = 64, .operand = operand, .storage = storage};
  return native_serves(shape) || onednn_serves(shape);
}

}  // namespace sinew::cpu

#include "backend/cpu/gemm.h"

#include <algorithm>

#include "backend/cpu/gemm_native.h"
#include "backend/cpu/gemm_onednn.h"
#include "base/cpu.h"

namespace sinew::cpu {

namespace {

/// Own kernels wherever there are some, but for AMX, which only oneDNN has: its tiles multiply bf16 at
/// several times the rate of any vector unit.
bool is_native(const GemmShape& shape) {
  const bool tiles =
      shape.operand == DType::kBF16 && shape.storage == WeightStorage::kPlain && shape.isa >= Isa::kAmx;
  return native_serves(shape, native_isa(shape.isa)) && !(tiles && onednn_serves(shape));
}

}  // namespace

WeightForm packed_form(const GemmShape& shape) {
  return is_native(shape) ? native_form(shape, native_isa(shape.isa)) : onednn_form(shape);
}

void pack_matrix(const TensorView& weight, const GemmShape& shape, std::span<std::byte> out) {
  is_native(shape) ? native_pack(weight, shape, out, native_isa(shape.isa)) : onednn_pack(weight, shape, out);
}

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, const GemmOperands& operands, int threads) {
  return is_native(shape) ? make_native_gemm(shape, operands, threads, native_isa(shape.isa))
                          : make_onednn_gemm(shape, operands, threads);
}

std::string gemm_maker(Isa isa) {
  return native_serves({.m = 16, .n = 64, .k = 64}, native_isa(isa)) ? "own products" : gemm_library();
}

std::string gemm_library() { return onednn_version(); }

bool has_product(DType operand, WeightStorage storage, Isa isa) {
  const GemmShape shape{.m = 16, .n = 64, .k = 64, .operand = operand, .storage = storage, .isa = isa};
  return native_serves(shape, native_isa(isa)) || onednn_serves(shape);
}

void limit_library(Isa isa) {
  if (isa < std::min(Isa::kAvx2, best_isa())) onednn_limit_to_baseline();
}

}  // namespace sinew::cpu

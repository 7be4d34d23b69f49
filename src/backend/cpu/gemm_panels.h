// How own products keep weights: panels of columns, in the order in which gemm_kernels.h reads them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace sinew::cpu {

enum class PanelKind : std::uint8_t {
  kF32,    // [k][width]
  kPairs,  // bf16: [pair of k][width][2]
  kBfp8,   // blocks of kBlockPairs pairs: codes [pair][lane][4], exponents [pair][2][width / 16]
};

/// All that decides the bytes of a packed weight [N,K].
struct PanelForm {
  PanelKind kind = PanelKind::kF32;
  std::int64_t lanes = 0;  // half a panel's width
  std::int64_t n = 0, k = 0;

  std::int64_t width() const { return 2 * lanes; }
  /// Panels of all columns; the last is padded with zeros.
  std::int64_t panels() const { return (n + width() - 1) / width(); }
  std::int64_t pairs() const { return (k + 1) / 2; }
  /// Bytes from the start of a panel to pair `pair` of k: a multiple of kBlockPairs where kind is kBfp8.
  std::int64_t offset(std::int64_t pair) const;
  std::int64_t panel_bytes() const;
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  /// "panels of 32, pairs of k, v1"
  std::string layout() const;
};

/// Writes `weight` [N,K], f32 for kF32 and bf16 otherwise, contiguous, to form.bytes() bytes. Throws Error
/// (kMismatch) when the kind is kBfp8 and a value has no code under the exponent of its block's largest.
void pack_panels_of(const TensorView& weight, const PanelForm& form, std::span<std::byte> out);

}  // namespace sinew::cpu

// The inner loops of own products (gemm_native.cc), compiled once per instruction set from one source and
// chosen at run time.
//
// A product runs over "steps": one k for f32 operands, a pair of them for the bf16 dot product. Both factors
// are 32-bit words by then: weights in panels of two vectors of columns, [step][vector][lane], x in tiles of
// a few rows, [step][row], so that one broadcast word of x meets the two vectors of a step.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"

namespace sinew::cpu {

/// Vectors of columns in a panel. Tiles of 12 rows by 2 vectors of 16 lanes (6 by 2 of 8 lanes on AVX2) fill
/// the registers with sums, and weights need half the second-level bandwidth of 6 rows by 4.
inline constexpr int kPanelVectors = 2;
/// Panels that one tile may span: a few rows want several streams of weights at once.
inline constexpr std::array<int, 3> kPanelGroups = {1, 2, 4};
/// Pairs of k in a block of packed bfp8: codes [pair][lane][4], then exponents [pair][2][groups of 16
/// columns].
inline constexpr int kBlockPairs = 16;

/// 2^(e - 133): what a magnitude of 1 stands for under exponent byte e. Below e = 7 it is a subnormal float.
inline constexpr std::array<float, 256> kBfp8Units = [] {
  std::array<float, 256> units{};
  for (std::uint32_t e = 0; e < 256; ++e)
    units[e] = std::bit_cast<float>(e < 7 ? 1U << (16 + e) : (e - 6) << 23);
  return units;
}();

/// sums += rows * panels.
struct ProductTile {
  const std::byte* rows = nullptr;   // [steps][rows] words
  const std::byte* panel = nullptr;  // [steps][kPanelVectors][lanes] words, the first of the group
  std::int64_t panel_stride = 0;     // bytes from one panel of the group to the next
  std::int64_t steps = 0;
  float* sums = nullptr;  // [rows][group * kPanelVectors * lanes]
  // What is multiplied next is fetched meanwhile: next_bytes further a step, in each panel of the group.
  const std::byte* next = nullptr;
  std::int64_t next_bytes = 0, next_stride = 0;
};

/// x of one tile to [steps][rows] words.
struct PackRows {
  const std::byte* x = nullptr;  // [rows][k], rows next to one another
  std::int64_t rows = 0, k = 0;
  std::byte* out = nullptr;
};

/// Sums to results: + bias, GELU, + residual, rounding.
struct FinishRows {
  const float* sums = nullptr;  // [rows][sums_stride]
  std::int64_t sums_stride = 0;
  std::int64_t rows = 0, columns = 0;
  const float* bias = nullptr;      // [columns] or null
  const float* residual = nullptr;  // [rows][stride] or null
  std::byte* out = nullptr;         // [rows][stride]
  std::int64_t stride = 0;          // elements
  bool gelu = false;
};

struct GemmKernels {
  using Product = void (*)(const ProductTile& tile, int rows);
  using Pack = void (*)(const PackRows& pack);
  /// `pairs` pairs of k of one panel to steps of a product: 2 pairs of f32, or pairs of bf16.
  using Expand = void (*)(const std::byte* panel, std::int64_t pairs, std::byte* out);

  Isa isa;
  int lanes;
  std::array<int, 3> most_rows;  // of a tile over kPanelGroups panels
  std::array<Product, 3> product_f32;
  std::array<Product, 3> product_pairs;  // null without a bf16 dot product
  Pack pack_f32, pack_pairs, pack_widened;
  Expand widen_pairs;  // bf16 to f32
  Expand widen_bfp8;   // to f32
  Expand expand_bfp8;  // to pairs of bf16
  void (*finish_f32)(const FinishRows& rows);
  void (*finish_bf16)(const FinishRows& rows);
};

/// The best table up to `limit` that this processor can run; null below AVX2.
const GemmKernels* gemm_kernels(Isa limit);

#if defined(__x86_64__)
extern const GemmKernels kGemmAvx2;
extern const GemmKernels kGemmAvx512;
extern const GemmKernels kGemmAvx512Bf16;
#endif

}  // namespace sinew::cpu

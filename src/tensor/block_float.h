// Block floating point: bfp8_b, bfp4_b and bfp2_b of Tenstorrent's machines, as their host library writes and
// reads them. Sixteen numbers share one exponent byte; each keeps a code of a sign and a magnitude without
// hidden bit. This file is the definition, one block at a time; block_float_kernels.h packs whole tensors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/float16.h"

namespace sinew {

/// Names as `to_string` gives them: bfp8_b, bfp4_b, bfp2_b.
enum class BlockFormat : std::uint8_t { kBfp8, kBfp4, kBfp2 };

inline constexpr std::array kBlockFormats = {BlockFormat::kBfp8, BlockFormat::kBfp4, BlockFormat::kBfp2};
/// Numbers that share an exponent.
inline constexpr int kBlockSize = 16;

std::string_view to_string(BlockFormat format);
/// Bits of a code's magnitude: 7, 3 or 1. The sign is the bit above.
constexpr int magnitude_bits(BlockFormat format) {
  return format == BlockFormat::kBfp8 ? 7 : format == BlockFormat::kBfp4 ? 3 : 1;
}
constexpr int code_bits(BlockFormat format) { return magnitude_bits(format) + 1; }
/// Bytes of a block's sixteen codes: 16, 8 or 4.
constexpr int code_bytes(BlockFormat format) { return kBlockSize * code_bits(format) / 8; }

enum class BlockRounding : std::uint8_t { kNearestEven, kTruncate };
/// kLargest: the exponent of the largest number. kLeastError: that one or the one below, whichever gives the
/// smaller sum of squared errors (the larger on a tie); numbers too large for the lower one saturate. The
/// vendor's newest library does the latter.
enum class BlockExponent : std::uint8_t { kLargest, kLeastError };

struct BlockPacking {
  BlockRounding rounding = BlockRounding::kNearestEven;
  BlockExponent exponent = BlockExponent::kLargest;
  /// Rounds f32 input to bf16 first, as a host tensor held in bf16 has been. Without, f32 is packed as it is:
  /// a number a hair above a tie may then be rounded as a tie, because alignment cuts bits before rounding.
  bool through_bf16 = false;
};

/// Sixteen codes, one a byte. The value of a code is (-1)^sign * magnitude * 2^(exponent - 127 - (w - 1))
/// with w = magnitude_bits().
struct Block {
  std::uint8_t exponent = 0;
  std::array<std::uint8_t, kBlockSize> codes{};
  bool operator==(const Block&) const = default;
};

/// to_bf16(), but every NaN becomes 0x7fc0: what the vendor's host library stores.
constexpr BF16 to_bf16_host(float value) { return value != value ? BF16{0x7fc0} : to_bf16(value); }

/// Denormals count as zero; -0 and what rounds to zero get code 0. Infinity and NaN are packed like numbers
/// with exponent 255, which ruins their block: a caller that cannot have that looks for exponent 255 in the
/// result.
Block pack_block(std::span<const float, kBlockSize> values, BlockFormat format,
                 const BlockPacking& packing = {});

/// The value of one code, which bf16 holds exactly: the bits after normalisation, put together. Magnitude 0
/// keeps its sign. Below exponent 7 normalisation may run out of exponents: a field of 0 still carries the
/// fraction without its leading one (so the value differs from the formula), below that the result is +0.
BF16 unpack_code(BlockFormat format, std::uint8_t exponent, std::uint8_t code);

/// Codes to their bytes and back; the first code is in the lowest bits of the first byte. code_bytes(format)
/// bytes.
void store_codes(const Block& block, BlockFormat format, std::uint8_t* bytes);
void load_codes(const std::uint8_t* bytes, BlockFormat format, Block& block);

}  // namespace sinew

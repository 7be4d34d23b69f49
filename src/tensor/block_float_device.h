// Block floating point as the device's own packer and unpacker treat it, which is not how the host library
// does: the packer rounds half away from zero (by default twice), cuts bfp4 and bfp2 instead of rounding
// them, and the unpacker's underflow wraps. One block at a time; for the emulation of a device, not for
// preparing weights.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "tensor/block_float.h"

namespace sinew {

/// kDefault rounds to 7 significant bits before it looks for the largest exponent, and again after alignment:
/// matmul, add, multiply. kPrecise rounds once: typecast.
enum class DevicePacker : std::uint8_t { kDefault, kPrecise };

/// What the packer makes of one destination register before it forms blocks: a bf16 without denormals (they
/// become +0) and without NaN (they become infinity of their sign); f32 registers are cut to bf16, not
/// rounded.
BF16 device_packer_word(BF16 destination, DevicePacker packer);
BF16 device_packer_word(float destination, DevicePacker packer);

/// A block from packer words.
Block pack_block_device(std::span<const BF16, kBlockSize> words, BlockFormat format);

/// The bf16 that reaches the matrix and vector engines. "Minus zero" (sign 1, magnitude 0; no packer writes
/// it) is minus infinity; an exponent below 0 wraps to 255, 254, ...
BF16 unpack_code_device(BlockFormat format, std::uint8_t exponent, std::uint8_t code);

}  // namespace sinew

// Steps of a chain that round weights to fewer bits: block floats and 8-bit integers. Their results are f64
// again and exact in the dtype that the plan rounds to, so that rounding happens here and nowhere else.
#pragma once

#include "plan/chain.h"

namespace sinew::transforms {

/// The bfp8_b values of a weight [N,K] (policy `bfp8`, WeightStorage::kBfp8): for each k the rows 16 i to
/// 16 i + 15 share an exponent, as they lie in a row of a tile of the transposed matrix [K,N] that devices
/// multiply with; a last block that is short counts as filled with zeros. Each element is rounded to bf16 and
/// packed as pack_block() does (spec tenstorrent 2.2: nearest even, exponent of the largest). bf16 holds
/// every result exactly, and a second pass changes nothing.
///
/// With e the exponent of a block's largest bf16 value b: |b - q| <= 2^(e-7), so |x - q| <= 2^(e-7) +
/// 2^(e-8). (A magnitude's unit is 2^(e-6); bf16 has no value in the zone of 2.6 where saturation costs more
/// than half of it.) Denormals count as zero, which costs up to 2^-126 where that is more, that is for e <
/// -119; no result is one.
///
/// Throws Error (kMismatch): not a matrix; an element that is not finite in bf16, with its place and value.
Step quantise_bfp8();

/// 8-bit codes of a weight [N,K] (policy `int8`), each row with a scale of its own and symmetric: integers
/// from -127 to 127, w to the nearest w / scale[n], ties to even. |w - scale[n] * code| <= scale[n] / 2 *
/// (1 + 2^-45), the last factor for the division in double. A row of zeros gets codes 0. Throws Error
/// (kMismatch): not a matrix; an element that is not finite; a row whose scale f32 cannot hold.
Step int8_codes();
/// Their scales [N]: max |w[n,:]| / 127, exact in f32; at least 2^-126 (f32's smallest normal number), but 0
/// for a row of zeros. Errors as int8_codes().
Step int8_scales();

}  // namespace sinew::transforms

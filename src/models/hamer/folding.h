// The exact reformulations of spec hamer 7 that are HaMeR's own, as plan transforms in double. Those that any
// model has are in plan/transforms.h.
#pragma once

#include <vector>

#include "models/hamer/config.h"
#include "plan/plan.h"

namespace sinew::hamer {

/// Channel statistics in pixel units: mean and standard deviation times 255.
struct PixelStats {
  std::array<double, 3> mean{};
  std::array<double, 3> std{};
};
PixelStats pixel_stats(const Config& config);

/// Patch weight [C,768]: the convolution's, or with the 1/std of each channel folded in for 8-bit input (7.1,
/// 7.3).
Transform patch_weight(const Config& config, bool u8_input);
/// What a patch's product lacks, per token [192,C]: the bias, for 8-bit input the normalised image of the
/// offsets, and with `with_position` both rows of the position table (7.2, 7.3).
Transform patch_constant(const Config& config, bool u8_input, bool with_position);
/// to_token_embedding.bias + pos_embedding [1,D] (7.7).
Transform initial_token(const Config& config);
/// The token after layer 0's self-attention [1,D] (7.8).
Transform token_after_layer0(const Config& config);
/// Layer 0's cross-attention query [1,inner] (7.8).
Transform query_of_layer0(const Config& config);

/// Checkpoint tensors that the two layer-0 constants are made from.
std::vector<std::string> layer0_sources();

}  // namespace sinew::hamer

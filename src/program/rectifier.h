// The piecewise linear activations that ops of several families can end with.
#pragma once

#include <cstdint>
#include <string_view>

namespace sinew {

/// max(x, 0); min(max(x, 0), 6); x where x >= 0, else slope * x with one slope per channel.
enum class Rectifier : std::uint8_t { kNone, kRelu, kRelu6, kPRelu };

/// "none", "relu", "relu6", "prelu"
std::string_view to_string(Rectifier rectifier);

}  // namespace sinew

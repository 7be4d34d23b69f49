// How exactly a weight's values have to be kept.
#pragma once

#include <cstdint>

namespace sinew {

/// What a backend may rely on when it lays out a weight of its own dtype.
enum class WeightStorage : std::uint8_t {
  kPlain,  // every value counts
  /// A matrix [N,K] whose values are bfp8_b ones already, in blocks of sixteen along N for each k (the last
  /// block of a column may be short): 8.5 bits a value hold it without loss (spec tenstorrent 2).
  kBfp8,
};

}  // namespace sinew

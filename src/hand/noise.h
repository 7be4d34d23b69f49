// Seeded random numbers and smooth noise for drawn pictures.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/hash.h"
#include "hand/camera.h"

namespace sinew {

/// Uniform in [-1, 1).
inline double random_pm1(std::uint64_t seed, std::uint64_t i) {
  return static_cast<double>(mix64(seed + (i + 1) * kGoldenGamma) >> 11) * 0x1p-52 - 1;
}

/// Smooth in space, one cell a unit, in [-1, 1].
inline double smooth_noise(std::uint64_t seed, const Vec3& p) {
  std::array<std::int64_t, 3> cell;
  Vec3 t;
  for (std::size_t k = 0; k < 3; ++k) {
    const double low = std::floor(p[k]);
    cell[k] = static_cast<std::int64_t>(low);
    t[k] = p[k] - low;
    t[k] *= t[k] * (3 - 2 * t[k]);
  }
  double sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    std::uint64_t at = seed;
    double weight = 1;
    for (std::size_t k = 0; k < 3; ++k) {
      const bool upper = (corner >> k & 1) != 0;
      at = mix64(at + static_cast<std::uint64_t>(cell[k] + (upper ? 1 : 0)));
      weight *= upper ? t[k] : 1 - t[k];
    }
    sum += weight * random_pm1(at, 0);
  }
  return sum;
}

}  // namespace sinew

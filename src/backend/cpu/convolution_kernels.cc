#include "backend/cpu/convolution_kernels.h"

#include <algorithm>

namespace sinew::cpu {

std::int64_t vectors_for(std::int64_t count, std::int64_t lanes) { return (count + lanes - 1) / lanes; }

std::int64_t vector_start(std::int64_t vector, std::int64_t count, std::int64_t lanes) {
  return std::max<std::int64_t>(0, std::min(vector * lanes, count - lanes));
}

int panel_width(std::int64_t vector, std::int64_t vectors) {
  const std::int64_t left = vectors - vector;
  return left == 1 || left == 3 ? static_cast<int>(left) : 2;
}

Tensor pack_panels(const TensorView& weight, std::int64_t lanes) {
  const std::int64_t n = weight.shape[0];
  const std::int64_t k = weight.shape.count() / n;
  const std::int64_t vectors = vectors_for(n, lanes);
  const Tensor stored = convert(weight, DType::kF32);
  const std::span<const float> from = stored.as<float>();
  Tensor packed(DType::kF32, {vectors * lanes * k});  // zeros
  float* to = packed.as<float>().data();
  for (std::int64_t v = 0; v < vectors;) {
    const int width = panel_width(v, vectors);
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = v; j < v + width; ++j, to += lanes) {
        const std::int64_t start = vector_start(j, n, lanes);
        for (std::int64_t lane = 0; lane < std::min(lanes, n); ++lane) {
          to[lane] = from[static_cast<std::size_t>((start + lane) * k + i)];
        }
      }
    }
    v += width;
  }
  return packed;
}

Tensor pack_channel_blocks(const TensorView& weight, std::int64_t lanes) {
  const std::int64_t channels = weight.shape.back();
  const std::int64_t taps = weight.shape.count() / channels;
  const std::int64_t vectors = vectors_for(channels, lanes);
  const Tensor stored = convert(weight, DType::kF32);
  Tensor packed(DType::kF32, {vectors * lanes * taps});  // zeros
  for (std::int64_t v = 0; v < vectors; ++v) {
    const std::int64_t start = vector_start(v, channels, lanes);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::copy_n(stored.as<float>().data() + tap * channels + start, std::min(lanes, channels),
                  packed.as<float>().data() + (v * taps + tap) * lanes);
    }
  }
  return packed;
}

}  // namespace sinew::cpu

#include "backend/cpu/convolution_kernels.h"

#include <algorithm>

namespace sinew::cpu {

std::int64_t vectors_for(std::int64_t count, std::int64_t lanes) { return (count + lanes - 1) / lanes; }

std::int64_t vector_start(std::int64_t vector, std::int64_t count, std::int64_t lanes) {
  return std::max<std::int64_t>(0, std::min(vector * lanes, count - lanes));
}

std::int64_t panels_for(std::int64_t n, std::int64_t lanes) {
  return std::max<std::int64_t>(1, vectors_for(n, lanes) / 2);
}

Tensor pack_panels(const TensorView& weight, std::int64_t lanes) {
  const std::int64_t n = weight.shape[0];
  const std::int64_t k = weight.shape.count() / n;
  const std::int64_t vectors = vectors_for(n, lanes);
  const Tensor stored = convert(weight, DType::kF32);
  const std::span<const float> from = stored.as<float>();
  Tensor packed(DType::kF32, {vectors * lanes * k});  // zeros
  float* to = packed.as<float>().data();
  const std::int64_t panels = panels_for(n, lanes);
  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t last = panel + 1 < panels ? 2 * panel + 2 : vectors;
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t v = 2 * panel; v < last; ++v, to += lanes) {
        const std::int64_t start = vector_start(v, n, lanes);
        for (std::int64_t lane = 0; lane < std::min(lanes, n); ++lane) {
          to[lane] = from[static_cast<std::size_t>((start + lane) * k + i)];
        }
      }
    }
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

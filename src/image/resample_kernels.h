// The two integer passes of resample(), in plain C++ and for AVX2. Internal to resample.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "image/resample.h"

namespace sinew::kernels {

inline constexpr std::int32_t kHalf = 1 << (AxisFilter::kWeightBits - 1);

/// Weights are not negative and sum to 2^22 give or take one per two taps, so that the result stays in 0..255
/// and sums in 31 bits; the clip is Pillow's.
inline std::uint8_t to_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> AxisFilter::kWeightBits, 0, 255));
}

/// One source row to columns.outputs() pixels.
class HorizontalPass {
 public:
  HorizontalPass(const AxisFilter& columns, const std::uint8_t pad[3], bool avx2);
  /// Writes 3 * outputs bytes and may touch the one after.
  void run(const Image& source, int y, std::uint8_t* out) const;

 private:
  /// Four taps of one output, as the multiply-add instruction wants them: lane 0 holds taps 0 and 1 in turn
  /// for r, g, b and nothing, lane 1 taps 2 and 3. A weight of up to 2^22 is split into 2^11 * high + low,
  /// both of which fit 16 bits with their sign.
  struct alignas(32) Quad {
    std::int16_t high[16];
    std::int16_t low[16];
  };
  void run_plain(const std::uint8_t* row, std::uint8_t* out) const;
  void run_avx2(const std::uint8_t* row, std::uint8_t* out) const;
  void pack();

  const AxisFilter& columns_;
  bool avx2_;
  std::vector<std::int32_t> bias_;  // outputs x 4: half plus the padding's share, per channel
  std::vector<Quad> quads_;
  std::vector<int> quad_begin_;             // outputs + 1
  mutable std::vector<std::uint8_t> tail_;  // the last rows again, with room to read past the end
};

/// One output row from weighted input rows; padding is an input row like the others.
struct VerticalRow {
  const std::uint8_t* const* lines;
  const std::int32_t* weights;
  int count;
  std::size_t bytes;  // of each row
};
void vertical(const VerticalRow& row, std::uint8_t* out, bool avx2);

}  // namespace sinew::kernels

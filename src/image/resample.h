// The arithmetic of Pillow's BILINEAR filter, shared by resize_bilinear() and crop_pillow(): weights for one
// axis, and the two integer passes (spec hamer 4). Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/image.h"

namespace sinew {

/// For each output of one axis: a window of source positions and their weights, scaled by 2^22.
struct AxisFilter {
  static constexpr int kWeightBits = 22;  // Pillow's PRECISION_BITS for 8-bit pixels

  int taps = 0;                       // row length of `weights`; weights beyond `count` are 0
  std::vector<int> first;             // per output: first source position
  std::vector<int> count;             // per output: how many source positions, 0 when all lie outside
  std::vector<std::int32_t> weights;  // outputs x taps
  std::vector<std::int32_t> outside;  // per output: weight of positions that place_in_frame() found outside

  int outputs() const { return static_cast<int>(first.size()); }
  const std::int32_t* row(int output) const { return &weights[static_cast<std::size_t>(output) * taps]; }
  std::int32_t* row(int output) { return &weights[static_cast<std::size_t>(output) * taps]; }
};

/// Triangle filter from [start, end) of an axis of `source` pixels to `outputs` pixels; its support is one
/// output pixel when shrinking and one source pixel when growing.
AxisFilter triangle_filter(int source, float start, float end, int outputs);

/// Says that position 0 of the filter's source axis is position `offset` of a frame axis of `extent` pixels:
/// windows are moved there and clipped, and the weight that lies outside is kept in `outside`, so that
/// padding costs one multiplication.
void place_in_frame(AxisFilter& filter, std::int64_t offset, int extent);

/// Output k takes the place of output (last - k): a mirrored result.
void mirror_outputs(AxisFilter& filter);

/// Rows first to last+1 of `source` through `columns` into 8 bits, then through `rows` into `out`
/// (rows.outputs() x columns.outputs() x 3). Positions outside the frame have the colour `pad`. Equal, bit
/// for bit, to pasting the frame on a padded canvas and letting Pillow resize that: the passes are sums of
/// integers, whose order does not matter.
void resample(const Image& source, const AxisFilter& columns, const AxisFilter& rows,
              const std::uint8_t pad[3], std::uint8_t* out);

}  // namespace sinew

// Family: from pixels to patches.
#pragma once

#include "program/program.h"

namespace sinew {

/// Geometry shared by the ops of this family: square patches side by side, zero padding on all four sides.
struct PatchGrid {
  std::int64_t patch = 0;    // side of a patch, and the stride
  std::int64_t padding = 0;  // pixels of zeros on each side
  /// Patches along an axis of `extent` pixels: floor((extent + 2 padding - patch) / patch) + 1.
  std::int64_t count(std::int64_t extent) const { return (extent + 2 * padding - patch) / patch + 1; }
};

/// out[t, j]: t = grid row-major patch, j = channel*patch^2 + row*patch + column inside the padded patch
/// (im2col). image [channels,rows,columns] f32 (f64), or u8; then `offset` (one number per channel) is
/// subtracted from pixels inside the image, and the padding stays 0. out [patches, channels*patch^2], f32 or
/// bf16 (f64). Integers in [-255, 255] are exact in bf16.
struct PatchColumns final : Op {
  ValueId image, out;
  PatchGrid grid;
  std::vector<int> offset;  // empty for float images

  std::string_view name() const override { return "patch_columns"; }
  std::vector<ValueId> inputs() const override { return {image}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program&) const override { return {}; }
  std::string attributes() const override;
};

/// The plain form: a strided convolution of image [channels,rows,columns] with weight
/// [N,channels,patch,patch] and bias [N], tokens row-major: out [patches,N]. All f32 (f64, the weight of any
/// float type then).
struct PatchConvolution final : Op {
  ValueId image, weight, bias, out;
  PatchGrid grid;

  std::string_view name() const override { return "patch_convolution"; }
  std::vector<ValueId> inputs() const override { return {image, weight, bias}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

}  // namespace sinew

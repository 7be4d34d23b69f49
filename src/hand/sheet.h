// One hand in four panels, as the original demo shows it: photo, mesh over it, mesh from its side, skeleton.
#pragma once

#include "hand/hand_model.h"
#include "hand/pipeline.h"

namespace sinew {

struct SheetOptions {
  int side = 384;     // pixels of a panel, 16 to 2048
  double zoom = 1.4;  // 1 shows the crop's square, in which the hand's box is half as high; up to 4
};

inline constexpr int kSheetGap = 4;  // white, between panels

/// The square of result.geometry, narrower by `zoom`, grey where it leaves the frame, in panels side by side:
///   1. the photo; 2. the shaded mesh over it; 3. the mesh on white from its side, the palm's right in a
///   picture of a right hand's palm; 4. the skeleton over the dimmed photo.
/// A left hand is seen from the other side, so that the mirrored hand of a mirrored frame gives the panels'
/// mirror images (1 and 4 to the rounding of the resampler, the meshes exactly). Without a mesh (`model`
/// null, or no vertices) panels 1 and 4 alone. Throws Error (kUsage): no pixels in the frame, a side or zoom
/// out of range, a square that is not finite or has no size.
Image draw_sheet(const Image& frame, const HandResult& result, const HandModel* model,
                 const SheetOptions& options = {});

}  // namespace sinew

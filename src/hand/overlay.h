// What is shown of hands over their photo: shaded meshes, skeletons, boxes.
#pragma once

#include <span>

#include "hand/mesh.h"
#include "hand/pipeline.h"
#include "hand/rasterise.h"

namespace sinew {

/// The posed mesh as it stands in the frame, before cam_t_full; `model` is the one that posed it.
Mesh mesh_of(const HandResult& result, const HandModel& model);

/// The camera that renders what lies in the square of the frame from (x0, y0) on, magnified `scale` times.
PinholeCamera render_camera(const Intrinsics& camera, double x0 = 0, double y0 = 0, double scale = 1);

/// Draws the shaded mesh over the frame; nothing when the result has none.
void draw_mesh(Image& frame, const HandResult& result, const HandModel& model);

/// Draws the 21 points, which count as joints_2d do, and their bones, one colour a finger; `width` is that of
/// a bone in pixels.
void draw_skeleton(Image& image, std::array<Vec2, kHandKeypoints> points, double width);

/// Draws the box and the skeleton over the frame.
void draw_hand(Image& frame, const HandResult& result);

/// All hands of one photo as the original's full-frame picture: one scene, so that nearer hands hide farther
/// ones. Hands without a mesh (or all, when `model` is null) get their skeleton. `boxes` adds the boxes,
/// green for right hands, red for left ones. Throws Error (kMismatch) when the results have different
/// cameras.
void draw_all(Image& frame, std::span<const HandResult> results, const HandModel* model, bool boxes = false);

}  // namespace sinew

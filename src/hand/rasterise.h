// Shaded meshes as pictures: a software rasteriser with perspective, depth and smooth edges.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "hand/camera.h"
#include "hand/mesh.h"
#include "tensor/image.h"

namespace sinew {

/// A point (x, y, z) is seen at (fx x/z + cx, fy y/z + cy) pixels; x right, y down, z away. Pixel i covers
/// [i, i+1), so W/2 is the middle of a picture of width W, as in the original's renderer.
struct PinholeCamera {
  double fx = 0, fy = 0, cx = 0, cy = 0;  // pixels
  double near = 1e-3;                     // metres; nearer parts are cut off
};

/// The camera of project() in hand/camera.h.
PinholeCamera centred_camera(double focal_px, int width, int height);

/// The original's light blue, sRGB 0..1 (spec hamer 5.5).
inline constexpr Vec3f kHandColour = {0.65098039F, 0.74117647F, 0.85882353F};

/// A mesh where it stands; `mesh` and `colours` must outlive the call.
struct MeshInstance {
  const Mesh* mesh = nullptr;
  Vec3 translation{};  // metres, cam_t_full of a hand
  Vec3f colour = kHandColour;
  /// Where given: a colour for each vertex (0..1, linear in space between them), drawn as it is, without
  /// light; `colour` is not used.
  const std::vector<Vec3f>* colours = nullptr;
};

/// Columns x0..x1-1 of rows y0..y1-1.
struct PixelRect {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

/// What was rendered, apart from any background. Row 0 on top.
struct Layer {
  static constexpr float kNothing = std::numeric_limits<float>::infinity();
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;  // 4 per pixel, not premultiplied; alpha is the covered part of the pixel
  std::vector<float>
      depth;        // z in metres of the nearest thing seen in the pixel, kNothing where there is none
  PixelRect drawn;  // beyond it nothing is: rgba 0, depth kNothing

  const std::uint8_t* pixel(int x, int y) const {
    return &rgba[4 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                      static_cast<std::size_t>(x))];
  }
  float depth_at(int x, int y) const {
    return depth[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
  }
};

/// All meshes in one picture, hidden parts resolved at eight samples per pixel, shaded with smooth normals
/// from both sides: ambient 0.3 and three lights, so that a surface that faces the camera has its own colour.
/// Deterministic, and exact under mirroring: mirrored meshes, negated translation[0] and width - cx give the
/// mirrored picture bit for bit (where nothing crosses the near plane). Faces with vertices that are missing,
/// not finite or out of sight draw nothing. Memory: 8 bytes per pixel, about 250 per visible face. Throws
/// Error (kUsage): a side outside 1..16384, a camera that is not finite or has no focal length, a non-finite
/// translation or colour, colours that do not fit the vertices; (kLimit) more than 2^31 triangles.
Layer render(const std::vector<MeshInstance>& meshes, const PinholeCamera& camera, int width, int height);
/// The same into a layer that the caller keeps: of the same size as before, only `drawn` is cleared. At 640 x
/// 480 the pages of a new layer cost as much as a third of the drawing.
void render_into(Layer& layer, const std::vector<MeshInstance>& meshes, const PinholeCamera& camera,
                 int width, int height);

/// image * (1 - alpha) + layer * alpha. Throws Error (kMismatch) when the sizes differ.
void compose(Image& image, const Layer& layer);
/// The layer over a plain colour.
Image on_background(const Layer& layer, const std::array<std::uint8_t, 3>& colour = {255, 255, 255});
/// The mesh seen from its side: turned_sideways() where it stands, on white. Errors as render().
Image render_side_view(const MeshInstance& instance, const PinholeCamera& camera, int width, int height);

}  // namespace sinew

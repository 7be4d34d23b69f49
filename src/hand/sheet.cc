#include "hand/sheet.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "hand/overlay.h"
#include "hand/rasterise.h"
#include "image/crop.h"
#include "image/resize.h"

namespace sinew {
namespace {

/// A square of the frame, in pixels from the frame's corner, and its magnification.
struct Square {
  double x0, y0, scale;
};

Square square_of(const Image& frame, const HandResult& result, const SheetOptions& options) {
  check_frame(frame);
  if (options.side < 16 || options.side > 2048) {
    throw fail(ErrorCode::kUsage, "a sheet with panels of {} pixels: 16 to 2048 are possible", options.side);
  }
  if (!(options.zoom >= 1 && options.zoom <= 4)) {
    throw fail(ErrorCode::kUsage, "a sheet's zoom of {}: 1 to 4 are possible", options.zoom);
  }
  const CropGeometry& g = result.geometry;
  // Written so that NaN fails.
  if (!(g.box_size > 0 && g.box_size <= kMaxSquareSide && std::abs(g.center_x) <= 1e6F &&
        std::abs(g.center_y) <= 1e6F)) {
    throw fail(ErrorCode::kUsage, "a sheet of a square of {} pixels about ({}, {})", g.box_size, g.center_x,
               g.center_y);
  }
  const double size = g.box_size / options.zoom;
  return {g.center_x - size / 2, g.center_y - size / 2, options.side / size};
}

/// The panel's pixels that meet the frame along one axis, and what they show of it.
struct Stretch {
  int first, last;  // panel pixels, last exclusive
  double from, to;  // frame pixels
};

Stretch stretch(double start, const Square& square, int frame, int side) {
  const auto panel = [&](double at) {
    return std::clamp((at - start) * square.scale, 0.0, static_cast<double>(side));
  };
  // Rounded to the nearest: a panel pixel at the frame's edge is photo or grey, whichever is more of it.
  Stretch out = {static_cast<int>(std::lround(panel(0))), static_cast<int>(std::lround(panel(frame))), 0, 0};
  out.from = std::clamp(start + out.first / square.scale, 0.0, static_cast<double>(frame));
  out.to = std::clamp(start + out.last / square.scale, 0.0, static_cast<double>(frame));
  return out;
}

/// Only the part within the frame is resampled: the square may be a thousand times its size.
Image photo_panel(const Image& frame, const Square& square, int side) {
  Image panel(side, side);
  for (std::size_t i = 0; i < panel.rgb.size(); ++i) panel.rgb[i] = kGreyPad[i % 3];
  const Stretch across = stretch(square.x0, square, frame.width, side);
  const Stretch down = stretch(square.y0, square, frame.height, side);
  if (across.first >= across.last || down.first >= down.last || across.from >= across.to ||
      down.from >= down.to) {
    return panel;
  }
  const Image part = resize_bilinear(frame, across.last - across.first, down.last - down.first,
                                     {across.from, down.from, across.to, down.to});
  for (int y = 0; y < part.height; ++y) {
    std::copy_n(part.pixel(0, y), std::size_t{3} * static_cast<std::size_t>(part.width),
                panel.pixel(across.first, down.first + y));
  }
  return panel;
}

Image side_panel(const HandResult& result, const Mesh& mesh, const PinholeCamera& camera, int side) {
  if (result.box.is_right) return render_side_view({&mesh, result.cam_t_full}, camera, side, side);
  const Mesh turned = mirrored(turned_sideways(mirrored(mesh)));
  return on_background(render({{&turned, result.cam_t_full}}, camera, side, side));
}

Image skeleton_panel(Image photo, const HandResult& result, const Square& square, int side) {
  for (std::uint8_t& v : photo.rgb) v = static_cast<std::uint8_t>(v * 9 / 20);
  std::array<Vec2, kHandKeypoints> points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i] = {(result.joints_2d[i][0] - square.x0) * square.scale,
                 (result.joints_2d[i][1] - square.y0) * square.scale};
  }
  draw_skeleton(photo, points, std::clamp(side / 110.0, 1.0, 6.0));
  return photo;
}

Image side_by_side(const std::vector<Image>& panels) {
  const int side = panels.front().width;
  const auto count = static_cast<int>(panels.size());
  Image out(count * side + (count - 1) * kSheetGap, side);
  std::ranges::fill(out.rgb, std::uint8_t{255});
  for (int i = 0; i < count; ++i) {
    for (int y = 0; y < side; ++y) {
      std::copy_n(panels[static_cast<std::size_t>(i)].pixel(0, y),
                  std::size_t{3} * static_cast<std::size_t>(side), out.pixel(i * (side + kSheetGap), y));
    }
  }
  return out;
}

}  // namespace

Image draw_sheet(const Image& frame, const HandResult& result, const HandModel* model,
                 const SheetOptions& options) {
  const int side = options.side;
  const Square square = square_of(frame, result, options);
  std::vector<Image> panels = {photo_panel(frame, square, side)};
  if (model != nullptr && !result.vertices.empty()) {
    const Mesh mesh = mesh_of(result, *model);
    const PinholeCamera camera = render_camera(result.camera, square.x0, square.y0, square.scale);
    Image overlay = panels.front();
    compose(overlay, render({{&mesh, result.cam_t_full}}, camera, side, side));
    panels.push_back(std::move(overlay));
    panels.push_back(side_panel(result, mesh, camera, side));
  }
  panels.push_back(skeleton_panel(panels.front(), result, square, side));
  return side_by_side(panels);
}

}  // namespace sinew

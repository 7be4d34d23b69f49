#include "hand/rasterise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.h"
#include "hand/raster_tile.h"
#include "hand/raster_triangle.h"

namespace sinew {
namespace {

constexpr int kMostPixels = 16384;  // a side, as ImageLimits; also what raster::kGuardPixels was chosen for
constexpr double kMostFocal = 1e9;  // pixels, and of the principal point

void check(const std::vector<MeshInstance>& meshes, const PinholeCamera& camera, int width, int height) {
  if (width < 1 || height < 1 || width > kMostPixels || height > kMostPixels) {
    throw fail(ErrorCode::kUsage, "rendering {} x {} pixels: sides go from 1 to {}", width, height,
               kMostPixels);
  }
  // Written so that NaN fails.
  const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
  if (!within(camera.fx, 1e-9, kMostFocal) || !within(camera.fy, 1e-9, kMostFocal) ||
      !within(camera.cx, -kMostFocal, kMostFocal) || !within(camera.cy, -kMostFocal, kMostFocal) ||
      !within(camera.near, 1e-9, 1e9)) {
    throw fail(ErrorCode::kUsage,
               "camera fx {} fy {} cx {} cy {} near {}: expected finite numbers and positive focal lengths",
               camera.fx, camera.fy, camera.cx, camera.cy, camera.near);
  }
  for (const MeshInstance& instance : meshes) {
    const bool sound = std::ranges::all_of(instance.translation, [](double v) { return std::isfinite(v); }) &&
                       std::ranges::all_of(instance.colour, [](float v) { return std::isfinite(v); });
    if (!sound) throw fail(ErrorCode::kUsage, "a mesh's translation or colour is not finite");
  }
}

/// The tiles that a triangle's box meets.
struct Tiles {
  int first_row, last_row, first_column, last_column;
  bool is_front;
  std::int32_t triangle;
};

Tiles tiles_of(const raster::Triangle& triangle, std::int32_t number, const raster::Frame& frame) {
  constexpr std::int64_t kUnitsPerTile = std::int64_t{raster::kTile} * raster::kUnits;
  const auto tile = [](std::int64_t units, int side) {
    const std::int64_t from_edge = units + std::int64_t{raster::kUnits / 2} * side;
    // Beyond the picture on the left the answer may be -1 instead of less.
    return static_cast<int>(from_edge < 0 ? -1 : from_edge / kUnitsPerTile);
  };
  const auto [left, right] = std::ranges::minmax(triangle.x);
  const auto [top, bottom] = std::ranges::minmax(triangle.y);
  return {tile(top, frame.height),  tile(bottom, frame.height), tile(left, frame.width),
          tile(right, frame.width), triangle.is_front,          number};
}

void draw_tile(const std::vector<raster::Triangle>& triangles, const std::vector<Tiles>& active,
               const std::vector<raster::Shader>& shaders, int x, int y, const raster::Frame& frame,
               raster::Tile& tile, Layer& layer) {
  const int column = x / raster::kTile;
  bool started = false;
  // Inner sides are mostly hidden by outer ones; after them they are refused pixel by pixel, which is
  // cheaper.
  for (const bool front : {true, false}) {
    for (const Tiles& box : active) {
      if (box.is_front != front || column < box.first_column || column > box.last_column) continue;
      if (!started) tile.start(frame, x, y);
      started = true;
      tile.draw(triangles[static_cast<std::size_t>(box.triangle)], box.triangle);
    }
  }
  if (started) tile.resolve(shaders, layer);
}

/// Tile row after tile row, so that memory is that of one tile and a list of the triangles of one row.
void draw(const std::vector<raster::Triangle>& triangles, const std::vector<MeshInstance>& meshes,
          const raster::Frame& frame, Layer& layer) {
  std::vector<raster::Shader> shaders;
  shaders.reserve(triangles.size());
  for (const raster::Triangle& t : triangles) shaders.emplace_back(t, meshes[t.instance].colour);
  std::vector<Tiles> waiting;
  waiting.reserve(triangles.size());
  for (std::size_t i = 0; i < triangles.size(); ++i) {
    waiting.push_back(tiles_of(triangles[i], static_cast<std::int32_t>(i), frame));
  }
  std::ranges::sort(waiting, {}, [](const Tiles& box) { return std::pair(box.first_row, box.triangle); });
  std::vector<Tiles> active;
  auto next = waiting.begin();
  const auto tile = std::make_unique<raster::Tile>();
  for (int y = 0; y < frame.height; y += raster::kTile) {
    const int row = y / raster::kTile;
    std::erase_if(active, [&](const Tiles& box) { return box.last_row < row; });
    for (; next != waiting.end() && next->first_row <= row; ++next) {
      if (next->last_row >= row) active.push_back(*next);
    }
    if (active.empty()) continue;
    for (int x = 0; x < frame.width; x += raster::kTile)
      draw_tile(triangles, active, shaders, x, y, frame, *tile, layer);
  }
}

}  // namespace

PinholeCamera centred_camera(double focal_px, int width, int height) {
  return {focal_px, focal_px, width / 2.0, height / 2.0};
}

Layer render(const std::vector<MeshInstance>& meshes, const PinholeCamera& camera, int width, int height) {
  check(meshes, camera, width, height);
  Layer layer;
  layer.width = width;
  layer.height = height;
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  layer.rgba.resize(4 * pixels);
  layer.depth.resize(pixels, Layer::kNothing);
  const raster::Frame frame{width, height, camera};
  std::vector<raster::Triangle> triangles;
  for (std::size_t i = 0; i < meshes.size(); ++i) {
    if (meshes[i].mesh != nullptr) {
      raster::project_faces(meshes[i], static_cast<std::uint32_t>(i), frame, triangles);
    }
  }
  if (triangles.size() > std::numeric_limits<std::int32_t>::max()) {
    throw fail(ErrorCode::kLimit, "rendering {} triangles: at most 2^31 - 1", triangles.size());
  }
  draw(triangles, meshes, frame, layer);
  return layer;
}

void compose(Image& image, const Layer& layer) {
  if (image.width != layer.width || image.height != layer.height) {
    throw fail(ErrorCode::kMismatch, "a layer of {} x {} pixels over a picture of {} x {}", layer.width,
               layer.height, image.width, image.height);
  }
  const std::size_t pixels = layer.depth.size();
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* over = &layer.rgba[4 * i];
    const unsigned alpha = over[3];
    if (alpha == 0) continue;
    std::uint8_t* under = &image.rgb[3 * i];
    for (std::size_t k = 0; k < 3; ++k) {
      under[k] = static_cast<std::uint8_t>((under[k] * (255 - alpha) + over[k] * alpha + 127) / 255);
    }
  }
}

Image on_background(const Layer& layer, const std::array<std::uint8_t, 3>& colour) {
  Image out(layer.width, layer.height);
  for (std::size_t i = 0; i < out.rgb.size(); ++i) out.rgb[i] = colour[i % 3];
  compose(out, layer);
  return out;
}

Image render_side_view(const MeshInstance& instance, const PinholeCamera& camera, int width, int height) {
  Mesh turned;
  if (instance.mesh != nullptr) turned = turned_sideways(*instance.mesh);
  MeshInstance side = instance;
  side.mesh = &turned;
  return on_background(render({side}, camera, width, height));
}

}  // namespace sinew

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

void check_colours(const Mesh& mesh, const std::vector<Vec3f>& colours) {
  if (colours.size() != mesh.vertices.size()) {
    throw fail(ErrorCode::kUsage, "{} colours for a mesh of {} vertices: expected one for each",
               colours.size(), mesh.vertices.size());
  }
  for (std::size_t v = 0; v < colours.size(); ++v) {
    if (!std::ranges::all_of(colours[v], [](float c) { return std::isfinite(c); })) {
      throw fail(ErrorCode::kUsage, "the colour of vertex {} is not finite", v);
    }
  }
}

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
    if (instance.mesh != nullptr && instance.colours != nullptr) {
      check_colours(*instance.mesh, *instance.colours);
    }
  }
}

/// The tiles that a triangle's box meets.
struct Tiles {
  int first_row, last_row, first_column, last_column;
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
  return {tile(top, frame.height), tile(bottom, frame.height), tile(left, frame.width),
          tile(right, frame.width), number};
}

/// Triangles of one side (front or back) that wait for their first row of tiles, and those that meet the
/// present one.
class Queue {
 public:
  Queue(const std::vector<raster::Triangle>& triangles, bool front, const raster::Frame& frame, int rows)
      : first_(static_cast<std::size_t>(rows) + 1) {
    std::vector<Tiles> found;
    found.reserve(triangles.size());
    for (std::size_t i = 0; i < triangles.size(); ++i) {
      if (triangles[i].is_front != front) continue;
      Tiles box = tiles_of(triangles[i], static_cast<std::int32_t>(i), frame);
      if (box.last_row < 0 || box.first_row >= rows || box.last_column < 0) continue;
      box.first_row = std::max(box.first_row, 0);
      box.first_column = std::max(box.first_column, 0);
      ++first_[static_cast<std::size_t>(box.first_row) + 1];
      found.push_back(box);
    }
    // Sorted by row, in a row by number.
    for (std::size_t row = 1; row < first_.size(); ++row) first_[row] += first_[row - 1];
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    by_row_.resize(found.size());
    for (const Tiles& box : found) by_row_[next[static_cast<std::size_t>(box.first_row)]++] = box;
  }

  /// Rows come one after another from 0 on.
  void enter(int row) {
    std::erase_if(active_, [&](const Tiles& box) { return box.last_row < row; });
    const auto at = [&](int r) {
      return by_row_.begin() + static_cast<std::ptrdiff_t>(first_[static_cast<std::size_t>(r)]);
    };
    active_.insert(active_.end(), at(row), at(row + 1));
  }
  const std::vector<Tiles>& active() const { return active_; }

 private:
  std::vector<std::size_t> first_;  // [rows + 1] into by_row_
  std::vector<Tiles> by_row_;
  std::vector<Tiles> active_;
};

/// Tile row after tile row, so that memory is that of one tile and lists of the triangles of one row.
class Painter {
 public:
  Painter(const std::vector<raster::Triangle>& triangles, const std::vector<MeshInstance>& meshes,
          const raster::Frame& frame, Layer& layer)
      : triangles_(triangles),
        frame_(frame),
        layer_(layer),
        rows_(tiles(frame.height)),
        // Inner sides are mostly hidden by outer ones; after them they are refused pixel by pixel, which is
        // cheaper.
        queues_{Queue(triangles, true, frame, rows_), Queue(triangles, false, frame, rows_)} {
    shaders_.reserve(triangles.size());
    for (const raster::Triangle& t : triangles) shaders_.emplace_back(t, meshes[t.instance].colour);
  }

  void draw() {
    for (int row = 0; row < rows_; ++row) {
      int first = tiles(frame_.width);
      int last = -1;
      for (Queue& queue : queues_) {
        queue.enter(row);
        for (const Tiles& box : queue.active()) {
          first = std::min(first, box.first_column);
          last = std::max(last, box.last_column);
        }
      }
      last = std::min(last, tiles(frame_.width) - 1);
      for (int column = first; column <= last; ++column) draw_tile(row, column);
    }
  }

 private:
  static int tiles(int pixels) { return (pixels + raster::kTile - 1) / raster::kTile; }

  void draw_tile(int row, int column) {
    const int x = column * raster::kTile;
    const int y = row * raster::kTile;
    bool started = false;
    for (const Queue& queue : queues_) {
      for (const Tiles& box : queue.active()) {
        if (column < box.first_column || column > box.last_column) continue;
        if (!started) tile_->start(frame_, x, y);
        started = true;
        tile_->draw(triangles_[static_cast<std::size_t>(box.triangle)], box.triangle);
      }
    }
    if (!started) return;
    tile_->resolve(shaders_, layer_);
    PixelRect& drawn = layer_.drawn;
    if (drawn.x0 == drawn.x1) drawn = {x, y, x, y};
    drawn = {std::min(drawn.x0, x), std::min(drawn.y0, y),
             std::min(std::max(drawn.x1, x + raster::kTile), frame_.width),
             std::min(std::max(drawn.y1, y + raster::kTile), frame_.height)};
  }

  const std::vector<raster::Triangle>& triangles_;
  const raster::Frame& frame_;
  Layer& layer_;
  int rows_;
  std::array<Queue, 2> queues_;
  std::vector<raster::Shader> shaders_;
  std::unique_ptr<raster::Tile> tile_ = std::make_unique<raster::Tile>();
};

/// An empty layer of this size.
void clear(Layer& layer, int width, int height) {
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  if (layer.width != width || layer.height != height || layer.depth.size() != pixels ||
      layer.rgba.size() != 4 * pixels) {
    layer.width = width;
    layer.height = height;
    layer.rgba.assign(4 * pixels, 0);
    layer.depth.assign(pixels, Layer::kNothing);
  } else {
    const auto columns = static_cast<std::size_t>(layer.drawn.x1 - layer.drawn.x0);
    for (int y = layer.drawn.y0; y < layer.drawn.y1; ++y) {
      const std::size_t at = static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                             static_cast<std::size_t>(layer.drawn.x0);
      std::fill_n(&layer.rgba[4 * at], 4 * columns, std::uint8_t{0});
      std::fill_n(&layer.depth[at], columns, Layer::kNothing);
    }
  }
  layer.drawn = {};
}

}  // namespace

PinholeCamera centred_camera(double focal_px, int width, int height) {
  return {focal_px, focal_px, width / 2.0, height / 2.0};
}

Layer render(const std::vector<MeshInstance>& meshes, const PinholeCamera& camera, int width, int height) {
  Layer layer;
  render_into(layer, meshes, camera, width, height);
  return layer;
}

void render_into(Layer& layer, const std::vector<MeshInstance>& meshes, const PinholeCamera& camera,
                 int width, int height) {
  check(meshes, camera, width, height);
  clear(layer, width, height);
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
  if (!triangles.empty()) Painter(triangles, meshes, frame, layer).draw();
}

void compose(Image& image, const Layer& layer) {
  if (image.width != layer.width || image.height != layer.height) {
    throw fail(ErrorCode::kMismatch, "a layer of {} x {} pixels over a picture of {} x {}", layer.width,
               layer.height, image.width, image.height);
  }
  for (int y = layer.drawn.y0; y < layer.drawn.y1; ++y) {
    for (int x = layer.drawn.x0; x < layer.drawn.x1; ++x) {
      const std::uint8_t* over = layer.pixel(x, y);
      const unsigned alpha = over[3];
      if (alpha == 0) continue;
      std::uint8_t* under = image.pixel(x, y);
      for (std::size_t k = 0; k < 3; ++k) {
        under[k] = static_cast<std::uint8_t>((under[k] * (255 - alpha) + over[k] * alpha + 127) / 255);
      }
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

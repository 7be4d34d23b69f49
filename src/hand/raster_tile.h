// Inside the rasteriser: one tile of the picture, where samples compete for the nearest triangle.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hand/raster_shade.h"
#include "hand/raster_triangle.h"
#include "hand/raster_vector.h"

namespace sinew::raster {

/// Eight samples per pixel, units from its centre: a 4 x 4 grid without its diagonals, once around. Mirrored
/// in x it is itself, and every step of 1/8 of coverage shows on edges that are nearly upright or level. 63
/// and 191 (an eighth and three eighths, nearly) are odd, so a sample never lies on an upright edge; ties on
/// other edges go to the triangle below the edge, which mirroring does not change. So shared edges have
/// neither gaps nor double coverage, and mirrored meshes give mirrored pictures, to the bit.
inline constexpr int kSampleCount = 8;
inline constexpr std::array<std::array<int, 2>, kSampleCount> kSamples = {
    {{-63, -191}, {63, -191}, {191, -63}, {191, 63}, {63, 191}, {-63, 191}, {-191, 63}, {-191, -63}}};

/// 64 KB of samples, which stay in the second cache while the triangles of the tile pass.
inline constexpr int kTile = 32;

class Tile {
 public:
  /// Starts over at a place of the frame, in pixels.
  void start(const Frame& frame, int x, int y);
  /// `number` is what resolve() finds the triangle by, less than 2^31.
  void draw(const Triangle& triangle, std::int32_t number);
  /// Shades and averages the samples into the layer's pixels; `shaders` by number of triangle.
  void resolve(std::span<const Shader> shaders, Layer& layer) const;

 private:
  static constexpr std::int32_t kNone = -1;
  struct Samples {
    std::array<Floats, 2> inverse_z;  // 0 where nothing was drawn
    std::array<Words, 2> number;

    float nearest() const;
    float farthest() const;
    /// The triangle that has all samples, or kNone.
    std::int32_t only() const;
  };
  /// Pixels of the tile that a triangle can touch; empty when first > last.
  struct Box {
    int first_column, last_column, first_row, last_row;
  };
  struct Setup;

  /// Units from the middle of the picture to the centre of a pixel of the tile.
  std::int64_t centre_x(int column) const { return first_x_ + std::int64_t{kUnits} * column; }
  std::int64_t centre_y(int row) const { return first_y_ + std::int64_t{kUnits} * row; }
  Box box_of(const Triangle& triangle) const;
  /// True when all samples there are nearer, or there are none.
  bool hides(const Box& box, float inverse_z) const;
  void draw_row(const Setup& setup, int row, std::int32_t number);
  /// Pixels that lie within one triangle, from `column` on; returns the first column that does not.
  int resolve_run(std::span<const Shader> shaders, int row, int column, Layer& layer) const;
  void resolve_mixed(std::span<const Shader> shaders, int row, int column, Layer& layer) const;
  const Samples& at(int row, int column) const {
    return pixels_[static_cast<std::size_t>(row) * kTile + static_cast<std::size_t>(column)];
  }
  std::size_t index(const Layer& layer, int row, int column) const;

  std::array<Samples, std::size_t{kTile} * kTile> pixels_;
  std::array<float, std::size_t{kTile} * kTile> farthest_;  // inverse z, of each pixel's samples
  int x_ = 0, y_ = 0;                                       // pixels of the frame
  int columns_ = 0, rows_ = 0;              // less than kTile at the right and bottom of the frame
  std::int64_t first_x_ = 0, first_y_ = 0;  // units
};

}  // namespace sinew::raster

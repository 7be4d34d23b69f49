// Inside the rasteriser: one tile of the picture, where samples compete for the nearest triangle.
#pragma once

#include <algorithm>
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

inline constexpr int kReach = 191;  // of the samples, from the pixel's centre
inline constexpr int kShortReach = 63;

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

    float nearest() const {
      const Floats most = larger(inverse_z[0], inverse_z[1]);
      return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
    }
    float farthest() const {
      const Floats least = smaller(inverse_z[0], inverse_z[1]);
      return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
    }
    /// Bit s: sample s is of this triangle.
    unsigned samples_of(std::int32_t triangle) const;
  };
  /// Pixels of the tile that a triangle can touch; empty when first > last.
  struct Box {
    int first_column, last_column, first_row, last_row;
  };
  /// Inverse z over the screen, linear.
  struct Depth {
    double at_vertex, slope_x, slope_y;  // of vertex 0, per unit
    std::int64_t x0, y0;                 // of vertex 0
    float nearest, farthest;             // of the vertices
    std::array<Floats, 2> offset;        // of the samples
    float reach = 0;                     // the largest offset

    explicit Depth(const Triangle& t);
    double at_row(std::int64_t y) const { return at_vertex + slope_y * static_cast<double>(y - y0); }
  };
  struct Setup;
  struct SmallSetup;

  /// Units from the middle of the picture to the centre of a pixel of the tile.
  std::int64_t centre_x(int column) const { return first_x_ + std::int64_t{kUnits} * column; }
  std::int64_t centre_y(int row) const { return first_y_ + std::int64_t{kUnits} * row; }
  Box box_of(const Triangle& triangle) const;
  /// True when all samples there are nearer, or there are none.
  bool hides(const Box& box, float inverse_z) const;
  /// Triangles that fit into 32 bits, nearly all of a hand's.
  void draw_small(const Triangle& triangle, const Box& box, std::int32_t number);
  void draw_row(const Setup& setup, int row, std::int32_t number);
  /// Lets the samples of a triangle in, where they are nearer.
  void put(std::size_t at, std::size_t half, Floats inverse_z, Words mask, Words number) {
    Samples& pixel = pixels_[at];
    const Words visible = (inverse_z > pixel.inverse_z[half]) & mask;
    pixel.inverse_z[half] = choose(visible, inverse_z, pixel.inverse_z[half]);
    pixel.number[half] = (visible & number) | (~visible & pixel.number[half]);
  }
  /// The same for all samples of a pixel.
  void fill(std::size_t at, const Depth& depth, float centre, Words number) {
    for (std::size_t half = 0; half < 2; ++half) {
      put(at, half, all(centre) + depth.offset[half], Words{-1, -1, -1, -1}, number);
    }
    farthest_[at] = pixels_[at].farthest();
  }
  /// The parts of a row's pixels that belong to one triangle each, for the shader.
  struct Parts;
  void gather(std::span<const Shader> shaders, int row, Parts& parts) const;
  void write(int row, const Parts& parts, Layer& layer) const;
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

// The usual triangle: a few pixels, whose edges fit into 32 bits.
#include <algorithm>
#include <cstdlib>

#include "hand/raster_tile.h"

namespace sinew::raster {
namespace {

constexpr Floats samples(std::size_t axis, std::size_t half) {
  const auto at = [&](std::size_t i) { return static_cast<float>(kSamples[4 * half + i][axis]); };
  return Floats{at(0), at(1), at(2), at(3)};
}
constexpr std::array<Floats, 2> kSampleX = {samples(0, 0), samples(0, 1)};
constexpr std::array<Floats, 2> kSampleY = {samples(1, 0), samples(1, 1)};

}  // namespace

/// Tile::Setup in 32 bits: all sums stay below 2 * 60 * 61 * 512^2 + 2^24 < 2^31.
struct Tile::SmallSetup {
  std::array<std::int32_t, 3> value;           // at the centre of the box's first pixel
  std::array<std::int32_t, 3> step_x, step_y;  // per pixel
  std::array<std::array<Words, 2>, 3> offset;  // of the samples
  std::array<std::int32_t, 3> reach;           // the largest offset; the least is its negative

  SmallSetup(const Triangle& t, const Tile& tile, const Box& box) {
    for (std::size_t i = 0; i < 3; ++i) {
      const Edge edge = edge_of(t, i);
      // Inside is >= 0; a tie counts for the triangle below the edge only (dx > 0; dx = 0 has no ties).
      value[i] = static_cast<std::int32_t>(
          edge.at(tile.centre_x(box.first_column), tile.centre_y(box.first_row)) - (edge.dx > 0 ? 0 : 1));
      step_x[i] = static_cast<std::int32_t>(-edge.dy * kUnits);
      step_y[i] = static_cast<std::int32_t>(edge.dx * kUnits);
      // Whole numbers below 2^24: exact in float, which has the vector product that 32-bit numbers lack.
      const auto dx = static_cast<float>(edge.dx);
      const auto dy = static_cast<float>(edge.dy);
      for (std::size_t half = 0; half < 2; ++half) {
        offset[i][half] = __builtin_convertvector(dx * kSampleY[half] - dy * kSampleX[half], Words);
      }
      const std::int64_t wide = std::max(std::abs(edge.dx), std::abs(edge.dy));
      const std::int64_t narrow = std::min(std::abs(edge.dx), std::abs(edge.dy));
      reach[i] = static_cast<std::int32_t>(kReach * wide + kShortReach * narrow);
    }
  }

  using Values = std::array<std::int32_t, 3>;
  static void step(Values& here, const Values& by) {
    for (std::size_t i = 0; i < 3; ++i) here[i] += by[i];
  }
  bool is_outside(const Values& centre) const {
    return ((centre[0] + reach[0]) | (centre[1] + reach[1]) | (centre[2] + reach[2])) < 0;
  }
  bool is_whole(const Values& centre) const {
    return ((centre[0] - reach[0]) | (centre[1] - reach[1]) | (centre[2] - reach[2])) >= 0;
  }
  Words inside(const Values& centre, std::size_t half) const {
    const Words signs =
        (centre[0] + offset[0][half]) | (centre[1] + offset[1][half]) | (centre[2] + offset[2][half]);
    return ~(signs >> 31);
  }
};

void Tile::draw_small(const Triangle& triangle, const Box& box, std::int32_t number) {
  if (box.first_column > box.last_column || box.first_row > box.last_row) return;
  const SmallSetup setup(triangle, *this, box);
  const Depth depth(triangle);
  const Words numbers = {number, number, number, number};
  SmallSetup::Values row_value = setup.value;
  for (int row = box.first_row; row <= box.last_row; ++row, SmallSetup::step(row_value, setup.step_y)) {
    SmallSetup::Values value = row_value;
    const double row_z = depth.at_row(centre_y(row));
    // Counted in units from vertex 0, whole numbers: mirrored pixels get the same sums.
    auto right = static_cast<double>(centre_x(box.first_column) - depth.x0);
    std::size_t at = static_cast<std::size_t>(row) * kTile + static_cast<std::size_t>(box.first_column);
    bool entered = false;
    for (int column = box.first_column; column <= box.last_column;
         ++column, ++at, right += kUnits, SmallSetup::step(value, setup.step_x)) {
      if (setup.is_outside(value)) {
        if (entered) break;
        continue;
      }
      entered = true;
      const auto centre = static_cast<float>(row_z + depth.slope_x * right);
      if (setup.is_whole(value)) {
        if (centre + depth.reach > farthest_[at]) fill(at, depth, centre, numbers);
        continue;
      }
      // Triangles that are seen edge on are steep: no sample leaves the depths of the vertices.
      if (std::min(centre + depth.reach, depth.nearest) <= farthest_[at]) continue;
      for (std::size_t half = 0; half < 2; ++half) {
        const Floats here =
            smaller(larger(all(centre) + depth.offset[half], all(depth.farthest)), all(depth.nearest));
        put(at, half, here, setup.inside(value, half), numbers);
      }
      farthest_[at] = pixels_[at].farthest();
    }
  }
}

}  // namespace sinew::raster

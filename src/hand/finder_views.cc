#include "hand/finder_views.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>

#include "models/mediapipe/palm.h"

// Measured with MediaPipe's full networks (lite in brackets), two looks at each hand; a hand counts as found
// with an overlap of 0.5 and its side right.
//
// 96 close-ups (the 12 pictures of shared/data/hands cut to the hand with -2 to 25 % around, half of them
// mirrored): whole frame 63 (58), margin of 25 % 95 (92), of 50 % 95 (96), one after the other 96 (96). Black
// margins of 25 % give 93 (87): the edge is repeated.
// 36 frames of 1280 x 960 with a hand of 110 to 200 pixels: whole 8, margin 1, tiles 2 along 31, 3 along 36;
// of 35 to 60 pixels: 0, 0, 1, 6. The detector wants a hand of 30 of its 192 pixels.
//
// So: whole, margins, tiles 2, 3 and 5 along. The whole comes first although margins find more close-ups: it
// shows hands in the middle distance, the common case, half again as large.
namespace sinew {
namespace {

constexpr double kMostAlong = 16;
constexpr double kTileOverlap = 0.25;  // of a tile's side: hands up to that size lie whole in one

/// Middles of the tiles of one axis: evenly spread, overlapping by kTileOverlap or more.
std::vector<double> tile_middles(double extent, double side) {
  const double step = side * (1 - kTileOverlap);
  const int count = std::max(1, static_cast<int>(std::ceil((extent - side) / step - 1e-9)) + 1);
  if (count == 1) return {extent / 2};
  std::vector<double> middles;
  middles.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) middles.push_back(side / 2 + (extent - side) * i / (count - 1));
  return middles;
}

/// The side of tiles of which `along` cover an extent, and how many of a side cover it.
double tile_side(double extent, int along) { return extent / (along - (along - 1) * kTileOverlap); }
double along_of(double extent, double side) { return (extent / side - kTileOverlap) / (1 - kTileOverlap); }

SearchStage tiles(int width, int height, int along) {
  const double side = tile_side(std::max(width, height), along);
  SearchStage stage;
  for (const double y : tile_middles(height, side)) {
    for (const double x : tile_middles(width, side)) stage.views.push_back({x, y, side, 0});
  }
  return stage;
}

}  // namespace

std::vector<SearchStage> search_stages(int width, int height, bool with_tiles) {
  assert(width > 0 && height > 0);
  const double longer = std::max(width, height), shorter = std::min(width, height);
  const FrameSquare whole = {width / 2.0, height / 2.0, longer, 0};
  const auto with_margin = [&](double share) {
    FrameSquare square = whole;
    square.side *= 1 + 2 * share;
    return SearchStage{{square}, Border::kReplicate};
  };
  std::vector<SearchStage> stages = {{{whole}, Border::kBlack}, with_margin(0.25), with_margin(0.5)};
  if (!with_tiles) return stages;
  // The last of a strip has tiles as high as it is.
  const auto strip = static_cast<int>(std::min(std::ceil(along_of(longer, shorter)), kMostAlong));
  for (const int along : {2, 3, std::max(5, strip)}) {
    // A tile of fewer pixels than the network's picture would only be enlarged.
    if (tile_side(longer, along) >= mediapipe::kPalmSide) stages.push_back(tiles(width, height, along));
  }
  return stages;
}

}  // namespace sinew

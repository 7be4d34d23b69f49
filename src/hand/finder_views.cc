#include "hand/finder_views.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sinew {
namespace {

constexpr double kTileOverlap = 0.25;  // of a tile's side: hands up to that size lie whole in one

/// Middles of the tiles of one axis: evenly spread, overlapping by kTileOverlap or more.
std::vector<double> tile_middles(double extent, double side) {
  const double step = side * (1 - kTileOverlap);
  const int count = std::max(1, static_cast<int>(std::ceil((extent - side) / step - 1e-9)) + 1);
  if (count == 1) return {extent / 2};
  std::vector<double> middles;
  for (int i = 0; i < count; ++i) middles.push_back(side / 2 + (extent - side) * i / (count - 1));
  return middles;
}

/// Tiles of a side of which `along` cover the frame's longer axis.
SearchStage tiles(int width, int height, int along) {
  const double side = std::max(width, height) / (along - (along - 1) * kTileOverlap);
  SearchStage stage;
  for (const double y : tile_middles(height, side)) {
    for (const double x : tile_middles(width, side)) stage.views.push_back({x, y, side, 0});
  }
  return stage;
}

}  // namespace

std::vector<SearchStage> search_stages(int width, int height) {
  assert(width > 0 && height > 0);
  const FrameSquare whole = {width / 2.0, height / 2.0, static_cast<double>(std::max(width, height)), 0};
  const auto with_margin = [&](double share) {
    FrameSquare square = whole;
    square.side *= 1 + 2 * share;
    return SearchStage{{square}, Border::kReplicate};
  };
  std::vector<SearchStage> stages = {{{whole}, Border::kBlack}, with_margin(0.25), with_margin(0.5)};
  stages.push_back(tiles(width, height, 2));
  stages.push_back(tiles(width, height, 3));
  // A strip: tiles as high as it is.
  const double aspect = static_cast<double>(std::max(width, height)) / std::min(width, height);
  constexpr int kMostAlong = 16;
  const int along = static_cast<int>(std::ceil((std::min(aspect, 1e3) - kTileOverlap) / (1 - kTileOverlap)));
  if (along > 3) stages.push_back(tiles(width, height, std::min(along, kMostAlong)));
  return stages;
}

}  // namespace sinew

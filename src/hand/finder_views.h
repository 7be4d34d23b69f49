// Where in a frame the palm detector looks. Internal to the finder.
#pragma once

#include <vector>

#include "image/square.h"

namespace sinew {

/// Squares of a frame that are looked at together.
struct SearchStage {
  std::vector<FrameSquare> views;
  Border border = Border::kBlack;
};

/// The stages, each a retry for when those before have found nothing: whole frame, with a margin, tiles.
/// finder_views.cc has the rule and what it was measured on. Asserts sides of at least one pixel.
std::vector<SearchStage> search_stages(int width, int height);

}  // namespace sinew

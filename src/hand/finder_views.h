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

/// The stages, each a retry for when those before have found nothing sure: the whole frame, with a margin of
/// a quarter and of half its longer side, then tiles, as long as they have the pixels of the detector's
/// picture: 2, 3 and 5 along the longer side (a strip up to 16), overlapping by a quarter. finder_views.cc
/// has what this was measured on. Asserts sides of at least one pixel.
std::vector<SearchStage> search_stages(int width, int height, bool with_tiles = true);

}  // namespace sinew

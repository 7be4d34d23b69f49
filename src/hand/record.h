// What is told and shown about a hand: the JSON record and the overlay.
#pragma once

#include <string>

#include "hand/mesh.h"
#include "hand/pipeline.h"

namespace sinew {

/// What a record says about where its numbers come from.
struct RecordContext {
  std::string image;  // file name
  int hand = 0;       // number within the picture
  std::string model;  // description of the checkpoint
  std::string backend;
  std::string policy;
  std::string crop;  // "pillow" or "opencv"
  double rescale = 0;
  std::string hand_model = "builtin-skeleton";  // HandModel::name() where one was used
  double decode_ms = 0;                         // of the picture, shared by its hands
};

/// One JSON object on one line (docs/NUMERICS.md lists the fields).
std::string to_json(const HandResult& result, const RecordContext& context);

/// The posed mesh as it stands in the frame, before cam_t_full; `model` is the one that posed it.
Mesh mesh_of(const HandResult& result, const HandModel& model);

/// Draws the shaded mesh over the frame; nothing when the result has none.
void draw_mesh(Image& frame, const HandResult& result, const HandModel& model);

/// Draws the box and the skeleton over the frame.
void draw_hand(Image& frame, const HandResult& result);

}  // namespace sinew

// What is told about a hand: the JSON record.
#pragma once

#include <string>

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

}  // namespace sinew

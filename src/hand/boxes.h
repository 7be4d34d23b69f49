// Hand boxes from a JSON file: {"images": [{"file": "a.jpg", "size": [w,h], "hands": [[x1,y1,x2,y2,is_right],
// ...]}, ...]}.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "image/crop.h"

namespace sinew {

struct ImageBoxes {
  int width = 0, height = 0;  // of the picture as stored; 0 when the file does not say
  std::vector<HandBox> hands;
};

/// By the `file` entry. Other keys are passed over. Throws Error (kFormat, kLimit) naming the entry and the
/// field: numbers that are not finite, a hand that is not five numbers (four: a right hand), an is_right that
/// is neither 0 nor 1, a file named twice.
std::map<std::string, ImageBoxes> parse_boxes(std::string_view text, const std::string& name);
std::map<std::string, ImageBoxes> read_boxes(const std::string& path);

/// Intersection over union, 0 to 1.
double box_overlap(const HandBox& a, const HandBox& b);

/// "x1,y1,x2,y2" or "x1,y1,x2,y2,left|right" of the command line. Throws Error (kUsage).
HandBox parse_box(const std::string& text);

}  // namespace sinew

// Where the boxes of `sinew hands` come from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/hands_options.h"
#include "hand/boxes.h"
#include "tensor/image.h"

namespace sinew::cli {

/// --box, --boxes, the whole picture (--detector none), or nothing: the detector's business.
class BoxSource {
 public:
  /// Throws Error: kUsage (--box), or as read_boxes().
  explicit BoxSource(const HandsOptions& options);
  /// True when pictures have to be searched.
  bool needs_detector() const { return needs_detector_; }
  /// The boxes of a picture; nothing when it has to be searched. Throws Error: kNotFound (--boxes has no
  /// entry for it), kMismatch (another size than --boxes says).
  std::optional<std::vector<HandBox>> boxes(const std::string& path, const Image& frame) const;

 private:
  std::vector<HandBox> from_file(const std::string& path, const Image& frame) const;

  std::vector<HandBox> given_;
  std::string file_name_;
  std::map<std::string, ImageBoxes> file_;
  bool needs_detector_ = false;
};

}  // namespace sinew::cli

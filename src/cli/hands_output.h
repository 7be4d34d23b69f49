// What `sinew hands` prints and writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/hands_options.h"
#include "cli/inputs.h"
#include "hand/hand_model.h"
#include "hand/record.h"
#include "hand/truth.h"
#include "tensor/image.h"

namespace sinew::cli {

/// One line per hand on stdout and the files that --save names:
/// `<stem>_<hand>.json` and the mesh formats,
/// `<stem>_<hand>.png` (photo, mesh, side view, skeleton side by side) and
/// `<stem>_all.png` (all hands over the whole photo).
class HandsOutput {
 public:
  /// Throws Error (kUsage): a word of --save that is none, that has no folder
  /// or needs a mesh there is not.
  HandsOutput(const HandsOptions& options, std::shared_ptr<const HandModel> model);

  /// All hands of one picture. `context` is filled but for image and hand.
  /// Throws Error (kIo).
  void publish(const Input& input, const Image& frame, const std::vector<HandResult>& results,
               RecordContext context);
  /// The error of the hand that is nearest to the known joints, on stdout (on
  /// stderr with --json). Throws Error (kMismatch) when there is no hand.
  void tell_error(const Input& input, const std::vector<HandResult>& results, const HandTruth& truth) const;

 private:
  bool saves(const std::string& word) const;
  std::string path_of(const Input& input, const std::string& rest) const;
  void write_hand(const Input& input, const Image& frame, const HandResult& result, int hand,
                  const std::string& record) const;

  std::shared_ptr<const HandModel> model_;
  std::string folder_;  // empty: nothing is written
  std::vector<std::string> save_;
  bool json_ = false;
  bool told_model_ = false;
};

}  // namespace sinew::cli

// What `sinew hands` is asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cache_options.h"
#include "cli/machine_options.h"
#include "hand/camera.h"

namespace sinew::cli {

inline constexpr int kMostHands = 100;  // of one image, for --max-hands

struct HandsOptions {
  std::vector<std::string> inputs;
  bool recursive = false;
  std::string model;
  std::string hand_model;
  std::string detector = "mediapipe";
  bool lite = false;
  bool thorough = false;
  int max_hands = 10;
  double min_score = 0.5;
  std::vector<std::string> boxes;
  std::string boxes_file;
  std::string intrinsics;
  double rescale = 2.0;
  std::string crop = "pillow";
  std::string policy;
  std::string backend = "cpu";
  std::string input = "f32";
  MachineWords machine;
  std::string out;
  std::string save;
  std::string truth;
  bool json = false;
  CacheWords cache;
};

/// "fx,fy,cx,cy" in pixels. Throws Error (kUsage): not four numbers, a focal length that is not positive.
Intrinsics parse_intrinsics(const std::string& text);

}  // namespace sinew::cli

// Where tests find the hand networks and the built-in hand, which set-up fetches (tools/assets.sh) and an
// offline machine may lack.
#pragma once

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/test_paths.h"

namespace sinew {

/// Each asset, and the same file in the shared folder.
inline constexpr std::array<std::pair<const char*, const char*>, 5> kTestAssets = {{
    {"palm_detection_full.tflite", "data/mediapipe/palm_detection_full.tflite"},
    {"palm_detection_lite.tflite", "data/mediapipe/palm_detection_lite.tflite"},
    {"hand_landmark_full.tflite", "data/mediapipe/hand_landmark_full.tflite"},
    {"hand_landmark_lite.tflite", "data/mediapipe/hand_landmark_lite.tflite"},
    {"generic_hand_right.glb", "data/hand_mesh/webxr_generic_hand/right.glb"},
}};

inline constexpr const char* kNoAssets =
    "the hand networks and mesh are not here (`make assets`, or SINEW_DATA=FOLDER)";

/// The path of an asset: in $SINEW_DATA or, when that is not set, in build/data of the source tree; else its
/// twin in the shared folder. `const auto path = asset_file("generic_hand_right.glb"); if (!path)
/// GTEST_SKIP() << kNoAssets;`
inline std::optional<std::string> asset_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const char* given = std::getenv("SINEW_DATA");
  const bool set = given != nullptr && *given != '\0';
  const fs::path path = fs::path(set ? std::string(given) : source_folder() + "/build/data") / name;
  if (fs::is_regular_file(path, ignored)) return path.string();
  for (const auto& [asset, twin] : kTestAssets) {
    if (name == asset) return shared_file(twin);
  }
  return std::nullopt;
}

/// Fills `folder` with links to all assets, to be given as SINEW_DATA to a program under test. False, and a
/// folder of no use, when one is not here: skip.
inline bool link_assets(const std::string& folder) {
  for (const auto& [asset, twin] : kTestAssets) {
    const auto path = asset_file(asset);
    if (!path) return false;
    std::filesystem::create_symlink(std::filesystem::absolute(*path), std::filesystem::path(folder) / asset);
  }
  return true;
}

}  // namespace sinew

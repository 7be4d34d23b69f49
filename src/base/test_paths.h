// Where tests find their data: the repository's tests/data (always there) and the shared goldens (not in the
// repository).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace sinew {

/// The root of the source tree the test was built from.
inline std::string source_folder() { return SINEW_SOURCE_DIR; }

/// `<source>/tests/data/<name>`: small committed fixtures.
inline std::string test_data(const std::string& name) { return source_folder() + "/tests/data/" + name; }

/// The folder that holds `golden/`: $SINEW_SHARED when set, else the first `shared/` found in the source
/// tree, the working folder, or a folder above either. Nothing when there is none: a test that needs it
/// skips.
inline std::optional<std::string> shared_folder() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (const char* given = std::getenv("SINEW_SHARED"); given != nullptr && *given != '\0') {
    if (fs::is_directory(fs::path(given) / "golden", ignored)) return std::string(given);
    return std::nullopt;
  }
  for (fs::path from : {fs::path(source_folder()), fs::current_path(ignored)}) {
    for (; !from.empty(); from = from.parent_path()) {
      const fs::path shared = from / "shared";
      if (fs::is_directory(shared / "golden", ignored)) return shared.string();
      if (from == from.parent_path()) break;
    }
  }
  return std::nullopt;
}

/// `<shared>/<name>` when that file or folder exists, for `const auto path =
/// shared_file("golden/hamer/io.safetensors"); if (!path) GTEST_SKIP() << kNoShared;`
inline std::optional<std::string> shared_file(const std::string& name) {
  const auto shared = shared_folder();
  if (!shared) return std::nullopt;
  std::error_code ignored;
  std::string path = *shared + "/" + name;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return path;
}

inline constexpr const char* kNoShared =
    "the shared goldens are not here (set SINEW_SHARED to the folder that holds golden/)";

}  // namespace sinew

#include "hand/hand_model_file.h"

#include <filesystem>
#include <system_error>

#include "base/data_folder.h"
#include "base/error.h"
#include "hand/glb_hand.h"
#include "hand/mano_file.h"
#include "io/glb.h"
#include "io/mapped_file.h"

namespace sinew {

std::shared_ptr<const HandModel> open_hand_model(const std::string& path) {
  const bool glb = is_glb(MappedFile::open(path).bytes());
  return std::make_shared<const HandModel>(glb ? load_glb_hand(path) : load_mano(path), path);
}

std::shared_ptr<const HandModel> builtin_hand_model(std::span<const std::string> folders) {
  const std::string path = find_asset(kBuiltinHandAsset, folders);
  try {
    return std::make_shared<const HandModel>(load_glb_hand(path), path);
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), kAssetHint);
  }
}

std::string published_mano_beside(const std::string& model) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path folder = fs::absolute(model, ignored).lexically_normal();
  for (int up = 0; up <= 3; ++up) {
    const fs::path candidate = folder / "data" / "mano" / "MANO_RIGHT.pkl";
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return {};
}

}  // namespace sinew

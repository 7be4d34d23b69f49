#include "base/data_folder.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/install_layout.h"

namespace sinew {
namespace fs = std::filesystem;
namespace {

const char kAnchor = 0;  // lies in whatever module this file was linked into

struct Module {
  std::string path;  // without symbolic links, so that a link to the program elsewhere finds the same data
  bool library = false;
};

Module this_module() {
  std::error_code ignored;
  Dl_info info{};
  void* found = nullptr;
  if (::dladdr1(&kAnchor, &info, &found, RTLD_DL_LINKMAP) != 0 && found != nullptr) {
    // The program itself has no name there; its dli_fname is argv[0], which may be anything.
    const std::string name = static_cast<const link_map*>(found)->l_name;
    if (!name.empty()) return {fs::canonical(name, ignored).string(), true};
  }
  return {fs::read_symlink("/proc/self/exe", ignored).string(), false};
}

}  // namespace

std::vector<std::string> data_folders_of(const std::string& module, const std::string& to_installed) {
  const fs::path folder = fs::path(module).parent_path();
  return {(folder / ".." / "data").lexically_normal().string(),
          (folder / to_installed).lexically_normal().string()};
}

std::vector<std::string> data_folders() {
  if (const char* given = std::getenv("SINEW_DATA"); given != nullptr && *given != '\0') return {given};
  const Module module = this_module();
  if (module.path.empty()) return {};  // no /proc, or the library's file is gone
  return data_folders_of(module.path, module.library ? kLibraryToData : kProgramToData);
}

std::string find_asset(const std::string& name, std::span<const std::string> folders) {
  std::error_code ignored;
  for (const std::string& folder : folders) {
    const fs::path path = fs::path(folder) / name;
    if (fs::is_regular_file(path, ignored)) return path.string();
  }
  throw Error(ErrorCode::kNotFound,
              folders.empty() ? fmt::format("{}: no folder to look in (no /proc here?)", name)
                              : fmt::format("{} is not in {}", name, fmt::join(folders, " nor in ")),
              kAssetHint);
}

}  // namespace sinew

// Code in a shared library looks for its data from where the library lies, whatever program loaded it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <memory>

#include "base/install_layout.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

TEST(DataFolderLibrary, LooksFromItsOwnFile) {
  namespace fs = std::filesystem;
  const TestFolder folder;
  const fs::path lib = fs::canonical(folder.file("")) / "tree" / "lib";
  fs::create_directories(lib);
  const fs::path built = fs::read_symlink("/proc/self/exe").parent_path();
  fs::copy_file(built / "libdata_folder_probe.so", lib / "libprobe.so.0.1");
  fs::create_symlink("libprobe.so.0.1", lib / "libprobe.so");
  fs::create_symlink(lib / "libprobe.so", folder.file("elsewhere.so"));
  ::unsetenv("SINEW_DATA");

  void* library = ::dlopen(folder.file("elsewhere.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  using Probe = std::size_t (*)(char*, std::size_t);
  const auto probe = reinterpret_cast<Probe>(::dlsym(library, "probe_data_folders"));
  ASSERT_NE(probe, nullptr) << ::dlerror();
  std::array<char, 4096> text{};
  ASSERT_EQ(probe(text.data(), text.size()), 2U);
  EXPECT_EQ(text.data(), (lib.parent_path() / "data").string() + "\n" +
                             (lib / kLibraryToData).lexically_normal().string() + "\n");
  ::dlclose(library);
}

}  // namespace
}  // namespace sinew

#include "base/data_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/install_layout.h"
#include "base/test_assets.h"

namespace sinew {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class DataFolder : public testing::Test {
 public:
  DataFolder() {
    std::string name = (fs::temp_directory_path() / "sinew-test-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root_ = fs::path(name);
    if (const char* given = std::getenv("SINEW_DATA")) before_ = given;
    ::unsetenv("SINEW_DATA");
  }
  ~DataFolder() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
    if (before_) ::setenv("SINEW_DATA", before_->c_str(), 1);
    if (!before_) ::unsetenv("SINEW_DATA");
  }

 protected:
  /// A folder in the temporary one, with these files in it.
  std::string folder(const std::string& name, const std::vector<std::string>& files = {}) {
    fs::create_directories(root_ / name);
    for (const std::string& file : files) std::ofstream(root_ / name / file) << name;
    return (root_ / name).string();
  }

  fs::path root_;

 private:
  std::optional<std::string> before_;
};

TEST_F(DataFolder, LiesBesideTheBuildOrInTheInstalledTree) {
  EXPECT_THAT(data_folders_of("/src/sinew/build/release/sinew", "../share/sinew"),
              ElementsAre("/src/sinew/build/data", "/src/sinew/build/share/sinew"));
  EXPECT_THAT(data_folders_of("/usr/bin/sinew", "../share/sinew"),
              ElementsAre("/usr/data", "/usr/share/sinew"));
  EXPECT_THAT(data_folders_of("/usr/lib/x86_64-linux-gnu/libsinew.so.0", "../../share/sinew"),
              ElementsAre("/usr/lib/data", "/usr/share/sinew"));
}

TEST_F(DataFolder, IsLookedForFromTheRunningProgram) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  EXPECT_EQ(data_folders(), data_folders_of(program, kProgramToData));
}

TEST_F(DataFolder, NamedByTheUserIsTheOnlyOne) {
  const std::string named = folder("named");
  ::setenv("SINEW_DATA", named.c_str(), 1);
  EXPECT_THAT(data_folders(), ElementsAre(named));
  try {
    find_asset("hand.bin", data_folders());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.what(), "hand.bin is not in " + named);
    EXPECT_THAT(error.hint(), HasSubstr("make assets"));
    EXPECT_THAT(error.hint(), HasSubstr("SINEW_DATA"));
  }
  folder("named", {"hand.bin"});
  EXPECT_EQ(find_asset("hand.bin", data_folders()), named + "/hand.bin");
  ::setenv("SINEW_DATA", "", 1);
  EXPECT_EQ(data_folders().size(), 2U) << "empty is as good as not set";
}

TEST_F(DataFolder, TheFirstThatHasTheFileWins) {
  const std::vector<std::string> folders = {root_ / "absent", folder("first", {"a"}),
                                            folder("second", {"a", "b"})};
  EXPECT_EQ(find_asset("a", folders), folders[1] + "/a");
  EXPECT_EQ(find_asset("b", folders), folders[2] + "/b");
  folder("first/b");  // a folder of that name is not the file
  EXPECT_EQ(find_asset("b", folders), folders[2] + "/b");
}

TEST_F(DataFolder, AMissingFileIsToldWithEachFolder) {
  const std::vector<std::string> folders = {folder("first", {"a"}), root_ / "absent"};
  try {
    find_asset("b", folders);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_EQ(error.what(), "b is not in " + folders[0] + " nor in " + folders[1]);
  }
}

TEST_F(DataFolder, TestsFindAssetsInTheNamedFolderFirst) {
  const std::string named = folder("named", {"generic_hand_right.glb"});
  ::setenv("SINEW_DATA", named.c_str(), 1);
  EXPECT_EQ(asset_file("generic_hand_right.glb"), named + "/generic_hand_right.glb");
  EXPECT_EQ(asset_file("no_such_asset"), std::nullopt);
}

}  // namespace
}  // namespace sinew

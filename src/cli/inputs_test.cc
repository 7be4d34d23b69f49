#include "cli/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/test_folder.h"

namespace sinew::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Inputs : public testing::Test {
 protected:
  Inputs() {
    for (const char* name : {"b.png", "a.JPG", "c.jpeg", "notes.txt", "sub/a.png", "sub/deep/d.jpg"}) {
      const std::string path = folder_.file(name);
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      write_file_atomically(path, "x");
    }
    std::filesystem::create_directories(folder_.file("empty"));
    std::filesystem::create_directories(folder_.file("folder.png"));  // a name is not a file
  }

  /// Paths below the test's folder.
  std::vector<std::string> expand(const std::vector<std::string>& names, bool recursive = false) {
    std::vector<std::string> words, out;
    words.reserve(names.size());
    for (const std::string& name : names) words.push_back(folder_.file(name));
    for (const Input& input : expand_inputs(words, recursive)) {
      out.push_back(std::filesystem::relative(input.path, folder_.file("")).string());
    }
    return out;
  }
  std::string message(const std::vector<std::string>& names) {
    try {
      expand(names);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TestFolder folder_;
};

TEST_F(Inputs, AFolderIsItsPicturesByName) {
  EXPECT_THAT(expand({"."}), ElementsAre("a.JPG", "b.png", "c.jpeg"));
  EXPECT_THAT(expand({"."}, true), ElementsAre("a.JPG", "b.png", "c.jpeg", "sub/a.png", "sub/deep/d.jpg"));
}

TEST_F(Inputs, APatternIsWhatItMatches) {
  EXPECT_THAT(expand({"[ab].*"}), ElementsAre("a.JPG", "b.png"));
  EXPECT_THAT(expand({"s?b"}), ElementsAre("sub/a.png")) << "a folder that matches counts as a folder";
  EXPECT_THAT(message({"*.bmp"}), HasSubstr("*.bmp: no file matches"));
}

TEST_F(Inputs, FilesKeepTheirOrderAndCountOnce) {
  EXPECT_THAT(expand({"c.jpeg", "missing.png", ".", "b.png"}),
              ElementsAre("c.jpeg", "missing.png", "a.JPG", "b.png"));
  EXPECT_THAT(expand({"c.jpeg", "c.jpeg"}), ElementsAre("c.jpeg"));
}

TEST_F(Inputs, AFileMayBeCalledLikeAPattern) {
  write_file_atomically(folder_.file("[x].png"), "x");
  EXPECT_THAT(expand({"[x].png"}), ElementsAre("[x].png"));
  EXPECT_THAT(expand({"a[1.png"}), ElementsAre("a[1.png")) << "a bracket that is never closed";
}

TEST_F(Inputs, AFolderWithoutPicturesIsAnError) {
  EXPECT_THAT(message({"empty"}), HasSubstr("empty: no *.jpg"));
}

TEST_F(Inputs, StemsAreUnique) {
  const auto inputs =
      expand_inputs({folder_.file("a.JPG"), folder_.file("b.png"), folder_.file("sub/a.png")}, false);
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs[0].stem, "0_a");
  EXPECT_EQ(inputs[1].stem, "b");
  EXPECT_EQ(inputs[2].stem, "2_a");
}

TEST_F(Inputs, AMadeUpStemNeverMeetsARealOne) {
  const auto inputs =
      expand_inputs({folder_.file("a.JPG"), folder_.file("sub/a.png"), folder_.file("0_a.png")}, false);
  ASSERT_EQ(inputs.size(), 3U);
  EXPECT_EQ(inputs[0].stem, "0_a");
  EXPECT_EQ(inputs[1].stem, "1_a");
  EXPECT_EQ(inputs[2].stem, "2_0_a");
}

TEST_F(Inputs, KnowsWhenResultsWouldBecomeInputs) {
  const std::string root = folder_.file(".");
  EXPECT_TRUE(is_input_folder({root}, folder_.file(""), false));
  EXPECT_FALSE(is_input_folder({root}, folder_.file("out"), false));
  EXPECT_TRUE(is_input_folder({root}, folder_.file("out"), true));
  EXPECT_FALSE(is_input_folder({folder_.file("sub")}, folder_.file("."), true));
  EXPECT_FALSE(is_input_folder({folder_.file("b.png")}, folder_.file("."), false));
}

}  // namespace
}  // namespace sinew::cli

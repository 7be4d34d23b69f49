#include "plan/content_digest.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/test_damage.h"
#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/remembered_digests.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

using ::testing::HasSubstr;

class ContentDigest : public ::testing::Test {
 protected:
  /// The digest, and how many bytes were read for it: a remembered file is counted in one step, a read one in
  /// steps of the buffer and with its file's access.
  Digest digest(const std::vector<std::string>& paths, bool always = false) {
    std::uint64_t seen = 0;
    const Digest out =
        content_digest(paths, cache_, always, [&](std::uint64_t bytes) { seen += bytes; }, files_);
    std::uint64_t size = 0;
    for (const auto& path : paths) size += std::filesystem::file_size(path);
    EXPECT_EQ(seen, size);
    return out;
  }
  RememberedDigests remembered() const { return load_remembered_digests(cache_ + "/digests.json"); }

  TestFolder folder_;
  std::string cache_ = folder_.file("cache");
  std::string one_ = folder_.file("one.ckpt");
  std::string two_ = folder_.file("two.ckpt");
  FaultyFiles files_;
};

/// Row 29: the same size and the same first 64 KiB are not the same checkpoint.
TEST_F(ContentDigest, EveryByteCounts) {
  std::string bytes(1 << 20, 'h');
  overwrite(one_, bytes);
  bytes.back() = 'i';
  overwrite(two_, bytes);
  const Digest one = digest({one_});
  EXPECT_NE(one, digest({two_}));
  EXPECT_NE(digest({one_, two_}), digest({two_, one_}));
  EXPECT_NE(digest({one_, one_}), one);
  // Cut elsewhere, it is another set of files.
  overwrite(folder_.file("a"), "ab");
  overwrite(folder_.file("b"), "c");
  overwrite(folder_.file("c"), "a");
  overwrite(folder_.file("d"), "bc");
  EXPECT_NE(digest({folder_.file("a"), folder_.file("b")}), digest({folder_.file("c"), folder_.file("d")}));
  // Names and places do not count.
  std::filesystem::rename(one_, folder_.file("moved"));
  EXPECT_EQ(digest({folder_.file("moved")}), one);
}

TEST_F(ContentDigest, IsRememberedUntilTheFileChanges) {
  overwrite(one_, "weights");
  let_files_settle();
  const Digest real = digest({one_});
  ASSERT_EQ(remembered().size(), 1U);
  EXPECT_EQ(remembered().begin()->first, std::filesystem::canonical(one_).string());
  EXPECT_EQ(remembered().begin()->second.digest, digest_of("weights"));

  // What is remembered is believed: a note with another digest tells.
  RememberedDigests notes = remembered();
  notes.begin()->second.digest = {1, 2};
  overwrite(cache_ + "/digests.json", to_text(notes));
  const Digest noted = digest({one_});
  EXPECT_NE(noted, real);
  std::filesystem::create_symlink(one_, folder_.file("link"));
  EXPECT_EQ(digest({folder_.file("link")}), noted) << "one file, two notes";
  EXPECT_EQ(digest({one_}, true), real) << "believed in spite of `always`";
  EXPECT_EQ(digest({one_}), real) << "the note was not put right";

  const auto spoil = [&](const std::function<void()>& change) {
    RememberedDigests false_notes = remembered();
    for (auto& [path, note] : false_notes) note = {have(stamp_of(path)), {1, 2}};
    overwrite(cache_ + "/digests.json", to_text(false_notes));
    EXPECT_EQ(digest({one_}), noted);
    change();
    return digest({one_});
  };
  EXPECT_EQ(
      spoil([&] { std::filesystem::last_write_time(one_, std::filesystem::file_time_type::clock::now()); }),
      real);
  // Same size, and the time of the last write put back: the time of the last change is not to be put back.
  EXPECT_NE(spoil([&] {
              struct stat before{};
              ASSERT_EQ(::stat(one_.c_str(), &before), 0);
              overwrite(one_, "Weights");
              const timespec times[2] = {before.st_atim, before.st_mtim};
              ASSERT_EQ(::utimensat(AT_FDCWD, one_.c_str(), times, 0), 0);
            }),
            noted);
  overwrite(one_, "weights");
  EXPECT_EQ(spoil([&] {
              overwrite(two_, "weights");
              std::filesystem::rename(two_, one_);
            }),
            real);
}

TEST_F(ContentDigest, AFileOfThisMomentIsNotRemembered) {
  overwrite(one_, "weights");
  FileStamp stamp = have(stamp_of(one_));
  EXPECT_FALSE(is_settled(stamp, stamp.changed));
  EXPECT_FALSE(is_settled(stamp, stamp.changed + 50'000'000)) << "a later change could have the same times";
  EXPECT_TRUE(is_settled(stamp, stamp.changed + 200'000'000));
  stamp.modified += 1'000'000'000'000;  // anybody can set that
  EXPECT_TRUE(is_settled(stamp, stamp.changed + 200'000'000));
}

TEST_F(ContentDigest, NotesThatCannotBeKeptOrReadDoNoHarm) {
  overwrite(one_, "weights");
  let_files_settle();
  const std::vector<std::string> paths = {one_};
  const Digest real = content_digest(paths, "");
  EXPECT_FALSE(std::filesystem::exists(cache_));
  overwrite(cache_, "a file where the folder should be");
  EXPECT_EQ(digest(paths), real);
  std::filesystem::remove(cache_);
  for (int n = 0; n < 6; ++n) {
    FaultyFiles faulty(n, Fault::kNoSpace);
    EXPECT_EQ(content_digest(paths, cache_, false, {}, faulty), real);
  }
  EXPECT_EQ(digest(paths), real);
  const std::string good = contents(cache_ + "/digests.json");
  ASSERT_EQ(remembered().size(), 1U);
  for (const std::string& text : {std::string(), good.substr(1), good + good, std::string(1000000, '['),
                                  std::string("{\"files\":{\"/x\":{\"digest\":7}}}")}) {
    overwrite(cache_ + "/digests.json", text);
    EXPECT_EQ(digest(paths), real);
    EXPECT_EQ(contents(cache_ + "/digests.json"), good);
  }
}

TEST_F(ContentDigest, NotesOfLostFilesGo) {
  overwrite(one_, "one");
  overwrite(two_, "two");
  let_files_settle();
  digest({one_, two_});
  EXPECT_EQ(remembered().size(), 2U);
  std::filesystem::remove(one_);
  digest({two_}, true);
  EXPECT_EQ(remembered().size(), 1U);
}

TEST_F(ContentDigest, SaysWhatIsWrong) {
  const auto code = [&](const std::string& path) {
    try {
      content_digest(std::vector{path}, "");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
      return error.code();
    }
    return ErrorCode::kUsage;
  };
  EXPECT_EQ(code(one_), ErrorCode::kNotFound);
  EXPECT_EQ(code(folder_.file("")), ErrorCode::kFormat);
  ASSERT_EQ(::mkfifo(two_.c_str(), 0600), 0);
  EXPECT_EQ(code(two_), ErrorCode::kFormat);
  // A file that grows while it is read.
  overwrite(one_, std::string(5 << 20, 'x'));
  const auto grow = [&](std::uint64_t) { overwrite(one_, "other"); };
  EXPECT_THROW(content_digest(std::vector{one_}, "", false, grow), Error);
}

TEST(RememberedDigestsText, DamageIsAnswered) {
  RememberedDigests notes;
  notes["/a/b.ckpt"] = {{1, 2, 3, -4, 5}, {6, 7}};
  notes["/\xff \"%\n"] = {{~0ULL, 0, 0, 0, 0}, {}};
  const std::string text = to_text(notes);
  EXPECT_EQ(parse_remembered_digests(text, "digests.json"), notes);
  const auto parse = [](std::span<const std::byte> bytes) {
    const std::string copy(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(to_text(parse_remembered_digests(copy, "digests.json")), copy);
  };
  expect_truncations_refused(text, parse);
  survive_flips(text, parse, 2000);
}

}  // namespace
}  // namespace sinew

#include "io/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

template <typename Fn>
Error error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::kUsage, ""};
}

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const TestFolder folder;
  const std::string path = folder.file("out.bin");
  AtomicFile file(path);
  file.write("hello ");
  file.write("world");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(slurp(path), "hello world");
  EXPECT_THAT(folder.names(), ElementsAre("out.bin"));
}

TEST(AtomicFile, ReplacesOnCommitAndKeepsTheOldFileUntilThen) {
  const TestFolder folder;
  const std::string path = folder.file("out.bin");
  write_file_atomically(path, "old");
  {
    AtomicFile file(path);
    file.write("half of the ne");
    EXPECT_EQ(slurp(path), "old");
  }
  EXPECT_EQ(slurp(path), "old");
  EXPECT_THAT(folder.names(), ElementsAre("out.bin"));
  write_file_atomically(path, "new");
  EXPECT_EQ(slurp(path), "new");
}

TEST(AtomicFile, TwoWritersOfOneNameDoNotMix) {
  const TestFolder folder;
  const std::string path = folder.file("out.bin");
  AtomicFile first(path);
  AtomicFile second(path);
  first.write("first");
  second.write("second");
  second.commit();
  EXPECT_EQ(slurp(path), "second");
  first.commit();
  EXPECT_EQ(slurp(path), "first");
}

TEST(AtomicFile, WriteAtOverwritesAndLeavesThePosition) {
  const TestFolder folder;
  const std::string path = folder.file("out.bin");
  AtomicFile file(path);
  file.write("0123456789");
  const std::string patch = "AB";
  file.write_at(3, std::as_bytes(std::span(patch)));
  file.write("tail");
  file.commit();
  EXPECT_EQ(slurp(path), "012AB56789tail");
}

TEST(AtomicFile, EmptyFile) {
  const TestFolder folder;
  write_file_atomically(folder.file("empty"), "");
  EXPECT_EQ(slurp(folder.file("empty")), "");
  EXPECT_THAT(folder.names(), ElementsAre("empty"));
}

TEST(AtomicFile, HonoursTheUmask) {
  const TestFolder folder;
  const mode_t before = ::umask(027);
  write_file_atomically(folder.file("out"), "x");
  ::umask(before);
  struct stat status{};
  ASSERT_EQ(::stat(folder.file("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(AtomicFile, MissingFolderIsNamed) {
  const TestFolder folder;
  const Error error = error_of([&] { AtomicFile file(folder.file("no/such/out.bin")); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("no/such/out.bin"), HasSubstr("no/such does not exist")));
}

TEST(AtomicFile, FileInPlaceOfTheFolder) {
  const TestFolder folder;
  write_file_atomically(folder.file("plain"), "x");
  const Error error = error_of([&] { AtomicFile file(folder.file("plain/out.bin")); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.what(), HasSubstr("plain is not a folder"));
}

TEST(AtomicFile, NamesThatAreNoFile) {
  EXPECT_EQ(error_of([] { AtomicFile file(""); }).code(), ErrorCode::kIo);
  const TestFolder folder;
  EXPECT_EQ(error_of([&] { AtomicFile file(folder.file("")); }).code(), ErrorCode::kIo);
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(AtomicFile, FolderInPlaceOfTheFileFailsAtCommitAndLeavesNothing) {
  const TestFolder folder;
  std::filesystem::create_directory(folder.file("out"));
  {
    AtomicFile file(folder.file("out"));
    file.write("x");
    const Error error = error_of([&] { file.commit(); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot publish"), HasSubstr("s a directory")));
  }
  EXPECT_THAT(folder.names(), ElementsAre("out"));
}

TEST(AtomicFile, CommitTwiceIsAnError) {
  const TestFolder folder;
  AtomicFile file(folder.file("out"));
  file.commit();
  EXPECT_EQ(error_of([&] { file.commit(); }).code(), ErrorCode::kIo);
}

/// A full disk in small: writes beyond `bytes` are short, then fail with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, FailedWriteLeavesNothing) {
  const TestFolder folder;
  const std::string path = folder.file("out");
  write_file_atomically(path, "old");
  const std::string large(100'000, 'x');
  Error error(ErrorCode::kUsage, "");
  {
    const FileSizeLimit limit(4096);
    error = error_of([&] { write_file_atomically(path, large); });
  }
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr("File too large after 4096 of 100000 bytes")));
  EXPECT_EQ(slurp(path), "old");
  EXPECT_THAT(folder.names(), ElementsAre("out"));
}

}  // namespace
}  // namespace sinew

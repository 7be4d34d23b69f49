#include "io/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/bytes.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kUsage;
}

std::string write(const TestFolder& folder, const std::string& name, const std::string& contents) {
  std::ofstream(folder.file(name), std::ios::binary) << contents;
  return folder.file(name);
}

TEST(MappedFile, ShowsTheBytesAndMoves) {
  const TestFolder folder;
  MappedFile file = MappedFile::open(write(folder, "a", "hello"));
  EXPECT_EQ(as_text(file.bytes()), "hello");
  EXPECT_EQ(file.path(), folder.file("a"));
  const std::byte* address = file.bytes().data();
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().data(), address);
  MappedFile other;
  EXPECT_TRUE(other.bytes().empty());
  other = std::move(moved);
  EXPECT_EQ(as_text(other.bytes()), "hello");
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const TestFolder folder;
  EXPECT_TRUE(MappedFile::open(write(folder, "empty", "")).bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TestFolder folder;
  EXPECT_EQ(code_of([&] { MappedFile::open(folder.file("absent")); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { MappedFile::open(write(folder, "a", "x") + "/below"); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { MappedFile::open(folder.file("")); }), ErrorCode::kFormat) << "a folder";
  EXPECT_EQ(code_of([] { MappedFile::open("/dev/zero"); }), ErrorCode::kFormat);
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { MappedFile::open(folder.file("fifo")); }), ErrorCode::kFormat)
      << "and it must not block";
}

TEST(MappedFile, ReleaseLetsPagesGoAndKeepsContents) {
  const TestFolder folder;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::string contents(16 * page + 100, '\0');
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 31 >> 3);
  const MappedFile file = MappedFile::open(write(folder, "large", contents));
  EXPECT_EQ(as_text(file.bytes()), contents);

  // Pages that straddle the edges stay, the ones between go; all still read as before.
  file.release(file.bytes().data() + page / 2, 3 * page);
  file.release(file.bytes().data() + 5 * page, contents.size());  // past the end: cut
  file.release(&contents, 100);                                   // outside: left alone
  file.release(file.bytes().data(), 0);
  EXPECT_EQ(as_text(file.bytes()), contents);
}

}  // namespace
}  // namespace sinew

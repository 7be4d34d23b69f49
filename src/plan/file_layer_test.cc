#include "plan/file_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/process.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    return error.what();
  }
  return "nothing was thrown";
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(SystemFiles, DoWhatTheySay) {
  const TestFolder folder;
  FileLayer& files = system_files();
  files.make_folder(folder.file("a/b"));
  files.make_folder(folder.file("a/b"));
  {
    const auto file = files.create(folder.file("a/b/x"));
    const std::string one = "one ";
    const std::string large(3 << 20, 'y');
    file->write(bytes_of(one));
    file->write({});
    file->write(bytes_of(large));
    file->sync();
    EXPECT_EQ(contents(folder.file("a/b/x")), one + large);
  }
  files.rename(folder.file("a/b/x"), folder.file("a/y"));
  files.sync_folder(folder.file("a"));
  EXPECT_TRUE(std::filesystem::exists(folder.file("a/y")));
  files.remove(folder.file("a/y"));
  files.remove(folder.file("a/y"));
  files.remove_folder(folder.file("a/b"));
  files.remove_folder(folder.file("a/b"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("a")));
  EXPECT_GT(files.free_bytes(folder.file("not/there")), 0U);
  EXPECT_TRUE(files.writable(folder.file("not/there")));
}

TEST(SystemFiles, SayWhatFailed) {
  const TestFolder folder;
  FileLayer& files = system_files();
  overwrite(folder.file("file"), "x");
  EXPECT_THAT(error_of([&] { files.create(folder.file("file")); }), HasSubstr("file: File exists"));
  EXPECT_THAT(error_of([&] { files.create(folder.file("no/x")); }),
              HasSubstr("no/x: No such file or directory"));
  EXPECT_THAT(error_of([&] { files.rename(folder.file("x"), folder.file("y")); }),
              HasSubstr("cannot publish"));
  EXPECT_THAT(error_of([&] { files.remove(folder.file("")); }), HasSubstr("cannot remove"));
  EXPECT_THAT(error_of([&] { files.remove_folder(folder.file("")); }), HasSubstr("not empty"));
  EXPECT_THAT(error_of([&] { files.make_folder(folder.file("file/x")); }),
              HasSubstr("cannot make the folder"));
  EXPECT_THAT(error_of([&] { files.sync_folder(folder.file("no")); }), HasSubstr("cannot open the folder"));
  EXPECT_FALSE(files.writable(folder.file("file/x")));
  if (std::filesystem::exists("/dev/full")) {
    // The one device that is always full.
    std::filesystem::create_symlink("/dev/full", folder.file("full"));
    EXPECT_THAT(error_of([&] { files.create(folder.file("full")); }), HasSubstr("File exists"))
        << "a link was followed";
  }
}

TEST(Space, IsAskedFor) {
  FaultyFiles files;
  files.set_free(1000);
  require_space(files, "/cache", 1000);
  const std::string error = error_of([&] { require_space(files, "/cache", 1'500'000'001); });
  EXPECT_EQ(error, "/cache: 1.50 GB (1500000001 bytes) are needed, 1.00 kB (1000 bytes) are free");
}

TEST(Publish, IsWholeOrNothing) {
  const TestFolder folder;
  publish(system_files(), folder.file("x"), "first");
  EXPECT_EQ(contents(folder.file("x")), "first");
  for (int n = 0; n < 4; ++n) {
    FaultyFiles files(n, Fault::kIoError);
    EXPECT_THROW(publish(files, folder.file("x"), "second"), Error);
    EXPECT_EQ(contents(folder.file("x")), "first");
    EXPECT_THAT(folder.names(), ElementsAre("x"));
  }
  FaultyFiles files;
  publish(files, folder.file("x"), "third");
  EXPECT_EQ(files.calls(), 4);
  EXPECT_EQ(contents(folder.file("x")), "third");
}

TEST(Temporaries, KnowTheirOwners) {
  const ProcessId self = this_process();
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_TRUE(is_alive(self));
  EXPECT_FALSE(is_alive({self.pid, self.start + 1})) << "the number came round again";
  EXPECT_FALSE(is_alive({0, 0}));
  EXPECT_FALSE(is_alive({-1, 0}));
  EXPECT_FALSE(is_alive({99999999, 1}));
  const std::string mine = fmt::format("x.json.tmp-{}-{}-0", self.pid, self.start);
  EXPECT_TRUE(is_temporary(mine));
  EXPECT_FALSE(is_dead_temporary(mine));
  EXPECT_TRUE(is_dead_temporary("x.json.tmp-99999999-1-0"));
  for (const char* name : {"x", "x.tmp-", "x.tmp-1-2", "x.tmp-1-2-3.safetensors", "x.tmp-a-2-3",
                           "x.tmp-1-2-3-4", "x.tmp-1--3", "x.tmp-99999999999999999999-1-0"}) {
    EXPECT_FALSE(is_temporary(name)) << name;
    EXPECT_FALSE(is_dead_temporary(name)) << name;
  }
}

TEST(SmallFiles, AreReadWholeOrNotAtAll) {
  const TestFolder folder;
  overwrite(folder.file("x"), "12345");
  overwrite(folder.file("empty"), "");
  EXPECT_EQ(read_small_file(folder.file("x"), 5), "12345");
  EXPECT_EQ(read_small_file(folder.file("empty"), 5), "");
  EXPECT_FALSE(read_small_file(folder.file("x"), 4));
  EXPECT_FALSE(read_small_file(folder.file("none"), 4));
  EXPECT_FALSE(read_small_file(folder.file(""), 4000));
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_small_file(folder.file("fifo"), 4));
}

}  // namespace
}  // namespace sinew

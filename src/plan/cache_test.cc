#include "plan/cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/lock.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// Sets a variable of the environment, or unsets it, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(CacheRoot, IsWhereTheUserSays) {
  const Variable home("HOME", "/home/someone");
  const Variable caches("XDG_CACHE_HOME", nullptr);
  const Variable own("SINEW_CACHE", nullptr);
  EXPECT_EQ(cache_root(), "/home/someone/.cache/sinew");
  const Variable relative("XDG_CACHE_HOME", "caches");
  EXPECT_EQ(cache_root(), "/home/someone/.cache/sinew");
  const Variable absolute("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(cache_root(), "/caches/sinew");
  const Variable empty("SINEW_CACHE", "");
  EXPECT_EQ(cache_root(), "/caches/sinew");
  const Variable said("SINEW_CACHE", "here");
  EXPECT_EQ(cache_root(), "here");
  const Variable none("SINEW_CACHE", nullptr);
  const Variable no_caches("XDG_CACHE_HOME", nullptr);
  const Variable no_home("HOME", nullptr);
  EXPECT_THROW(cache_root(), Error);
}

class CacheTest : public ::testing::Test {
 protected:
  /// A tier that was last used `days` ago; its folder.
  std::string make(const std::string& policy, int days) {
    const Identity identity = {{"policy", policy}};
    const std::string folder = tier_folder(root_, identity);
    Tier tier(folder, identity, files_);
    build(tier, test_tensors(1));
    age(folder, days);
    return folder;
  }
  static void age(const std::string& folder, int days) {
    timespec then{};
    ::clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec -= days * 24L * 3600;
    const timespec times[2] = {then, then};
    for (const char* name : {"/.use", "/.complete", ""})
      ::utimensat(AT_FDCWD, (folder + name).c_str(), times, 0);
  }
  static std::vector<std::string> folders(const std::vector<TierInfo>& tiers) {
    std::vector<std::string> out;
    out.reserve(tiers.size());
    for (const TierInfo& tier : tiers) out.push_back(tier.folder);
    return out;
  }
  bool is_complete(const std::string& policy) {
    const Identity identity = {{"policy", policy}};
    return Tier(tier_folder(root_, identity), identity, files_).complete();
  }

  TestFolder folder_;
  std::string root_ = folder_.file("cache");
  FaultyFiles files_;
};

TEST_F(CacheTest, ListsWhatIsThere) {
  EXPECT_THAT(list_tiers(root_), IsEmpty());
  const std::string old = make("bf16", 3);
  const std::string cold = make("f32", 0);
  std::filesystem::remove(cold + "/.complete");
  overwrite(root_ + "/digests.json", "x");
  overwrite(root_ + "/plans/stray", "x");
  std::filesystem::create_directory_symlink(old, root_ + "/plans/link");
  std::map<std::string, TierInfo> tiers;
  for (const TierInfo& tier : list_tiers(root_)) tiers[tier.folder] = tier;
  ASSERT_EQ(tiers.size(), 2U);
  EXPECT_EQ(tiers[old].identity, (Identity{{"policy", "bf16"}}));
  EXPECT_TRUE(tiers[old].complete);
  EXPECT_FALSE(tiers[old].in_use);
  std::uint64_t bytes = 0;
  for (const auto& item : std::filesystem::directory_iterator(old)) bytes += item.file_size();
  EXPECT_EQ(tiers[old].bytes, bytes);
  const auto days = [](FileTime time) {
    return std::chrono::duration_cast<std::chrono::hours>(std::chrono::system_clock::now() - time).count() /
           24;
  };
  EXPECT_EQ(days(tiers[old].built), 3);
  EXPECT_EQ(days(tiers[old].last_used), 3);
  EXPECT_FALSE(tiers[cold].complete);
  EXPECT_EQ(tiers[cold].why_empty, "was not finished: no marker");
  {
    const Identity identity = {{"policy", "bf16"}};
    const Tier reader(old, identity, files_);
    const TierLock writer = TierLock::acquire(lock_path(cold));
    for (const TierInfo& tier : list_tiers(root_)) {
      EXPECT_TRUE(tier.in_use) << tier.folder;
      if (tier.folder != old) continue;
      EXPECT_EQ(days(tier.last_used), 0) << "the use was not noted";
      EXPECT_EQ(days(tier.built), 3);
    }
  }
  for (const TierInfo& tier : list_tiers(root_)) EXPECT_FALSE(tier.in_use) << tier.folder;
}

TEST_F(CacheTest, PrunesByAge) {
  const std::string young = make("bf16", 1);
  const std::string old = make("f32", 40);
  EXPECT_THAT(prune(root_, {}).removed, IsEmpty());
  const PruneResult result = prune(root_, {.unused_for = std::chrono::hours(24 * 30), .total_bytes = {}});
  EXPECT_THAT(folders(result.removed), ElementsAre(old));
  EXPECT_THAT(result.in_use, IsEmpty());
  EXPECT_THAT(result.failed, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_FALSE(std::filesystem::exists(lock_path(old)));
  EXPECT_THAT(folders(list_tiers(root_)), ElementsAre(young));
  EXPECT_TRUE(is_complete("bf16"));
}

TEST_F(CacheTest, PrunesWhatIsOfNoUseAndNothingOfOthers) {
  const std::string young = make("bf16", 0);
  const std::string unfinished = make("f32", 0);
  std::filesystem::remove(unfinished + "/.complete");
  const std::string empty = tier_folder(root_, {{"policy", "none"}});
  std::filesystem::create_directories(empty);
  overwrite(lock_path(tier_folder(root_, {{"policy", "gone"}})), "1 2\n");
  std::filesystem::create_directories(root_ + "/plans/of somebody else");
  overwrite(root_ + "/plans/of somebody else/x", "x");
  overwrite(root_ + "/plans/apt.lock", "x");
  EXPECT_EQ(prune(root_, {}).removed.size(), 2U);
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(root_ + "/plans"))
    names.push_back(item.path().filename());
  EXPECT_THAT(names,
              UnorderedElementsAre("of somebody else", "apt.lock", std::filesystem::path(young).filename()));
}

TEST_F(CacheTest, PrunesByTotalSizeTheLongestUnusedFirst) {
  const std::string a = make("a", 5);
  const std::string b = make("b", 7);
  const std::string c = make("c", 6);
  const std::uint64_t size = list_tiers(root_).front().bytes;
  EXPECT_THAT(prune(root_, {.unused_for = {}, .total_bytes = 3 * size}).removed, IsEmpty());
  EXPECT_THAT(folders(prune(root_, {.unused_for = {}, .total_bytes = 2 * size - 1}).removed),
              ElementsAre(b, c));
  EXPECT_TRUE(is_complete("a"));
  EXPECT_THAT(folders(prune(root_, {.unused_for = {}, .total_bytes = 0}).removed), ElementsAre(a));
  EXPECT_THAT(list_tiers(root_), IsEmpty());
}

TEST_F(CacheTest, NothingInUseIsRemoved) {
  const std::string read = make("read", 40);
  const std::string written = make("written", 41);
  const std::string free = make("free", 42);
  const Identity identity = {{"policy", "read"}};
  auto reader = std::make_optional<Tier>(read, identity, files_);
  age(read, 40);  // opening it was a use
  auto writer = std::make_optional(TierLock::acquire(lock_path(written)));
  const PruneRule everything = {.unused_for = std::chrono::hours(1), .total_bytes = 0};
  const PruneResult result = prune(root_, everything);
  EXPECT_THAT(folders(result.removed), ElementsAre(free));
  EXPECT_THAT(folders(result.in_use), ElementsAre(written, read));
  EXPECT_EQ(count_found(*reader, test_tensors(1)), 4U);
  reader.reset();
  writer.reset();
  EXPECT_EQ(prune(root_, everything).removed.size(), 2U);
}

TEST_F(CacheTest, ATierThatIsBeingRemovedIsCold) {
  const std::string folder = make("bf16", 0);
  const UseLock remover = UseLock::take_alone(folder + "/.use");
  const Identity identity = {{"policy", "bf16"}};
  Tier tier(folder, identity, files_);
  EXPECT_FALSE(tier.complete());
  EXPECT_EQ(tier.why_empty(), "is being removed");
}

TEST_F(CacheTest, APruneThatStopsLeavesTiersWholeOrCold) {
  int calls = 0;
  for (const Fault fault :
       {Fault::kIoError, Fault::kKill, Fault::kPowerLossOfAll, Fault::kPowerLossOfRemovals}) {
    for (int n = 0; n == 0 || n < calls; ++n) {
      const std::string folder = make("bf16", 0);
      FaultyFiles faulty(n, fault);
      try {
        const PruneResult result = prune(root_, {.unused_for = {}, .total_bytes = 0}, faulty);
        EXPECT_EQ(result.failed.size(), 1U);
      } catch (const Killed&) {
        EXPECT_NE(fault, Fault::kIoError);
      }
      EXPECT_TRUE(faulty.fired()) << n;
      const Identity identity = {{"policy", "bf16"}};
      {
        Tier tier(folder, identity, files_);
        const std::size_t found = count_found(tier, test_tensors(1));
        EXPECT_TRUE(tier.complete() ? found == 4 : found == 0) << n;
        EXPECT_FALSE(n > 1 && tier.complete()) << n << ": the marker's removal was not on disk";
      }
      FaultyFiles whole;
      prune(root_, {.unused_for = {}, .total_bytes = 0}, whole);
      if (n == 0) {
        make("bf16", 0);
        FaultyFiles counting;
        prune(root_, {.unused_for = {}, .total_bytes = 0}, counting);
        calls = counting.calls();
      }
      EXPECT_THAT(list_tiers(root_), IsEmpty()) << n;
    }
  }
  EXPECT_GT(calls, 8);
}

}  // namespace
}  // namespace sinew

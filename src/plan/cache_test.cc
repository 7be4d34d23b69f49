#include "plan/cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
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
    {
      Tier tier(folder, identity, files_);
      build(tier, test_tensors(1));
    }
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
    age(old, 3);
  }
  for (const TierInfo& tier : list_tiers(root_)) {
    EXPECT_FALSE(tier.in_use) << tier.folder;
    if (tier.folder == old) {
      EXPECT_EQ(days(tier.last_used), 0) << "the end of the use was not noted";
    }
  }
}

/// What list_tiers says of one folder.
class CacheStateTest : public CacheTest {
 protected:
  TierInfo info(const std::string& folder) {
    for (TierInfo& tier : list_tiers(root_)) {
      if (tier.folder == folder) return tier;
    }
    ADD_FAILURE() << folder << " is not listed";
    return {};
  }
  static void flip(const std::string& path, std::size_t byte, unsigned bit = 0) {
    std::string text = contents(path);
    ASSERT_LT(byte, text.size());
    text[byte] = static_cast<char>(static_cast<unsigned char>(text[byte]) ^ 1U << bit);
    overwrite(path, text);
  }
};

TEST_F(CacheStateTest, CountsTensors) {
  const std::string folder = make("bf16", 0);
  EXPECT_EQ(info(folder).tensors, 4U);
}

TEST_F(CacheStateTest, WhatWasInterruptedIsNotDamaged) {
  const std::string again = make("bf16", 0);
  std::filesystem::remove(again + "/.complete");
  EXPECT_FALSE(info(again).damaged);
  EXPECT_EQ(info(again).identity, (Identity{{"policy", "bf16"}})) << "the manifest still tells whose it is";
  const std::string first = make("f32", 0);
  std::filesystem::remove(first + "/.complete");
  std::filesystem::remove(first + "/manifest.json");
  EXPECT_FALSE(info(first).damaged);
  EXPECT_EQ(info(first).wrong_path, first + "/.complete");
  EXPECT_TRUE(info(first).identity.empty());
  EXPECT_TRUE(check_tier(info(first)).damages.empty());
}

TEST_F(CacheStateTest, WhatNoBuildLeavesIsDamaged) {
  const std::string folder = make("bf16", 0);
  const std::string manifest = contents(folder + "/manifest.json");
  const std::string marker = contents(folder + "/.complete");
  const auto expect_damaged = [&](const std::string& path, const char* where) {
    const TierInfo found = info(folder);
    EXPECT_FALSE(found.complete) << where;
    EXPECT_TRUE(found.damaged) << where;
    EXPECT_EQ(found.wrong_path, path) << where;
    const TierCheck check = check_tier(found);
    ASSERT_EQ(check.damages.size(), 1U) << where;
    EXPECT_EQ(check.damages.front().path, path) << where;
    EXPECT_EQ(check.damages.front().reason, found.why_empty) << where;
    EXPECT_TRUE(check.damages.front().key.name.empty()) << where;
  };
  overwrite(folder + "/manifest.json", manifest.substr(0, manifest.size() / 2));
  expect_damaged(folder + "/manifest.json", "truncated manifest");
  EXPECT_TRUE(info(folder).identity.empty());
  std::string mixed = manifest;  // well-formed, and of another tier
  const std::string policy = "\"policy\": \"bf16\"";
  ASSERT_NE(mixed.find(policy), std::string::npos);
  mixed.replace(mixed.find(policy), policy.size(), "\"policy\": \"mixd\"");
  overwrite(folder + "/manifest.json", mixed);
  expect_damaged(folder + "/.complete", "another manifest");
  std::filesystem::remove(folder + "/manifest.json");
  expect_damaged(folder + "/manifest.json", "no manifest");
  overwrite(folder + "/manifest.json", "{}");
  overwrite(folder + "/.complete", marker_text(digest_of("{}")));
  expect_damaged(folder + "/manifest.json", "a manifest that nobody wrote");
  overwrite(folder + "/manifest.json", manifest);
  overwrite(folder + "/.complete", "");
  expect_damaged(folder + "/.complete", "empty marker");
  overwrite(folder + "/.complete", std::string(100'000, 'x'));
  expect_damaged(folder + "/.complete", "a marker that nobody wrote");
  for (std::size_t byte = 0; byte < marker.size(); ++byte) {
    overwrite(folder + "/.complete", marker);
    flip(folder + "/.complete", byte, byte % 8);
    expect_damaged(folder + "/.complete", "flipped bit in the marker");
  }
  overwrite(folder + "/.complete", marker);
  EXPECT_TRUE(info(folder).complete);
}

TEST_F(CacheStateTest, ATierUnderAnothersNameIsDamaged) {
  const std::string folder = make("bf16", 0);
  const std::string other = tier_folder(root_, {{"policy", "f32"}});
  std::filesystem::rename(folder, other);
  EXPECT_TRUE(info(other).damaged);
  EXPECT_EQ(info(other).why_empty, "its identity is not that of the folder's name");
  EXPECT_TRUE(info(other).identity.empty());
}

TEST_F(CacheStateTest, WhatAnotherVersionMadeIsColdOnly) {
  const std::string folder = make("bf16", 0);
  std::string manifest = contents(folder + "/manifest.json");
  const std::size_t at = manifest.find(kTierFormat);
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at, kTierFormat.size(), "sinew-tier-0");
  overwrite(folder + "/manifest.json", manifest);
  overwrite(folder + "/.complete", "sinew-tier-0 " + digest_of(manifest).hex() + "\n");
  EXPECT_FALSE(info(folder).complete);
  EXPECT_FALSE(info(folder).damaged);
  EXPECT_THAT(info(folder).why_empty,
              ::testing::HasSubstr("another version of sinew: format 'sinew-tier-0'"));
}

TEST_F(CacheStateTest, WhatIsBeingWrittenIsNotDamaged) {
  const std::string folder = make("bf16", 0);
  overwrite(folder + "/manifest.json", "half of i");
  const TierLock writer = TierLock::acquire(lock_path(folder));
  EXPECT_FALSE(info(folder).damaged);
  EXPECT_TRUE(info(folder).being_written);
  EXPECT_EQ(info(folder).why_empty, "is being written");
}

TEST_F(CacheStateTest, TimesOutsideOfTheClocksRangeAreItsEnds) {
  const std::string folder = make("bf16", 0);
  for (const std::int64_t seconds : {std::int64_t{-5'000'000'000}, std::int64_t{15'000'000'000}}) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    for (const char* name : {"/.use", "/.complete", ""})
      ASSERT_EQ(::utimensat(AT_FDCWD, (folder + name).c_str(), times, 0), 0);
    EXPECT_EQ(info(folder).last_used > std::chrono::system_clock::now(), seconds > 0);
    EXPECT_EQ(prune(root_, {.unused_for = std::chrono::hours(1), .dry_run = true}).removed.size(),
              seconds > 0 ? 0U : 1U);
  }
}

TEST_F(CacheStateTest, AFolderThatCannotBeListedIsAnError) {
  std::filesystem::create_directories(root_);
  overwrite(root_ + "/plans", "a file");
  EXPECT_THROW(list_tiers(root_), Error);
  EXPECT_THROW(prune(root_, {}), Error);
}

TEST_F(CacheStateTest, ACheckReadsEverythingAndNamesWhatIsDamaged) {
  const std::string folder = make("bf16", 3);
  const FileTime used = info(folder).last_used;
  std::uint64_t read = 0;
  const auto count = [&](std::uint64_t bytes) { read += bytes; };
  TierCheck check = check_tier(info(folder), count);
  EXPECT_TRUE(check.tier.complete);
  EXPECT_TRUE(check.damages.empty());
  EXPECT_EQ(read, check.tier.bytes);
  EXPECT_EQ(info(folder).last_used, used) << "a check is no use";
  const TierKey key{"head.bias", ""};
  const std::string path = folder + "/" + file_name(key);
  flip(path, contents(path).size() - 1);
  check = check_tier(info(folder));
  ASSERT_EQ(check.damages.size(), 1U);
  EXPECT_EQ(check.damages.front().key, key);
  EXPECT_EQ(check.damages.front().path, path);
  EXPECT_TRUE(check.tier.complete);
  EXPECT_FALSE(check.tier.damaged);
}

TEST_F(CacheStateTest, WhatChangesDuringACheckIsNoDamage) {
  const std::string folder = make("bf16", 0);
  const Identity identity = {{"policy", "bf16"}};
  const TierInfo before = info(folder);
  int calls = 0;
  const TierCheck rebuilt = check_tier(before, [&](std::uint64_t) {
    if (calls++ > 0) return;  // once, after the first file
    Tier writer(folder, identity, files_);
    build(writer, test_tensors(2));
  });
  EXPECT_TRUE(rebuilt.tier.complete);
  EXPECT_TRUE(rebuilt.damages.empty());
  EXPECT_GT(calls, 4) << "the new tier was not read";
  std::optional<TierLock> lock;
  const TierCheck unfinished = check_tier(info(folder), [&](std::uint64_t) {
    if (lock) return;
    lock = TierLock::acquire(lock_path(folder));
    Tier writer(folder, identity, files_);
    for (const auto& [key, tensor] : test_tensors(3)) writer.put(key, tensor);
  });
  EXPECT_FALSE(unfinished.tier.complete);
  EXPECT_TRUE(unfinished.damages.empty());
  EXPECT_EQ(unfinished.tier.why_empty, "is being written");
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

TEST_F(CacheTest, PrunesOnlyWhatTheRuleIsAbout) {
  const std::string a = make("a", 5);
  const std::string b = make("b", 7);
  const std::string c = make("c", 6);
  const std::string cold = make("cold", 6);
  std::filesystem::remove(cold + "/.complete");
  const std::uint64_t size = list_tiers(root_).front().bytes;
  const auto only = [&](const TierInfo& tier) { return tier.folder == a || tier.folder == c; };
  EXPECT_THAT(prune(root_, {.total_bytes = 2 * size, .only = only}).removed, IsEmpty()) << "others count";
  EXPECT_THAT(folders(prune(root_, {.total_bytes = size, .only = only}).removed), ElementsAre(c));
  EXPECT_THAT(folders(prune(root_, {.total_bytes = 0, .only = only}).removed), ElementsAre(a));
  EXPECT_THAT(folders(list_tiers(root_)), UnorderedElementsAre(b, cold));
}

TEST_F(CacheTest, ADryRunSaysTheSameAndRemovesNothing) {
  make("a", 5);
  make("b", 7);
  make("c", 6);
  const std::string cold = make("cold", 1);
  std::filesystem::remove(cold + "/.complete");
  overwrite(lock_path(tier_folder(root_, {{"policy", "gone"}})), "1 2\n");
  const Identity identity = {{"policy", "b"}};
  const Tier reader(tier_folder(root_, identity), identity, files_);
  const PruneRule rule = {.unused_for = std::chrono::hours(24 * 5 + 12), .total_bytes = 1};
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& item : std::filesystem::recursive_directory_iterator(root_)) out.push_back(item.path());
    std::ranges::sort(out);
    return out;
  };
  const auto before = names();
  PruneRule dry = rule;
  dry.dry_run = true;
  const PruneResult said = prune(root_, dry);
  EXPECT_EQ(names(), before);
  const PruneResult done = prune(root_, rule);
  EXPECT_EQ(folders(said.removed), folders(done.removed));
  EXPECT_EQ(folders(said.in_use), folders(done.in_use));
  EXPECT_EQ(done.removed.size(), 3U);
  EXPECT_EQ(done.in_use.size(), 1U);
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

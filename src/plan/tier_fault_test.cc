// Every call a build makes of the file system fails in turn, in every way: a tier is afterwards what it was,
// or cold, or complete, and never holds a wrong tensor.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

constexpr Fault kFaults[] = {Fault::kIoError,           Fault::kNoSpace,        Fault::kKill,
                             Fault::kKillAfter,         Fault::kPowerLossOfAll, Fault::kPowerLossOfRemovals,
                             Fault::kPowerLossOfRenames};

/// What stands in the folder before, and what the run makes of it.
struct Scenario {
  const char* name;
  bool existing = false;       // a tier of the first identity, its files known to be whole
  Identity identity = kFirst;  // of the run
  unsigned seed = 1;
  bool one_damaged = false;  // the run repairs one tensor instead of writing all
};

const Scenario kScenarios[] = {
    {.name = "new"},
    {.name = "other identity", .existing = true, .identity = kSecond, .seed = 2},
    {.name = "forced", .existing = true},
    {.name = "repair", .existing = true, .one_damaged = true},
};

void damage(const std::string& folder, const TierKey& key) {
  const std::string path = folder + "/" + file_name(key);
  std::string bytes = contents(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  overwrite(path, bytes);
}

void run(const Scenario& scenario, const std::string& folder, FileLayer& files) {
  Tier tier(folder, scenario.identity, files);
  const TestTensors tensors = test_tensors(scenario.seed);
  if (!scenario.one_damaged) return build(tier, tensors);
  for (const auto& [key, tensor] : tensors) {
    if (!tier.find(key)) tier.put(key, tensor);
  }
  tier.finish(keys_of(tensors));
}

int count_calls(const Scenario& scenario) {
  const TestFolder folder;
  FaultyFiles files;
  const std::string tier = folder.file("tier");
  if (scenario.existing) {
    Tier first(tier, kFirst, files);
    build(first, test_tensors(1));
  }
  if (scenario.one_damaged) damage(tier, keys_of(test_tensors(1)).front());
  const int before = files.calls();
  run(scenario, tier, files);
  return files.calls() - before;
}

/// Every tensor that either identity is given is its own.
void expect_nothing_wrong(const std::string& folder, const std::string& where) {
  FaultyFiles quiet;
  quiet.set_writable(false);  // looking must not change what is looked at
  for (const auto& [identity, seed] : {std::pair(kFirst, 1U), std::pair(kSecond, 2U)}) {
    Tier tier(folder, identity, quiet);
    const TestTensors expected = test_tensors(seed);
    const std::size_t found = count_found(tier, expected, where);
    EXPECT_TRUE(tier.complete() || found == 0) << where;
  }
}

/// The files of a build that nothing disturbs.
const std::map<std::string, std::string>& undisturbed(const Scenario& scenario) {
  static std::map<unsigned, std::map<std::string, std::string>> known;
  auto& files = known[scenario.seed];
  if (files.empty()) {
    const TestFolder folder;
    FaultyFiles quiet;
    Tier tier(folder.file("tier"), scenario.identity, quiet);
    build(tier, test_tensors(scenario.seed));
    files = files_in(folder.file("tier"));
  }
  return files;
}

void expect_rebuilds(const Scenario& scenario, const std::string& folder, const std::string& where) {
  FaultyFiles files;
  run(scenario, folder, files);
  Tier tier(folder, scenario.identity, files);
  EXPECT_TRUE(tier.complete()) << where << ": " << tier.why_empty();
  EXPECT_EQ(count_found(tier, test_tensors(scenario.seed), where), 4U) << where;
  EXPECT_EQ(files_in(folder), undisturbed(scenario)) << where;
}

/// Hundreds of tensors are damaged here, and the log would say so of each. Thousands of files are made, in
/// memory where there is such a folder (6 s instead of 44 s on a busy disk): the faults are the layer's, not
/// the disk's.
class TierFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    if (::access("/dev/shm", W_OK | X_OK) != 0) return;
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", "/dev/shm", 1);
  }
  void TearDown() override {
    set_log_level(LogLevel::kWarning);
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(TierFaults, EveryCallFailsInEveryWay) {
  for (const Scenario& scenario : kScenarios) {
    const int calls = count_calls(scenario);
    ASSERT_GT(calls, 10) << scenario.name;
    for (const Fault fault : kFaults) {
      const TestFolder folder;
      const auto tier_at = [&](int n) { return folder.file("tier" + std::to_string(n)); };
      if (scenario.existing) {
        // All of them first, so that one wait serves for all: files count as verified only once they have
        // settled, and verified files are those that could be handed out unread.
        FaultyFiles quiet;
        for (int n = 0; n < calls; ++n) {
          Tier first(tier_at(n), kFirst, quiet);
          build(first, test_tensors(1));
        }
        let_files_settle();
        for (int n = 0; n < calls; ++n) {
          Tier first(tier_at(n), kFirst, quiet);
          ASSERT_TRUE(first.verify().empty());
          ASSERT_TRUE(std::filesystem::exists(tier_at(n) + "/.verified"));
          if (scenario.one_damaged) damage(tier_at(n), keys_of(test_tensors(1)).front());
        }
      }
      for (int n = 0; n < calls; ++n) {
        const std::string where = std::string(scenario.name) + ", fault " +
                                  std::to_string(static_cast<int>(fault)) + " at call " + std::to_string(n);
        FaultyFiles files(n, fault);
        try {
          run(scenario, tier_at(n), files);
        } catch (const Killed&) {
          EXPECT_NE(fault, Fault::kIoError) << where;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kIo) << where;
        }
        ASSERT_TRUE(files.fired()) << where;
        expect_nothing_wrong(tier_at(n), where);
        expect_rebuilds(scenario, tier_at(n), where);
      }
    }
  }
}

TEST_F(TierFaults, UntilTheMarkerGoesTheOldTierIsComplete) {
  for (int n = 0; n < 2; ++n) {  // the folder is made, which it is; the marker is removed
    const TestFolder folder;
    FaultyFiles quiet;
    {
      Tier first(folder.file("tier"), kFirst, quiet);
      build(first, test_tensors(1));
    }
    FaultyFiles files(n, Fault::kKill);
    EXPECT_THROW(run(kScenarios[1], folder.file("tier"), files), Killed);
    Tier tier(folder.file("tier"), kFirst, quiet);
    EXPECT_TRUE(tier.complete()) << n << ": " << tier.why_empty();
    EXPECT_EQ(count_found(tier, test_tensors(1)), 4U);
  }
}

TEST_F(TierFaults, TheSameTierGoesOnAfterAnError) {
  const int calls = count_calls(kScenarios[0]);
  for (int n = 0; n < calls; ++n) {
    const TestFolder folder;
    FaultyFiles files(n, Fault::kIoError);
    const TestTensors tensors = test_tensors(1);
    Tier tier(folder.file("tier"), kFirst, files);
    int errors = 0;
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        build(tier, tensors);
        break;
      } catch (const Error&) {
        ++errors;
        EXPECT_FALSE(tier.complete()) << n;
      }
    }
    // A failure to note what was checked costs a check and nothing else.
    EXPECT_LE(errors, 1) << n;
    EXPECT_TRUE(tier.complete()) << n;
    EXPECT_EQ(count_found(tier, tensors), 4U) << n;
    for (const auto& name : std::filesystem::directory_iterator(folder.file("tier")))
      EXPECT_FALSE(is_temporary(name.path().filename().string())) << n << " left " << name.path();
  }
}

TEST_F(TierFaults, AProcessThatDiesLeavesNothingThatStays) {
  for (const Scenario& scenario : {kScenarios[0], kScenarios[1]}) {
    const int calls = count_calls(scenario);
    for (int n = 0; n < calls; n += 3) {
      const TestFolder folder;
      const std::string where = std::string(scenario.name) + " at call " + std::to_string(n);
      if (scenario.existing) {
        FaultyFiles quiet;
        Tier first(folder.file("tier"), kFirst, quiet);
        build(first, test_tensors(1));
      }
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        FaultyFiles files(n, Fault::kExit);
        run(scenario, folder.file("tier"), files);
        ::_exit(0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 9) << where << ": the fault did not come";
      expect_nothing_wrong(folder.file("tier"), where);
      expect_rebuilds(scenario, folder.file("tier"), where);
      for (const auto& name : std::filesystem::directory_iterator(folder.file("tier")))
        EXPECT_FALSE(is_temporary(name.path().filename().string())) << where << " left " << name.path();
    }
  }
}

}  // namespace
}  // namespace sinew

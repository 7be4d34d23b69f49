#include "plan/prepared_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "plan/cache.h"
#include "plan/faulty_files.h"
#include "plan/prepared_test_support.h"

namespace sinew {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PreparedWeightsTest : public testing::Test {
 protected:
  CacheOptions cache(bool force = false) const { return {.root = folder_.file("cache"), .force = force}; }
  /// The tiers, host first.
  std::vector<TierInfo> tiers() const {
    auto out = list_tiers(folder_.file("cache"));
    std::ranges::sort(out, {}, [](const TierInfo& tier) { return tier.identity.at("tier") != "host"; });
    return out;
  }
  std::string file_of(const std::string& tier, const TierKey& key) const {
    for (const TierInfo& info : tiers()) {
      if (info.identity.at("tier") == tier) return info.folder + "/" + file_name(key);
    }
    ADD_FAILURE() << "no " << tier << " tier";
    return {};
  }
  /// Changes one byte of the data, and leaves size and times.
  static void damage(const std::string& path) {
    const auto time = std::filesystem::last_write_time(path);
    std::string text = contents(path);
    text.back() = static_cast<char>(text.back() ^ 0x10);
    overwrite(path, text);
    std::filesystem::last_write_time(path, time);
  }

  TestFolder folder_;
  TestModel model_;
};

constexpr std::size_t kForms = 4;  // a, b.twice, c reversed, c as it is

TEST_F(PreparedWeightsTest, ColdThenWarm) {
  const Started cold = start(model_, cache());
  EXPECT_EQ(cold.statistics.path, LoadPath::kCold);
  EXPECT_EQ(cold.statistics.cold, kForms);
  EXPECT_EQ(cold.statistics.warm, 0U);
  EXPECT_EQ(cold.statistics.not_kept, "");
  EXPECT_EQ(cold.statistics.device_bytes, 8 * 6 * (4 + 4 + 2 + 2));
  EXPECT_EQ(model_.transforms, 1);
  EXPECT_EQ(model_.packed, 3);

  // Nothing is computed, and no byte of a tensor in the checkpoint is touched: it could not be.
  const Started warm = start(model_, cache(), &model_.headers());
  EXPECT_EQ(warm.statistics.path, LoadPath::kWarm);
  EXPECT_EQ(warm.statistics.warm, kForms);
  EXPECT_EQ(warm.statistics.cold, 0U);
  EXPECT_EQ(model_.transforms, 1);
  EXPECT_EQ(model_.packed, 3);
  EXPECT_EQ(warm.bytes, cold.bytes);
  for (const ResidentBytes& data : warm.data)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.get()) % 64, 0U);
}

TEST_F(PreparedWeightsTest, FormsAreWhatTheDeviceMadeOfThePlan) {
  const Started uncached = start(model_, {});
  EXPECT_EQ(uncached.statistics.path, LoadPath::kUncached);
  EXPECT_EQ(uncached.statistics.not_kept, "no cache");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("cache")));
  EXPECT_EQ(start(model_, cache()).bytes, uncached.bytes);
  std::string first(reinterpret_cast<const char*>(model_.sources().get("a").data), 8 * 6 * 4);
  std::ranges::reverse(first);
  EXPECT_EQ(uncached.bytes.at(0), first);
}

TEST_F(PreparedWeightsTest, TheHostTierHasWhatTheCheckpointHasNot) {
  start(model_, cache());
  const auto found = tiers();
  ASSERT_EQ(found.size(), 2U);
  Tier host(found[0].folder, found[0].identity);
  EXPECT_THAT(host.keys(), ElementsAre(TierKey{"b.twice", ""}, TierKey{"c", ""}, TierKey{"table", ""}));
  const TensorView twice = have(host.find({"b.twice", ""}));
  EXPECT_EQ(twice.dtype, DType::kF32);
  EXPECT_EQ(twice.as<float>()[0], 2 * model_.sources().get("b").as<float>()[0]);
}

TEST_F(PreparedWeightsTest, TheDeviceTierIsMadeFromTheHostTier) {
  start(model_, cache());
  std::filesystem::remove_all(tiers()[1].folder);
  const Started again = start(model_, cache());
  EXPECT_EQ(again.statistics.path, LoadPath::kCold);
  EXPECT_EQ(again.statistics.host_warm, 3U);
  EXPECT_EQ(again.statistics.host_cold, 0U);
  EXPECT_EQ(model_.transforms, 1);
}

TEST_F(PreparedWeightsTest, ADamagedTensorAloneIsMadeAgain) {
  const Started cold = start(model_, cache());
  let_files_settle();
  start(model_, cache());  // looks at all files, and remembers that they are whole
  damage(file_of("device", key_of("b.twice", {"u8", "reversed", 0})));
  const Started partial = start(model_, cache());
  EXPECT_EQ(partial.statistics.path, LoadPath::kPartial);
  EXPECT_EQ(partial.statistics.cold, 1U);
  EXPECT_EQ(partial.statistics.warm, kForms - 1);
  EXPECT_EQ(partial.statistics.damaged, 1U);
  EXPECT_EQ(partial.statistics.host_warm, 2U) << "b.twice, and the table that stays on the host";
  EXPECT_EQ(partial.bytes, cold.bytes);
  const Started warm = start(model_, cache(), &model_.headers());
  EXPECT_EQ(warm.statistics.path, LoadPath::kWarm);
  EXPECT_EQ(warm.bytes, cold.bytes);
}

TEST_F(PreparedWeightsTest, DamageInBothTiersGoesBackToTheCheckpoint) {
  const Started cold = start(model_, cache());
  damage(file_of("device", key_of("b.twice", {"u8", "reversed", 0})));
  damage(file_of("host", {"b.twice", ""}));
  const Started partial = start(model_, cache());
  EXPECT_EQ(partial.statistics.damaged, 2U);
  EXPECT_EQ(partial.statistics.host_cold, 1U);
  EXPECT_EQ(partial.bytes, cold.bytes);
  // Both are whole again.
  EXPECT_EQ(start(model_, cache(), &model_.headers()).statistics.path, LoadPath::kWarm);
  std::filesystem::remove_all(tiers()[1].folder);
  EXPECT_EQ(start(model_, cache()).statistics.host_cold, 0U);
}

TEST_F(PreparedWeightsTest, AMissingFileIsMadeAgain) {
  const Started cold = start(model_, cache());
  std::filesystem::remove(file_of("device", key_of("a", {"u8", "reversed", 0})));
  const Started partial = start(model_, cache());
  EXPECT_EQ(partial.statistics.path, LoadPath::kPartial);
  EXPECT_EQ(partial.statistics.cold, 1U);
  EXPECT_EQ(partial.bytes, cold.bytes);
  EXPECT_EQ(start(model_, cache(), &model_.headers()).statistics.path, LoadPath::kWarm);
}

TEST_F(PreparedWeightsTest, CheckpointsOfOneHeaderShareNothing) {
  TestModel other(2);
  start(model_, cache());
  const Started cold = start(other, cache());
  EXPECT_EQ(cold.statistics.path, LoadPath::kCold);
  EXPECT_EQ(tiers().size(), 4U);
  EXPECT_EQ(start(model_, cache(), &model_.headers()).statistics.path, LoadPath::kWarm);
  EXPECT_NE(cold.bytes, start(model_, cache()).bytes);
}

TEST_F(PreparedWeightsTest, EveryFactOfTheIdentityCounts) {
  start(model_, cache());
  const auto path_of = [&](const PlanOrigin& origin, const Identity& device) {
    PreparedWeights weights(model_.plan(), model_.sources(), origin, device, cache());
    return weights.wants_build() ? LoadPath::kCold : LoadPath::kWarm;
  };
  EXPECT_EQ(path_of(model_.origin(), kTestDevice), LoadPath::kWarm);
  for (const auto& [fact, value] : model_.origin().facts) {
    PlanOrigin origin = model_.origin();
    origin.facts[fact] = value + "x";
    EXPECT_EQ(path_of(origin, kTestDevice), LoadPath::kCold) << fact;
  }
  for (const auto& [fact, value] : kTestDevice) {
    Identity device = kTestDevice;
    device[fact] = value + "x";
    EXPECT_EQ(path_of(model_.origin(), device), LoadPath::kCold) << fact;
  }
}

TEST_F(PreparedWeightsTest, ForceMakesAllAgainAndTheSameBytes) {
  start(model_, cache());
  const auto before = std::pair(files_in(tiers()[0].folder), files_in(tiers()[1].folder));
  const Started forced = start(model_, cache(true));
  EXPECT_TRUE(forced.statistics.forced);
  EXPECT_EQ(forced.statistics.path, LoadPath::kCold);
  EXPECT_EQ(forced.statistics.cold, kForms);
  EXPECT_EQ(model_.transforms, 2);
  EXPECT_EQ(before, std::pair(files_in(tiers()[0].folder), files_in(tiers()[1].folder)));
}

TEST_F(PreparedWeightsTest, AFolderThatCannotBeWrittenKeepsNothing) {
  FaultyFiles files;
  files.set_writable(false);
  const Started cold = start(model_, cache(), nullptr, files);
  EXPECT_EQ(cold.statistics.path, LoadPath::kCold);
  EXPECT_THAT(cold.statistics.not_kept, HasSubstr("cannot be written to"));
  EXPECT_TRUE(tiers().empty());
  // Once somebody else has filled it, it is read.
  const Started filled = start(model_, cache());
  const Started warm = start(model_, cache(), &model_.headers(), files);
  EXPECT_EQ(warm.statistics.path, LoadPath::kWarm);
  EXPECT_EQ(warm.statistics.not_kept, "");
  EXPECT_EQ(warm.bytes, filled.bytes);
}

TEST_F(PreparedWeightsTest, AFullDiskIsSeenBeforeAnythingIsWritten) {
  FaultyFiles files;
  files.set_free(900);
  const Started cold = start(model_, cache(), nullptr, files);
  EXPECT_EQ(cold.statistics.path, LoadPath::kCold);
  // Forms 576 bytes, and on the host 192 + 96 + 96.
  EXPECT_THAT(cold.statistics.not_kept, HasSubstr("900"));
  EXPECT_EQ(cold.bytes, start(model_, {}).bytes);
  for (const TierInfo& tier : tiers()) EXPECT_FALSE(tier.complete);
}

TEST_F(PreparedWeightsTest, AFailedWriteLeavesAColdStart) {
  const Started expected = start(model_, {});
  int most = 0;
  {
    FaultyFiles files;
    const TestFolder other;
    start(model_, {.root = other.file("cache")}, nullptr, files);
    most = files.calls();
  }
  ASSERT_GT(most, 20);
  for (const Fault fault : {Fault::kIoError, Fault::kNoSpace}) {
    for (int at = 0; at < most; ++at) {
      const TestFolder other;
      const CacheOptions options{.root = other.file("cache")};
      FaultyFiles files(at, fault);
      EXPECT_EQ(start(model_, options, nullptr, files).bytes, expected.bytes) << at;
      // Whatever is on disk now, the next start is right, and the one after it warm.
      FaultyFiles whole;
      EXPECT_EQ(start(model_, options, nullptr, whole).bytes, expected.bytes) << at;
      const Started warm = start(model_, options, &model_.headers(), whole);
      EXPECT_EQ(warm.statistics.path, LoadPath::kWarm) << at;
      EXPECT_EQ(warm.bytes, expected.bytes) << at;
    }
  }
}

TEST_F(PreparedWeightsTest, AFailedTransformIsNotCached) {
  model_.broken = true;
  EXPECT_THROW(start(model_, cache()), Error);
  model_.broken = false;
  EXPECT_EQ(start(model_, cache()).statistics.path, LoadPath::kCold);
  EXPECT_EQ(start(model_, cache(), &model_.headers()).statistics.path, LoadPath::kWarm);
}

TEST_F(PreparedWeightsTest, AFilteredBuildIsPartOfALaterOne) {
  {
    PreparedWeights weights(model_.plan(), model_.sources(), model_.origin(), kTestDevice, cache());
    weights.build(model_.requests(), {.categories = {"vector"}, .names = {}});
    EXPECT_EQ(weights.statistics().cold, 2U);
  }
  const Started partial = start(model_, cache());
  EXPECT_EQ(partial.statistics.path, LoadPath::kPartial);
  EXPECT_EQ(partial.statistics.warm, 2U);
  EXPECT_EQ(partial.statistics.cold, 2U);
  EXPECT_EQ(start(model_, cache(), &model_.headers()).statistics.path, LoadPath::kWarm);
  PreparedWeights weights(model_.plan(), model_.sources(), model_.origin(), kTestDevice, cache());
  EXPECT_THROW(weights.build(model_.requests(), {.categories = {"feet"}, .names = {}}), Error);
}

TEST_F(PreparedWeightsTest, VerifyFullReadsTheCheckpointAndEveryFile) {
  start(model_, cache());
  let_files_settle();
  start(model_, cache());
  CacheOptions full = cache();
  full.verify_full = true;
  const Started whole = start(model_, full, &model_.headers());
  EXPECT_EQ(whole.statistics.path, LoadPath::kWarm);
  damage(file_of("device", key_of("a", {"u8", "reversed", 0})));
  EXPECT_EQ(start(model_, full).statistics.damaged, 1U);
}

TEST_F(PreparedWeightsTest, SeveralStartsAtOnceBuildOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> warm = 0;
  const Started expected = start(model_, {});
  model_.packed = 0;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const Started started = start(model_, cache());
      EXPECT_EQ(started.bytes, expected.bytes);
      if (started.statistics.cold == 0) ++warm;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(warm, 2);
  EXPECT_EQ(model_.packed, 3);
}

TEST_F(PreparedWeightsTest, ObserversSeeAllBytesOfAColdStart) {
  std::vector<std::string> phases;
  std::uint64_t promised = 0, seen = 0;
  LoadObserver observer;
  observer.begin = [&](std::string_view phase, std::uint64_t bytes) {
    phases.emplace_back(phase);
    promised += bytes;
  };
  observer.advance = [&](std::uint64_t bytes) { seen += bytes; };
  PreparedWeights weights(model_.plan(), model_.sources(), model_.origin(), kTestDevice, cache(), observer);
  weights.build(model_.requests());
  EXPECT_THAT(phases, ElementsAre("reading checkpoint", "preparing weights"));
  EXPECT_EQ(promised, std::filesystem::file_size(model_.path()) + 576);
  EXPECT_EQ(seen, promised);
}

TEST_F(PreparedWeightsTest, PrefaultedWeightsAreTheSame) {
  const Started cold = start(model_, cache());
  CacheOptions options = cache();
  options.prefault = true;
  EXPECT_EQ(start(model_, options, &model_.headers()).bytes, cold.bytes);
}

}  // namespace
}  // namespace sinew

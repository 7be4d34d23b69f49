// Random damage to every file of a tier: all of it is found, none of it is handed out.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/log.h"
#include "io/test_folder.h"
#include "plan/faulty_files.h"
#include "plan/tier_test_support.h"

namespace sinew {
namespace {

class TierDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::kOff);
    Tier tier(path_, kFirst, files_);
    build(tier, tensors_);
    whole_ = files_in(path_);
    for (const auto& [name, bytes] : whole_) names_.push_back(name);
  }
  void TearDown() override { set_log_level(LogLevel::kWarning); }

  /// What must hold with one file damaged; then everything is put right again.
  void expect_found(const std::string& name, const std::string& what) {
    const std::string where = name + ": " + what;
    const bool is_tensor = name.ends_with(".safetensors");
    {
      Tier tier(path_, kFirst, files_);
      EXPECT_EQ(count_found(tier, tensors_, where), is_tensor ? 3U : 0U) << where;
      EXPECT_EQ(tier.complete(), is_tensor) << where;
      ASSERT_EQ(tier.damages().size(), is_tensor ? 1U : 0U) << where;
      if (is_tensor) {
        EXPECT_EQ(tier.damages()[0].path, path_ + "/" + name) << where;
      }
    }
    {
      Tier tier(path_, kFirst, files_);
      const auto damages = tier.verify();
      ASSERT_EQ(damages.size(), 1U) << where;
      EXPECT_NE(damages[0].reason, "") << where;
      // The marker covers the manifest: damage to either is told at the marker.
      EXPECT_EQ(damages[0].path, path_ + "/" + (is_tensor ? name : ".complete")) << where;
    }
    Tier tier(path_, kFirst, files_);
    tier.verify_always();
    std::size_t made = 0;
    for (const auto& [key, tensor] : tensors_) {
      if (tier.find(key)) continue;
      tier.put(key, tensor);
      ++made;
    }
    tier.finish(keys_of(tensors_));
    EXPECT_EQ(made, is_tensor ? 1U : 4U) << where << ": more was made again than was damaged";
    EXPECT_EQ(files_in(path_), whole_) << where;
    EXPECT_TRUE(tier.verify().empty()) << where;
  }

  TestFolder folder_;
  std::string path_ = folder_.file("tier");
  FaultyFiles files_;
  TestTensors tensors_ = test_tensors(1);
  std::map<std::string, std::string> whole_;
  std::vector<std::string> names_;
};

TEST_F(TierDamage, TwoHundredFlippedBits) {
  std::mt19937 random(20261130);
  for (int round = 0; round < 200; ++round) {
    const std::string& name = names_[static_cast<std::size_t>(round) % names_.size()];
    std::string bytes = whole_.at(name);
    const std::size_t bit = random() % (bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    overwrite(path_ + "/" + name, bytes);
    expect_found(name, "bit " + std::to_string(bit));
  }
}

TEST_F(TierDamage, TwoHundredTruncations) {
  std::mt19937 random(20261201);
  for (int round = 0; round < 200; ++round) {
    const std::string& name = names_[static_cast<std::size_t>(round) % names_.size()];
    const std::size_t size = random() % whole_.at(name).size();
    std::filesystem::resize_file(path_ + "/" + name, size);
    expect_found(name, "cut to " + std::to_string(size));
  }
}

TEST_F(TierDamage, EveryBitOfTheNotes) {
  let_files_settle();
  ASSERT_TRUE(Tier(path_, kFirst, files_).verify().empty());
  const std::string notes = contents(path_ + "/.verified");
  ASSERT_FALSE(notes.empty());
  std::mt19937 random(20261202);
  for (int round = 0; round < 100; ++round) {
    std::string bytes = notes;
    const std::size_t bit = random() % (bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    overwrite(path_ + "/.verified", bytes);
    Tier tier(path_, kFirst, files_);
    EXPECT_EQ(count_found(tier, tensors_), 4U) << "bit " << bit;
  }
}

}  // namespace
}  // namespace sinew

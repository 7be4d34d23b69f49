// `sinew plan list`, `verify` and `prune` as a user runs them, on tiers made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli_support.h"
#include "models/hamer/load.h"
#include "plan/cache.h"
#include "plan/tier_test_support.h"

namespace sinew::cli_test {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

/// The digest of tiny_model().
const std::string& tiny_digest() {
  static const std::string kDigest =
      content_digest(hamer::model_files(hamer::load_model(tiny_model())), "").hex();
  return kDigest;
}

Identity host_tier(const std::string& policy = "bf16") {
  return {{"tier", "host"},   {"checkpoint", tiny_digest()},   {"model", "hamer"},
          {"policy", policy}, {"options", "fused, f32 input"}, {"embodiment", "none"},
          {"transforms", "1"}};
}

Identity device_tier(const std::string& policy = "bf16") {
  Identity out = host_tier(policy);
  out["tier"] = "device";
  out["backend"] = "cpu";
  out["isa"] = "avx512-bf16";
  out["library"] = "oneDNN 2.6.3";
  out["layouts"] = "1";
  return out;
}

Identity of_another_model() {
  Identity out = device_tier();
  out["checkpoint"] = std::string(32, '7');
  return out;
}

class CliPlanCache : public testing::Test {
 protected:
  std::string folder_of(const Identity& identity) const { return tier_folder(root_, identity); }

  /// A tier of four tensors that was built and used `days` ago.
  std::string make(const Identity& identity, int days = 0) {
    const std::string folder = folder_of(identity);
    {
      Tier tier(folder, identity);
      build(tier, test_tensors(1));
    }
    age(identity, days);
    return folder;
  }
  void age(const Identity& identity, int days) const {
    timespec then{};
    ::clock_gettime(CLOCK_REALTIME, &then);
    then.tv_sec -= days * 24L * 3600;
    const timespec times[2] = {then, then};
    for (const char* name : {"/.use", "/.complete", ""})
      ASSERT_EQ(::utimensat(AT_FDCWD, (folder_of(identity) + name).c_str(), times, 0), 0) << name;
  }

  Ran plan(std::vector<std::string> words) const {
    const ScopedEnvironment cache("SINEW_CACHE", root_);
    words.insert(words.begin(), "plan");
    return run_sinew(folder_.file(""), words);
  }
  /// The same with --json; the exit status must be `status`.
  Json plan_json(std::vector<std::string> words, int status = 0) const {
    words.emplace_back("--json");
    const Ran ran = plan(words);
    EXPECT_EQ(ran.status, status) << ran.err;
    return Json::parse(ran.out);
  }
  static std::set<std::string> folders(const Json& plans) {
    std::set<std::string> out;
    for (const Json& plan : plans) out.insert(plan.at("folder").get<std::string>());
    return out;
  }
  bool exists(const Identity& identity) const { return std::filesystem::exists(folder_of(identity)); }

  static void flip_last_bit(const std::string& path) {
    std::string text = contents(path);
    ASSERT_FALSE(text.empty()) << path;
    text.back() = static_cast<char>(static_cast<unsigned char>(text.back()) ^ 1U);
    overwrite(path, text);
  }

  TestFolder folder_;
  std::string root_ = folder_.file("cache");
};

TEST_F(CliPlanCache, AnEmptyOrMissingCacheSaysSo) {
  for (const char* verb : {"list", "verify"}) {
    const Ran missing = plan({verb});
    EXPECT_EQ(missing.status, 0) << missing.err;
    EXPECT_EQ(missing.out, "0 plans in " + root_ + ": no such folder\n");
    EXPECT_EQ(plan({verb, tiny_model()}).out,
              "0 plans of " + tiny_model() + " in " + root_ + ": no such folder\n");
  }
  EXPECT_EQ(plan({"prune", "--all"}).out, "removed 0 plans, 0 B in " + root_ + "\n");
  EXPECT_FALSE(std::filesystem::exists(root_)) << "only looking made a folder";
  std::filesystem::create_directories(root_ + "/plans");
  EXPECT_EQ(plan({"list"}).out, "0 plans in " + root_ + "\n");
  const Json json = plan_json({"list"});
  EXPECT_EQ(json.at("cache"), root_);
  EXPECT_EQ(json.at("plans"), Json::array());
  EXPECT_EQ(json.at("total"), (Json{{"count", 0}, {"bytes", 0}}));
}

TEST_F(CliPlanCache, ListIsATable) {
  make(host_tier(), 3);
  make(device_tier(), 1);
  make({}, 5);
  const std::string cold = make(host_tier("f32"), 4);
  std::filesystem::remove(cold + "/.complete");
  age(host_tier(), 3);
  const Tier reader(folder_of(host_tier()), host_tier());
  const Ran ran = plan({"list"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; (end = ran.out.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(ran.out.substr(at, end - at));
  ASSERT_EQ(lines.size(), 7U) << ran.out;
  const auto row = [&](const std::string& identity, const std::string& text) {
    const auto at = std::ranges::find_if(
        lines, [&](const std::string& line) { return line.find(identity) != std::string::npos; });
    ASSERT_NE(at, lines.end()) << identity;
    EXPECT_THAT(*at, MatchesRegex(text));
  };
  const auto shorter = [&](const Identity& identity) {
    return std::filesystem::path(folder_of(identity)).filename().string().substr(0, 12);
  };
  const std::string checkpoint = tiny_digest().substr(0, 12);
  EXPECT_THAT(lines[0],
              MatchesRegex("kind +model +checkpoint +policy +backend +tensors +size +age +last used +"
                           "identity +state"));
  row(shorter(host_tier()), "host +hamer +" + checkpoint +
                                " +bf16 +any +4 +[0-9.]+ kB +3 d +0 s ago +[0-9a-f]+ +"
                                "in use");
  row(shorter(device_tier()), "device +hamer +" + checkpoint +
                                  " +bf16 +cpu avx512-bf16 +4 +[0-9.]+ kB +24 h +"
                                  "24 h ago +[0-9a-f]+ +ready");
  row(shorter({}), "\\? +\\? +\\? +\\? +\\? +4 +[0-9.]+ kB +5 d +5 d ago +[0-9a-f]+ +ready");
  row(shorter(host_tier("f32")), "host +hamer .* cold: was not finished: no marker");
  EXPECT_THAT(lines[1], HasSubstr("in use")) << "what was used last comes first";
  EXPECT_EQ(lines[5], "");
  EXPECT_THAT(lines[6], MatchesRegex("4 plans, [0-9.]+ kB in " + root_));
}

TEST_F(CliPlanCache, ListHasEveryFieldInJson) {
  const std::string folder = make(device_tier(), 0);
  const timespec built[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
  const timespec used[2] = {{1'700'000'060, 0}, {1'700'000'060, 0}};
  ::utimensat(AT_FDCWD, (folder + "/.complete").c_str(), built, 0);
  ::utimensat(AT_FDCWD, (folder + "/.use").c_str(), used, 0);
  std::uint64_t bytes = 0;
  for (const auto& item : std::filesystem::directory_iterator(folder)) bytes += item.file_size();
  const Json json = plan_json({"list"});
  ASSERT_EQ(json.at("plans").size(), 1U);
  const Json expected = {{"folder", folder},
                         {"identity", device_tier()},
                         {"tensors", 4},
                         {"bytes", bytes},
                         {"built", "2023-11-14T22:13:20Z"},
                         {"last_used", "2023-11-14T22:14:20Z"},
                         {"complete", true},
                         {"damaged", false},
                         {"in_use", false},
                         {"being_written", false},
                         {"why", ""}};
  EXPECT_EQ(json.at("plans")[0], expected);
  EXPECT_EQ(json.at("total"), (Json{{"count", 1}, {"bytes", bytes}}));
}

TEST_F(CliPlanCache, AModelSelectsItsCheckpoint) {
  const std::string host = make(host_tier());
  const std::string device = make(device_tier());
  const std::string other = make(of_another_model());
  EXPECT_EQ(folders(plan_json({"list"}).at("plans")), (std::set{host, device, other}));
  EXPECT_EQ(folders(plan_json({"list", tiny_model()}).at("plans")), (std::set{host, device}));
  EXPECT_THAT(plan({"list", tiny_model()}).out, HasSubstr("2 plans of " + tiny_model() + ", "));
  flip_last_bit(other + "/" + file_name({"head.bias", ""}));
  EXPECT_EQ(folders(plan_json({"verify", tiny_model()}).at("plans")), (std::set{host, device}));
  EXPECT_EQ(plan({"verify"}).status, 1);
  EXPECT_EQ(folders(plan_json({"prune", "--all", tiny_model()}).at("removed")), (std::set{host, device}));
  EXPECT_TRUE(exists(of_another_model()));
  const Ran wrong = plan({"list", folder_.file("nothing.ckpt")});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("nothing.ckpt"));
}

TEST_F(CliPlanCache, TheFlagSaysWhichCache) {
  const std::string host = make(host_tier());
  const std::string here = root_;
  root_ = folder_.file("another");
  EXPECT_EQ(folders(plan_json({"list", "--cache", here}).at("plans")), std::set{host});
  EXPECT_THAT(plan({"verify", "--cache", here}).out, HasSubstr("1 plan in " + here));
  EXPECT_EQ(folders(plan_json({"prune", "--all", "--cache", here}).at("removed")), std::set{host});
}

TEST_F(CliPlanCache, AFileInPlaceOfTheFolderIsAnError) {
  std::filesystem::create_directories(root_);
  overwrite(root_ + "/plans", "a file");
  for (const char* verb : {"list", "verify", "prune"}) {
    const Ran ran = plan({verb});
    EXPECT_EQ(ran.status, 1) << verb;
    EXPECT_THAT(ran.err, HasSubstr(root_ + "/plans: cannot list the folder")) << verb;
  }
}

TEST_F(CliPlanCache, VerifyFindsWhatIsWhole) {
  make(host_tier(), 3);
  make(device_tier(), 3);
  const Ran ran = plan({"verify"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out,
              MatchesRegex("2 plans in " + root_ + ": 2 whole, 0 cold, 0 damaged; [0-9.]+ kB read\n"));
  for (const TierInfo& tier : list_tiers(root_)) {
    EXPECT_GT(std::chrono::system_clock::now() - tier.last_used, std::chrono::hours(71))
        << "reading everything counted as a use";
  }
}

TEST_F(CliPlanCache, VerifyNamesTheFileAndTheTensor) {
  make(host_tier());
  const std::string device = make(device_tier());
  const TierKey key{"backbone/blocks.0.attn.qkv.weight", "panel 16"};
  const std::string flipped = device + "/" + file_name(key);
  flip_last_bit(flipped);
  const std::string cut = device + "/" + file_name({"head.bias", ""});
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 1);
  const Ran ran = plan({"verify"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(lines_of(ran.out), 4) << ran.out;
  EXPECT_THAT(
      ran.out,
      AllOf(HasSubstr(flipped + ": tensor 'backbone/blocks.0.attn.qkv.weight (panel 16)': checksum is "),
            HasSubstr(cut + ": tensor 'head.bias': "), HasSubstr("1 whole, 0 cold, 1 damaged"),
            HasSubstr("run: sinew plan build MODEL\n")));
  EXPECT_THAT(plan({"verify", tiny_model()}).out, HasSubstr("run: sinew plan build " + tiny_model() + "\n"));
  const Json json = plan_json({"verify"}, 1);
  EXPECT_EQ(json.at("whole"), 1);
  EXPECT_EQ(json.at("cold"), 0);
  EXPECT_EQ(json.at("damaged"), 1);
  for (const Json& plan : json.at("plans")) {
    EXPECT_EQ(plan.at("state"), plan.at("folder") == device ? "damaged" : "whole");
    if (plan.at("folder") != device) continue;
    ASSERT_EQ(plan.at("damages").size(), 2U);
    EXPECT_EQ(plan.at("damages")[0].at("path"), flipped);
    EXPECT_EQ(plan.at("damages")[0].at("tensor"), key.name);
    EXPECT_EQ(plan.at("damages")[0].at("variant"), key.variant);
    EXPECT_EQ(plan.at("damages")[1].at("path"), cut);
  }
}

TEST_F(CliPlanCache, VerifyFindsATruncatedManifest) {
  const std::string device = make(device_tier());
  make(of_another_model());
  const std::string manifest = device + "/manifest.json";
  std::filesystem::resize_file(manifest, std::filesystem::file_size(manifest) / 2);
  for (const auto& words : std::vector<std::vector<std::string>>{{"verify"}, {"verify", tiny_model()}}) {
    const Ran ran = plan(words);
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.out, AllOf(HasSubstr(manifest + ": manifest: "), HasSubstr("1 damaged")));
  }
  const Json list = plan_json({"list"});
  for (const Json& plan : list.at("plans")) EXPECT_EQ(plan.at("damaged"), plan.at("folder") == device);
}

TEST_F(CliPlanCache, WhatIsUnfinishedIsToldAndIsNoFailure) {
  const std::string cold = make(host_tier());
  std::filesystem::remove(cold + "/.complete");
  const Ran ran = plan({"verify"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr(cold + ": cold: was not finished: no marker\n"),
                             HasSubstr("0 whole, 1 cold, 0 damaged"), Not(HasSubstr("plan build"))));
}

TEST_F(CliPlanCache, PruneRemovesWhatIsOfNoUse) {
  make(host_tier(), 400);
  const std::string cold = make(device_tier());
  std::filesystem::remove(cold + "/.complete");
  const Ran ran = plan({"prune"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\nremoved  device"), HasSubstr("\nremoved 1 plan, ")));
  EXPECT_TRUE(exists(host_tier()));
  EXPECT_FALSE(exists(device_tier()));
}

TEST_F(CliPlanCache, PruneByAge) {
  make(host_tier(), 3);
  make(device_tier(), 31);
  EXPECT_EQ(plan_json({"prune", "--unused-for", "5w"}).at("removed"), Json::array());
  const Json json = plan_json({"prune", "--unused-for", "30d"});
  EXPECT_EQ(folders(json.at("removed")), std::set{folder_of(device_tier())});
  EXPECT_EQ(json.at("removed_bytes"), json.at("removed")[0].at("bytes"));
  EXPECT_EQ(json.at("dry_run"), false);
  EXPECT_TRUE(exists(host_tier()));
  EXPECT_FALSE(exists(device_tier()));
}

TEST_F(CliPlanCache, PruneBySize) {
  make(host_tier(), 3);
  make(device_tier(), 1);
  make(device_tier("f32"), 2);
  std::uint64_t bytes = 0;
  for (const TierInfo& tier : list_tiers(root_)) bytes += tier.bytes;
  EXPECT_EQ(plan_json({"prune", "--max-size", fmt::format("{}B", bytes)}).at("removed"), Json::array());
  EXPECT_EQ(folders(plan_json({"prune", "--max-size", fmt::format("{}B", bytes - 1)}).at("removed")),
            std::set{folder_of(host_tier())});
  EXPECT_EQ(plan({"prune", "--max-size", "1GiB"}).out, "removed 0 plans, 0 B in " + root_ + "\n");
  EXPECT_EQ(plan_json({"prune", "--all"}).at("removed").size(), 2U);
}

TEST_F(CliPlanCache, WhatIsInUseStays) {
  make(host_tier(), 40);
  make(device_tier(), 40);
  const Tier reader(folder_of(device_tier()), device_tier());
  const Ran ran = plan({"prune", "--all"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\nremoved        host"), HasSubstr("\nstays: in use  device"),
                             MatchesRegex("(.|\n)*removed 1 plan, [0-9.]+ kB in .*; 1 in use stays\n")));
  EXPECT_TRUE(exists(device_tier()));
  EXPECT_FALSE(exists(host_tier()));
  const Json json = plan_json({"prune", "--all"});
  EXPECT_EQ(folders(json.at("in_use")), std::set{folder_of(device_tier())});
  EXPECT_EQ(json.at("removed"), Json::array());
  EXPECT_EQ(json.at("failed"), Json::array());
}

TEST_F(CliPlanCache, ADryRunRemovesNothing) {
  make(host_tier(), 40);
  make(device_tier(), 1);
  const Ran ran = plan({"prune", "--unused-for", "30d", "--dry-run"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\nwould go  host"), HasSubstr("\nwould remove 1 plan, ")));
  const Json json = plan_json({"prune", "--all", "--dry-run"});
  EXPECT_EQ(json.at("removed").size(), 2U);
  EXPECT_EQ(json.at("dry_run"), true);
  EXPECT_TRUE(exists(host_tier()));
  EXPECT_TRUE(exists(device_tier()));
}

TEST_F(CliPlanCache, AFailureIsReported) {
  const std::string host = make(host_tier(), 40);
  make(device_tier(), 40);
  std::filesystem::create_directories(host + "/somebody's folder");  // not the tier's, so not removed
  const Ran ran = plan({"prune", "--all"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("sinew: error: " + host));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\nfailed   host"), HasSubstr("; 1 failed\n")));
  EXPECT_FALSE(exists(device_tier())) << "one failure ended the rest";
  const Json json = plan_json({"prune", "--all"}, 1);
  ASSERT_EQ(json.at("failed").size(), 1U);
  EXPECT_THAT(json.at("failed")[0].at("error").get<std::string>(), HasSubstr("somebody's folder"));
}

TEST_F(CliPlanCache, NonsenseIsRefused) {
  make(host_tier(), 40);
  const std::vector<std::vector<std::string>> wrong = {{"--unused-for", "30 parsecs"},
                                                       {"--unused-for", "30"},
                                                       {"--unused-for", ""},
                                                       {"--unused-for=-1d"},
                                                       {"--unused-for", "1e9w"},
                                                       {"--max-size", "big"},
                                                       {"--max-size", "20"},
                                                       {"--max-size", ""},
                                                       {"--max-size", "1e30GB"},
                                                       {"--all", "--unused-for", "30d"},
                                                       {"--all", "--max-size", "1GB"},
                                                       {"--all", "--cache", ""},
                                                       {"--all", ""},
                                                       {"--al"},
                                                       {tiny_model(), tiny_model()}};
  for (std::vector<std::string> words : wrong) {
    words.insert(words.begin(), "prune");
    const Ran ran = plan(words);
    EXPECT_EQ(ran.status, 2) << testing::PrintToString(words) << ran.out;
    EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
    EXPECT_TRUE(exists(host_tier())) << testing::PrintToString(words);
  }
  EXPECT_THAT(plan({"prune", "--unused-for", "30 parsecs"}).err,
              HasSubstr("--unused-for is '30 parsecs', expected a number and a unit: s, m, h, d, w"));
}

}  // namespace
}  // namespace sinew::cli_test

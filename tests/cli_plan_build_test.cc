// `sinew plan build`, `sinew bench` and the options of the cache, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli_support.h"

namespace sinew::cli_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class CliPlanBuild : public testing::Test {
 protected:
  Ran run(const std::vector<std::string>& words) {
    const ScopedEnvironment cache("SINEW_CACHE", folder_.file("cache"));
    return run_sinew(folder_.file(""), words);
  }
  Json json_of(const std::vector<std::string>& words) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    err_ = ran.err;
    return ran.status == 0 ? Json::parse(ran.out) : Json();
  }
  Json build(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"plan", "build", tiny_model(), "--policy", "f32", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(words);
  }
  /// The statistics of one start.
  Json start(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"bench", "start", tiny_model(), "--policy", "f32", "--runs", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(words).at("load");
  }

  TestFolder folder_;
  std::string err_;
};

TEST_F(CliPlanBuild, BuildsOnceAndStartsWarm) {
  const Json cold = build();
  EXPECT_EQ(cold.at("path"), "cold");
  EXPECT_GT(cold.at("n_cold"), 0);
  const Json again = build();
  EXPECT_EQ(again.at("path"), "warm");
  EXPECT_EQ(again.at("n_cold"), 0);
  EXPECT_EQ(again.at("n_warm"), cold.at("n_cold"));
  EXPECT_EQ(start().at("path"), "warm");
  EXPECT_EQ(start({"--prefault"}).at("path"), "warm");
  EXPECT_EQ(build({"--force"}).at("n_cold"), cold.at("n_cold"));
  const Ran text = run({"plan", "build", tiny_model(), "--policy", "f32"});
  EXPECT_THAT(text.out, HasSubstr("warm start in"));
  EXPECT_THAT(text.out, HasSubstr(cold.at("device_folder").get<std::string>()));
}

TEST_F(CliPlanBuild, ABackendWithoutFormsIsRefused) {
  const Ran ran = run({"plan", "build", tiny_model(), "--backend", "reference"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("nothing to build"));
  EXPECT_EQ(run({"plan", "build", tiny_model(), "--backend", "gpu"}).status, 2);
}

TEST_F(CliPlanBuild, PartsAreBuiltByCategory) {
  const Json part = build({"--categories", "attention,mlp"});
  EXPECT_GT(part.at("n_cold"), 0);
  const Json rest = start();
  EXPECT_EQ(rest.at("path"), "partial");
  EXPECT_EQ(rest.at("n_warm"), part.at("n_cold"));
  const Ran wrong = run({"plan", "build", tiny_model(), "--policy", "f32", "--categories", "feet"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("there are attention, "));
}

TEST_F(CliPlanBuild, ADamagedFileIsNamedAndMadeAgain) {
  const std::string folder = build().at("device_folder");
  std::string damaged;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    const std::string path = item.path().string();
    if (path.ends_with(".safetensors") && path > damaged) damaged = path;
  }
  std::fstream file(damaged, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 4);
  file.seekp(-1, std::ios::end);
  file.put(last);
  file.close();
  const Json partial = start();
  EXPECT_EQ(partial.at("path"), "partial");
  EXPECT_EQ(partial.at("n_damaged"), 1);
  EXPECT_EQ(partial.at("n_cold"), 1);
  EXPECT_THAT(err_, HasSubstr(damaged));
  EXPECT_EQ(start({"--verify", "full"}).at("path"), "warm");
}

TEST_F(CliPlanBuild, WithoutACacheNothingIsKept) {
  EXPECT_EQ(start({"--no-cache"}).at("path"), "uncached");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("cache")));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--force"}, {"--prefault"}, {"--verify", "full"}}) {
    std::vector<std::string> words = {"bench", "start", tiny_model(), "--no-cache"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words).status, 2) << more[0];
  }
}

TEST_F(CliPlanBuild, ResultsAreTheSameWithAndWithoutACache) {
  const std::string input = folder_.file("input.safetensors");
  Tensor image(DType::kF32, {3, 256, 192});
  for (std::size_t i = 0; i < image.as<float>().size(); ++i)
    image.as<float>()[i] = static_cast<float>(i % 97) / 50;
  write_safetensors(input, {{"image", image.view()}}, {});
  const auto result = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run", tiny_model(), "--in", input, "--out", folder_.file(name)};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return read_text(folder_.file(name));
  };
  const std::string uncached = result("uncached", {"--no-cache"});
  EXPECT_EQ(result("cold", {}), uncached);
  EXPECT_EQ(result("warm", {}), uncached);
  EXPECT_EQ(result("checked", {"--verify", "full", "--prefault"}), uncached);
  EXPECT_EQ(result("forced", {"--force"}), uncached);
}

TEST_F(CliPlanBuild, BenchLoadMeasuresColdAndWarmStarts) {
  const Json json =
      json_of({"bench", "load", tiny_model(), "--policy", "f32", "--starts", "2", "--runs", "1", "--json"});
  for (const char* field :
       {"cold_s", "warm_s", "first_run_ms", "steady_run_ms", "rss_mb", "device_tier_mb"}) {
    EXPECT_GT(json.at(field).get<double>(), 0) << field;
  }
  EXPECT_EQ(json.at("cold").at("path"), "cold");
  EXPECT_EQ(json.at("warm").at("path"), "warm");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.file("cache"))) << "its own cache is gone";
  EXPECT_EQ(run({"bench", "load", tiny_model(), "--starts", "0"}).status, 2);
  EXPECT_NE(run({"bench", "load", folder_.file("none")}).status, 0);
}

TEST_F(CliPlanBuild, BenchPeakTellsEveryLoopForOneThreadAndForAll) {
  const Json json = json_of({"bench", "peak", "--threads", "2", "--json"});
  ASSERT_FALSE(json.at("reads").empty());
  for (const auto& read : json.at("reads")) EXPECT_GT(read.at("gb_s").get<double>(), 0) << read;
  std::map<std::string, int> loops;
  for (const auto& product : json.at("products")) {
    EXPECT_GT(product.at("gflops").get<double>(), 0) << product;
    loops[product.at("instruction").get<std::string>()] += product.at("threads").get<int>();
  }
  for (const auto& [instruction, threads] : loops) EXPECT_EQ(threads, 1 + 2) << instruction;
  EXPECT_EQ(run({"bench", "peak", "--threads", "-1"}).status, 2);
}

TEST_F(CliPlanBuild, ShowTellsWhatTheDeviceGets) {
  const Json json = json_of({"plan", "show", tiny_model(), "--policy", "f32", "--json"});
  std::size_t bytes = 0;
  for (const Json& tensor : json.at("tensors")) {
    EXPECT_EQ(tensor.at("memory"), "device");
    ASSERT_GE(tensor.at("device").size(), 1U) << tensor.at("name");
    for (const Json& form : tensor.at("device")) {
      EXPECT_GE(form.at("bytes"), tensor.at("bytes"));
      bytes += form.at("bytes").get<std::size_t>();
    }
  }
  EXPECT_EQ(json.at("device_by_dtype").at("f32").at("bytes"), bytes);
  EXPECT_EQ(build().at("device_bytes"), bytes);
}

}  // namespace
}  // namespace sinew::cli_test

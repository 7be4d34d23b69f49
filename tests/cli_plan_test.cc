// `sinew plan` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli_support.h"

namespace sinew::cli_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Ran show(std::vector<std::string> more) {
  const TestFolder folder;
  more.insert(more.begin(), {"plan", "show", tiny_model()});
  return run_sinew(folder.file(""), more);
}

TEST(CliPlan, ShowListsTensorsByCategoryAndName) {
  const Ran ran = show({"--policy", "bf16", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("policy"), "bf16");
  std::size_t bytes = 0;
  std::pair<std::string, std::string> before;
  for (const Json& tensor : json.at("tensors")) {
    const std::pair<std::string, std::string> at = {tensor.at("category"), tensor.at("name")};
    EXPECT_LT(before, at);
    before = at;
    std::size_t count = 1;
    for (const Json& extent : tensor.at("shape")) count *= extent.get<std::size_t>();
    EXPECT_EQ(tensor.at("bytes"), count * (tensor.at("dtype") == "bf16" ? 2 : 4)) << at.second;
    bytes += tensor.at("bytes").get<std::size_t>();
  }
  EXPECT_EQ(json.at("total").at("bytes"), bytes);
  EXPECT_EQ(json.at("total").at("count"), json.at("tensors").size());
  std::size_t by_category = 0, by_dtype = 0;
  for (const auto& [word, share] : json.at("by_category").items())
    by_category += share["bytes"].get<std::size_t>();
  for (const auto& [word, share] : json.at("by_dtype").items()) by_dtype += share["bytes"].get<std::size_t>();
  EXPECT_EQ(by_category, bytes);
  EXPECT_EQ(by_dtype, bytes);
}

TEST(CliPlan, ShowFiltersAndNamesTheNearest) {
  const Ran one = show({"--names", "readout.weight", "--json"});
  ASSERT_EQ(one.status, 0) << one.err;
  const Json json = Json::parse(one.out);
  ASSERT_EQ(json.at("tensors").size(), 1U);
  EXPECT_EQ(json.at("tensors")[0].at("transform"), "stack 3");
  EXPECT_EQ(json.at("tensors")[0].at("sources").size(), 3U);
  const Ran wrong = show({"--names", "readout.wieght"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("nearest are readout.weight"));
  const Ran category = show({"--categories", "feet"});
  EXPECT_EQ(category.status, 1);
  EXPECT_THAT(category.err, HasSubstr("there are attention, "));
}

TEST(CliPlan, ShowIsATableWithSums) {
  const Ran ran = show({"--policy", "f32", "--categories", "readout,patch"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("category"));
  EXPECT_THAT(ran.out, HasSubstr("patch.constant"));
  EXPECT_THAT(ran.out, HasSubstr("total"));
}

}  // namespace
}  // namespace sinew::cli_test

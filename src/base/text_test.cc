#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/sort_stably.h"

namespace sinew {
namespace {

using testing::ElementsAre;

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_THAT(split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",a,", ','), ElementsAre("", "a", ""));
}

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(parse_number("-2.5e1"), -25);
  EXPECT_EQ(parse_number("inf"), std::numeric_limits<double>::infinity());
  for (const char* text : {"", " 1", "1 ", "1,", "1e999", "0x10", "+1"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Text, EqualsKeepTheirOrder) {
  std::vector<std::string> words = {"bb", "a", "cc", "d", "ee"};
  sort_stably(words, [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  EXPECT_THAT(words, ElementsAre("a", "d", "bb", "cc", "ee"));
}

TEST(Text, NearestWordsComeFirst) {
  const std::vector<std::string> words = {"attention", "mlp", "norm", "nor"};
  EXPECT_THAT(nearest_words(words, "norn", 2), ElementsAre("norm", "nor"));
  EXPECT_THAT(nearest_words(words, "mlp", 9).front(), "mlp");
  EXPECT_EQ(nearest_words(words, "", 9).size(), 4U);
}

}  // namespace
}  // namespace sinew

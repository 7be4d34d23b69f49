#include "plan/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sinew {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Selection : public testing::Test {
 protected:
  Selection() {
    plan_.add({"block.0.fc1", "mlp", DType::kBF16, {4, 3}, {"a"}, {}});
    plan_.add({"block.0.fc2", "mlp", DType::kBF16, {3, 4}, {"b"}, {}});
    plan_.add({"block.0.qkv", "attention", DType::kBF16, {9, 3}, {"c"}, {}});
    plan_.add({"last_norm.gamma", "norm", DType::kF32, {3}, {"d"}, {}});
  }
  std::vector<std::string> names(const PlanFilter& filter = {}) const {
    std::vector<std::string> out;
    for (const PlanEntry* entry : select_entries(plan_, filter)) out.push_back(entry->name);
    return out;
  }
  std::string message(const PlanFilter& filter) const {
    try {
      select_entries(plan_, filter);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound);
      return error.what();
    }
    return "";
  }

  Plan plan_;
};

TEST_F(Selection, IsOrderedByCategoryThenName) {
  EXPECT_THAT(names(), ElementsAre("block.0.qkv", "block.0.fc1", "block.0.fc2", "last_norm.gamma"));
}

TEST_F(Selection, FiltersIntersect) {
  EXPECT_THAT(names({{"mlp", "norm"}, {}}), ElementsAre("block.0.fc1", "block.0.fc2", "last_norm.gamma"));
  EXPECT_THAT(names({{"mlp"}, {"block.0.fc2", "block.0.qkv"}}), ElementsAre("block.0.fc2"));
}

TEST_F(Selection, UnknownWordsAreNamedWithWhatThereIs) {
  EXPECT_THAT(message({{"mpl"}, {}}), HasSubstr("no category mpl; there are attention, mlp, norm"));
  EXPECT_THAT(message({{}, {"block.0.fc3"}}), HasSubstr("nearest are block.0.fc1, block.0.fc2, "));
}

TEST_F(Selection, SumsUp) {
  const PlanSummary summary = summarise(select_entries(plan_));
  EXPECT_EQ(summary.total.count, 4U);
  EXPECT_EQ(summary.total.bytes, 2U * (12 + 12 + 27) + 4U * 3);
  EXPECT_EQ(summary.by_category.at("mlp").bytes, 48U);
  EXPECT_EQ(summary.by_dtype.at("f32").bytes, 12U);
}

}  // namespace
}  // namespace sinew

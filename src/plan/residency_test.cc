#include "plan/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/prepared_test_support.h"

namespace sinew {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::pair<ErrorCode, std::string> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kLimit, "no error"};
}

class ResidencyTest : public testing::Test {
 protected:
  TestFolder folder_;
  TestModel model_;
  Started started_ = start(model_, {.root = folder_.file("cache")});
  Residency& weights_ = *started_.weights;
};

TEST_F(ResidencyTest, NamesFormsBytes) {
  EXPECT_THAT(weights_.names(), ElementsAre("a", "b.twice", "c"));
  EXPECT_THAT(weights_.host_names(), ElementsAre("table"));
  EXPECT_THAT(weights_.by_category(),
              ElementsAre(Pair("matrix", ElementsAre("a", "b.twice")), Pair("vector", ElementsAre("c"))));
  EXPECT_THAT(weights_.dtype_histogram(), ElementsAre(Pair("bf16", 1U), Pair("u8", 3U)));
  EXPECT_EQ(weights_.bytes(), 576U);
  const auto forms = weights_.get("c");
  ASSERT_EQ(forms.size(), 2U);
  EXPECT_EQ(forms[0].form.layout, "reversed");
  EXPECT_EQ(forms[1].form.layout, "row major");
  EXPECT_EQ(forms[1].data, started_.data[3]);
  const TensorView table = weights_.host("table");
  EXPECT_EQ(table.dtype, DType::kBF16);
  EXPECT_EQ(element(table, 5), element(model_.sources().get("table"), 5));
}

TEST_F(ResidencyTest, UnknownAndHostOnlyNamesAreToldApart) {
  const auto unknown = error_of([&] { weights_.get("b.twce"); });
  EXPECT_EQ(unknown.first, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.second, HasSubstr("nearest are b.twice"));
  const auto on_host = error_of([&] { weights_.get("table"); });
  EXPECT_EQ(on_host.first, ErrorCode::kUsage);
  EXPECT_THAT(on_host.second, HasSubstr("stays on the host"));
  EXPECT_EQ(error_of([&] { weights_.host("tabel"); }).first, ErrorCode::kNotFound);
  EXPECT_EQ(error_of([&] { weights_.host("a"); }).first, ErrorCode::kUsage);
}

TEST_F(ResidencyTest, ReleaseLetsTheMemoryGo) {
  std::vector<std::weak_ptr<const std::byte>> watched(started_.data.begin(), started_.data.end());
  started_.data.clear();  // the session ends
  EXPECT_FALSE(watched[0].expired());
  weights_.release();
  for (const auto& data : watched) EXPECT_TRUE(data.expired());
  EXPECT_TRUE(weights_.names().empty());
  EXPECT_TRUE(weights_.host_names().empty());
  EXPECT_EQ(weights_.bytes(), 0U);
  EXPECT_EQ(error_of([&] { weights_.get("a"); }),
            std::pair(ErrorCode::kNotFound, std::string("plan tensor a is not resident")));
  EXPECT_EQ(error_of([&] { weights_.host("table"); }).first, ErrorCode::kNotFound);
}

TEST(ResidencyWithoutCache, HostTensorsOutliveTheStart) {
  TestModel model;
  const Started started = start(model, {});
  const TensorView table = started.weights->host("table");
  EXPECT_EQ(element(table, 47), element(model.sources().get("table"), 47));
}

}  // namespace
}  // namespace sinew

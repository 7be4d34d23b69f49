#include "tensor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/error.h"

namespace sinew {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Error error_of(const std::vector<std::int64_t>& dims) {
  try {
    Shape shape{std::span<const std::int64_t>(dims)};
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kUsage, "nothing was thrown"};
}

TEST(Shape, Scalar) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.count(), 1);
  EXPECT_TRUE(shape.dims().empty());
  EXPECT_EQ(to_string(shape), "[]");
}

TEST(Shape, Extents) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[2], 5);
  EXPECT_EQ(shape.back(), 5);
  EXPECT_EQ(shape.count(), 30);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_THAT(shape.dims(), ElementsAre(2, 3, 5));
  EXPECT_EQ(to_string(shape), "[2,3,5]");
  EXPECT_EQ(Shape({7}).rows(), 1);
}

TEST(Shape, Equality) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
  EXPECT_NE(Shape({1}), Shape());
  EXPECT_EQ(Shape(), Shape());
}

TEST(Shape, Zeros) {
  EXPECT_EQ(Shape({0}).count(), 0);
  EXPECT_EQ(Shape({3, 0, 4}).count(), 0);
  EXPECT_EQ(Shape({0, kMax}).count(), 0);
  EXPECT_EQ(Shape({kMax, 0}).count(), 0);
  EXPECT_EQ(Shape({0, 4}).rows(), 0);
}

TEST(Shape, RankLimit) {
  EXPECT_EQ(Shape({1, 2, 1, 2, 1, 2, 1, 2}).count(), 16);
  const Error error = error_of({1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(error.code(), ErrorCode::kLimit);
  EXPECT_THAT(error.what(), HasSubstr("9 dimensions"));
}

TEST(Shape, NegativeExtents) {
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{-1}, {2, -3}, {0, -1}, {-kMax - 1}}) {
    EXPECT_EQ(error_of(dims).code(), ErrorCode::kFormat);
  }
  EXPECT_THAT(error_of({2, -3}).what(), HasSubstr("[2,-3]"));
}

TEST(Shape, CountOverflow) {
  EXPECT_EQ(Shape({kMax}).count(), kMax);
  EXPECT_EQ(Shape({std::int64_t{1} << 62, 1}).count(), std::int64_t{1} << 62);
  EXPECT_EQ(Shape({3037000499, 3037000499}).count(), std::int64_t{3037000499} * 3037000499);
  // 2^63; 3037000500^2, just above it; 2^64, which wraps to 0; (2^42 + 1) * 2^22, which wraps to 2^22; then
  // with a zero, whose strides would overflow all the same.
  const std::int64_t one = 1;
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{one << 62, 2},
                                                {3037000500, 3037000500},
                                                {one << 32, one << 32},
                                                {(one << 42) + 1, one << 22},
                                                {kMax, kMax, kMax, kMax, kMax, kMax, kMax, kMax},
                                                {0, one << 32, one << 32},
                                                {one << 32, one << 32, 0}}) {
    EXPECT_EQ(error_of(dims).code(), ErrorCode::kLimit) << ::testing::PrintToString(dims);
  }
}

}  // namespace
}  // namespace sinew

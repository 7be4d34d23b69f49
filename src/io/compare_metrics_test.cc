#include "io/compare_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace sinew {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Metrics metrics_of(const TensorView& actual, const TensorView& reference) {
  MetricsAccumulator metrics;
  metrics.add(actual, reference);
  return metrics.result();
}

Metrics metrics_of(const std::vector<double>& actual, const std::vector<double>& reference) {
  const Shape shape{static_cast<std::int64_t>(actual.size())};
  return metrics_of(TensorView(DType::kF64, shape, actual.data()),
                    TensorView(DType::kF64, shape, reference.data()));
}

/// The definitions, straight, in long double.
Metrics plain_metrics(const TensorView& actual, const TensorView& reference) {
  const std::int64_t count = actual.shape.count();
  long double mean_a = 0;
  long double mean_r = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    mean_a += element(actual, i);
    mean_r += element(reference, i);
  }
  mean_a /= count;
  mean_r /= count;
  long double dd = 0;
  long double squares = 0;
  long double aa = 0;
  long double rr = 0;
  long double ar = 0;
  Metrics out;
  out.count = count;
  for (std::int64_t i = 0; i < count; ++i) {
    const long double a = element(actual, i);
    const long double r = element(reference, i);
    out.max_abs_difference = std::max(out.max_abs_difference, static_cast<double>(std::fabs(a - r)));
    out.max_reference = std::max(out.max_reference, static_cast<double>(std::fabs(r)));
    dd += (a - r) * (a - r);
    squares += r * r;
    aa += (a - mean_a) * (a - mean_a);
    rr += (r - mean_r) * (r - mean_r);
    ar += (a - mean_a) * (r - mean_r);
  }
  out.relative_l2 = static_cast<double>(std::sqrt(dd / squares));
  out.correlation = static_cast<double>(ar / std::sqrt(aa * rr));
  return out;
}

void expect_plain(const TensorView& actual, const TensorView& reference) {
  const Metrics found = metrics_of(actual, reference);
  const Metrics wanted = plain_metrics(actual, reference);
  EXPECT_EQ(found.count, wanted.count);
  EXPECT_EQ(found.max_abs_difference, wanted.max_abs_difference);
  EXPECT_EQ(found.max_reference, wanted.max_reference);
  EXPECT_NEAR(found.relative_l2, wanted.relative_l2, 1e-12 * wanted.relative_l2);
  EXPECT_NEAR(found.correlation, wanted.correlation, 1e-12);
}

std::pair<std::vector<double>, std::vector<double>> random_pair(std::size_t size, double mean) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> actual(size);
  std::vector<double> reference(size);
  for (std::size_t i = 0; i < size; ++i) {
    reference[i] = mean + normal(random);
    actual[i] = reference[i] + 0.1 * normal(random);
  }
  return {actual, reference};
}

TEST(Metrics, AgreesWithTheDefinitions) {
  // Around the size of a chunk, and with a mean that the textbook form of the correlation would drown in.
  for (const std::int64_t size : {2, 100, 4095, 4096, 4097, 30'000}) {
    for (const double mean : {0.0, 3.0, 1e5}) {
      SCOPED_TRACE(testing::Message() << size << " " << mean);
      const auto [actual, reference] = random_pair(static_cast<std::size_t>(size), mean);
      expect_plain(TensorView(DType::kF64, Shape{size}, actual.data()),
                   TensorView(DType::kF64, Shape{size}, reference.data()));
    }
  }
}

TEST(Metrics, EveryDtypeAndStrides) {
  const auto [actual, reference] = random_pair(std::size_t{6} * 70 * 40, 0);
  const Shape shape{6, 70, 40};
  const Tensor a = convert(TensorView(DType::kF64, shape, actual.data()), DType::kBF16);
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const Tensor b = convert(TensorView(DType::kF64, shape, reference.data()), dtype);
    expect_plain(a, b);
    // The same elements with axes 0 and 2 swapped on one side, and every second row on both.
    const TensorView swapped(DType::kBF16, Shape{40, 70, 6}, Strides{1, 40, 2800}, a.data());
    expect_plain(swapped, TensorView(dtype, Shape{40, 70, 6}, b.data()));
    expect_plain(TensorView(DType::kBF16, Shape{6, 35, 1, 40}, Strides{2800, 80, 5, 1}, a.data()),
                 TensorView(dtype, Shape{6, 35, 40}, Strides{2800, 80, 1}, b.data()));
  }
  const std::int32_t integers[] = {-5, 7, 1 << 30};
  const std::uint8_t bytes[] = {5, 7, 255};
  expect_plain(TensorView(DType::kI32, Shape{3}, integers), TensorView(DType::kU8, Shape{3}, bytes));
  const bool bools[] = {true, false, true};
  expect_plain(TensorView(DType::kBool, Shape{3}, bools), TensorView(DType::kU8, Shape{3}, bytes));
}

TEST(Metrics, UnalignedData) {
  std::vector<std::byte> bytes(17);
  const double values[] = {1, 2};
  std::memcpy(bytes.data() + 1, values, 16);
  const TensorView unaligned(DType::kF64, Shape{2}, bytes.data() + 1);
  EXPECT_EQ(metrics_of(unaligned, TensorView(DType::kF64, Shape{2}, values)).max_abs_difference, 0);
}

TEST(Metrics, SixtyFourBitIntegersAreExact) {
  const std::int64_t a[] = {(std::int64_t{1} << 60) + 1, std::numeric_limits<std::int64_t>::max()};
  const std::int64_t b[] = {std::int64_t{1} << 60, std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(metrics_of(TensorView(DType::kI64, Shape{2}, a), TensorView(DType::kI64, Shape{2}, b))
                .max_abs_difference,
            1);
  EXPECT_EQ(metrics_of(TensorView(DType::kU64, Shape{2}, b), TensorView(DType::kU64, Shape{2}, a))
                .max_abs_difference,
            1);
  const std::int64_t ends[] = {std::numeric_limits<std::int64_t>::min(),
                               std::numeric_limits<std::int64_t>::max()};
  const TensorView low(DType::kI64, Shape{1}, ends);
  const TensorView high(DType::kI64, Shape{1}, ends + 1);
  EXPECT_EQ(metrics_of(low, high).max_abs_difference, 0x1p64);
}

TEST(Metrics, NonFinite) {
  const double nan = std::nan("");
  const Metrics same_infinity = metrics_of({1, kInfinity, -kInfinity}, {1, kInfinity, -kInfinity});
  EXPECT_EQ(same_infinity.nonfinite_differences, 0);
  EXPECT_EQ(same_infinity.nonfinite_actual, 2);
  EXPECT_EQ(same_infinity.nonfinite_reference, 2);
  EXPECT_EQ(same_infinity.count, 3);
  EXPECT_EQ(same_infinity.max_reference, 1);

  EXPECT_EQ(metrics_of({kInfinity}, {-kInfinity}).nonfinite_differences, 1);
  EXPECT_EQ(metrics_of({kInfinity}, {1e308}).nonfinite_differences, 1);
  EXPECT_EQ(metrics_of({nan}, {nan}).nonfinite_differences, 1);

  const Metrics one = metrics_of({1, nan, 3, 5}, {1, 100, 3, 4});
  EXPECT_EQ(one.nonfinite_differences, 1);
  EXPECT_EQ(one.nonfinite_actual, 1);
  EXPECT_EQ(one.nonfinite_reference, 0);
  EXPECT_EQ(one.max_abs_difference, 1);  // over the finite pairs
  EXPECT_EQ(one.max_reference, 100);     // over the finite values
  EXPECT_NEAR(one.relative_l2, 1 / std::sqrt(26.0), 1e-15);
}

TEST(Metrics, Degenerate) {
  const Metrics zero_reference = metrics_of({1, 0}, {0, 0});
  EXPECT_EQ(zero_reference.relative_l2, kInfinity);
  EXPECT_TRUE(std::isnan(zero_reference.correlation));
  const Metrics equal_constants = metrics_of({2, 2}, {2, 2});
  EXPECT_EQ(equal_constants.relative_l2, 0);
  EXPECT_EQ(equal_constants.correlation, 1);
  const Metrics empty = metrics_of(std::vector<double>{}, {});
  EXPECT_EQ(empty.count, 0);
  EXPECT_EQ(empty.max_abs_difference, 0);
  const double five = 5;
  const double six = 6;
  EXPECT_EQ(metrics_of(TensorView(DType::kF64, Shape{}, &five), TensorView(DType::kF64, Shape{1, 1}, &six))
                .max_abs_difference,
            1);
  EXPECT_NEAR(metrics_of({1, 2, 3}, {-1, -2, -3}).correlation, -1, 1e-15);
}

TEST(Metrics, Squeezed) {
  const float data[6] = {};
  const TensorView view = squeezed(TensorView(DType::kF32, Shape{1, 2, 1, 3}, Strides{9, 1, 8, 2}, data));
  EXPECT_EQ(view.shape, Shape({2, 3}));
  EXPECT_EQ(view.strides[0], 1);
  EXPECT_EQ(view.strides[1], 2);
  EXPECT_EQ(squeezed(TensorView(DType::kF32, Shape{1, 1}, data)).shape, Shape());
}

}  // namespace
}  // namespace sinew

// Quantisation against its definitions, one block or one number at a time, and against its bounds.
#include "plan/quantise.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "plan/transforms.h"
#include "plan/transforms_test_support.h"
#include "tensor/block_float_test_support.h"

namespace sinew::transforms {
namespace {

Tensor run(const Step& step, const Shape& shape, const Numbers& values) {
  return step.apply(Tensor::of<double>(shape, values));
}
Numbers quantised(const Shape& shape, const Numbers& values) {
  const Tensor made = run(quantise_bfp8(), shape, values);
  EXPECT_EQ(made.shape(), shape);
  return numbers(made);
}

Numbers in_bf16(const Numbers& values) {
  const TensorView view(DType::kF64, Shape{static_cast<std::int64_t>(values.size())}, values.data());
  return numbers(convert(convert(view, DType::kBF16), DType::kF64));
}

/// Calls fn(exponent of the block's largest bf16, its elements' indices) for each block.
void for_each_block(const Shape& shape, const Numbers& bf16,
                    const std::function<void(int, const std::vector<std::size_t>&)>& fn) {
  for (std::int64_t k = 0; k < shape[1]; ++k) {
    for (std::int64_t first = 0; first < shape[0]; first += kBlockSize) {
      std::vector<std::size_t> at;
      double largest = 0;
      for (std::int64_t n = first; n < std::min(shape[0], first + kBlockSize); ++n) {
        at.push_back(static_cast<std::size_t>(n * shape[1] + k));
        largest = std::max(largest, std::fabs(bf16[at.back()]));
      }
      fn(largest == 0 ? -127 : std::ilogb(largest), at);
    }
  }
}

Numbers one_block_at_a_time(const Shape& shape, const Numbers& values) {
  const Numbers bf16 = in_bf16(values);
  Numbers expected(values.size());
  for_each_block(shape, bf16, [&](int, const std::vector<std::size_t>& at) {
    Values block_values{};
    for (std::size_t i = 0; i < at.size(); ++i) block_values[i] = static_cast<float>(bf16[at[i]]);
    const Block block = pack_block(block_values, BlockFormat::kBfp8, {.through_bf16 = true});
    for (std::size_t i = 0; i < at.size(); ++i)
      expected[at[i]] = to_f32(unpack_code(BlockFormat::kBfp8, block.exponent, block.codes[i]));
  });
  return expected;
}

/// The bounds of the header, for values that are bf16 or not.
void expect_within_bounds(const Shape& shape, const Numbers& values, const Numbers& found) {
  const Numbers bf16 = in_bf16(values);
  for_each_block(shape, bf16, [&](int exponent, const std::vector<std::size_t>& at) {
    const double denormal = exponent < -119 ? 0x1p-126 : 0;
    const double bound = std::max(std::ldexp(1.0, exponent - 7), denormal);
    for (const std::size_t i : at) {
      ASSERT_LE(std::fabs(bf16[i] - found[i]), bound) << to_string(shape) << " element " << i;
      ASSERT_LE(std::fabs(values[i] - found[i]), bound + std::ldexp(1.0, exponent - 8)) << i;
    }
  });
}

const std::vector<Shape>& shapes() {
  // Short last blocks and strips, pieces of more and fewer than 256 columns, ragged tiles, nothing at all.
  static const std::vector<Shape> kShapes = {{1, 1},    {16, 8},   {17, 5},    {33, 70}, {64, 256},
                                             {31, 513}, {48, 300}, {100, 257}, {0, 4},   {4, 0}};
  return kShapes;
}

/// Numbers of f32 whose exponents are in a band, with zeros among them.
Numbers floats(std::int64_t count, int first, int exponents, unsigned seed) {
  std::mt19937 random(seed);
  Numbers values(static_cast<std::size_t>(count));
  for (double& value : values) value = random() % 9 == 0 ? 0.0 : random_float(random, first, exponents);
  return values;
}

TEST(QuantiseBfp8, EqualsOneBlockAtATime) {
  unsigned seed = 1;
  for (const Shape& shape : shapes()) {
    for (const Numbers& values :
         {normal(shape.count(), seed), floats(shape.count(), 100, 4, seed + 1),
          floats(shape.count(), 20, 40, seed + 2), floats(shape.count(), 220, 34, seed + 3),
          in_bf16(normal(shape.count(), seed))}) {
      const Numbers found = quantised(shape, values);
      ASSERT_EQ(found, one_block_at_a_time(shape, values)) << to_string(shape);
      expect_within_bounds(shape, values, found);
      ASSERT_EQ(quantised(shape, found), found) << to_string(shape) << ": a second pass changes nothing";
      ASSERT_EQ(in_bf16(found), found) << "bf16 holds every value";
    }
    seed += 4;
  }
}

TEST(QuantiseBfp8, BlocksLieAlongTheFirstAxis) {
  // One large number: what shares its exponent loses its small parts, its neighbours in other blocks do not.
  const Shape shape{33, 2};
  Numbers values(66, 0.01171875);  // 3 * 2^-8, exact under its own exponent
  values[2 * 3] = 64;
  const Numbers found = quantised(shape, values);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool with_it = i % 2 == 0 && i / 2 < 16;
    EXPECT_EQ(found[i], i == 6 ? 64 : with_it ? 0 : 0.01171875) << i;
  }
}

TEST(QuantiseBfp8, RoundsFromDoubleOnce) {
  // Under exponent 0 a unit is 2^-6. The f32 of the second is a tie of two bf16, of which the even one is in
  // turn a tie of two units; the number itself is above it.
  const double tie = 0.5 + 0x1p-7 + 0x1p-9;
  EXPECT_THAT(quantised({3, 1}, {1, tie, tie + 0x1p-40}), testing::ElementsAre(1, 0.5, 0.5 + 0x1p-6));
  EXPECT_THAT(quantised({3, 1}, {1, -tie, -tie - 0x1p-40}), testing::ElementsAre(1, -0.5, -0.5 - 0x1p-6));
}

TEST(QuantiseBfp8, BoundsAreReached) {
  // 1.9921875 is the largest bf16 below 2 and saturates; 0.4921875 is a tie. Both move by 2^-7.
  EXPECT_THAT(quantised({2, 1}, {1.9921875, 0.4921875}), testing::ElementsAre(1.984375, 0.5));
  // A hair below the tie of 1.9921875 and 2, which bf16 takes down by 2^-8 first.
  const Numbers values = {1.9921875 + 0x1p-8 - 0x1p-40};
  EXPECT_THAT(quantised({1, 1}, values), testing::ElementsAre(1.984375));
  expect_within_bounds({1, 1}, values, {1.984375});
}

TEST(QuantiseBfp8, NumbersNearTheEndOfTheExponentsSurviveASecondPass) {
  const Shape shape{48, 40};
  for (int exponent = 0; exponent <= 8; ++exponent) {
    Numbers values = floats(shape.count(), exponent, 1 + exponent % 3, 50 + static_cast<unsigned>(exponent));
    for (std::size_t i = 0; i < values.size(); i += 7)
      values[i] = 0x1.fcp-127;  // the largest denormal of bf16
    const Numbers found = quantised(shape, values);
    expect_within_bounds(shape, values, found);
    EXPECT_EQ(quantised(shape, found), found) << exponent;
    EXPECT_EQ(one_block_at_a_time(shape, found), found) << exponent << ": codes hold them without loss";
    for (const double value : found) EXPECT_TRUE(value == 0 || std::fabs(value) >= 0x1p-126);
  }
  EXPECT_THAT(quantised({2, 1}, {0x1.8p-126, 0x1.8p-127}), testing::ElementsAre(0x1.8p-126, 0));
}

TEST(QuantiseBfp8, WhatIsNotFiniteInBf16IsNamed) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad :
       {infinity, -infinity, std::nan(""), 1e300, static_cast<double>(std::numeric_limits<float>::max())}) {
    for (const auto& [row, column] : {std::pair(0, 0), std::pair(40, 300), std::pair(15, 256)}) {
      const Shape shape{41, 301};
      Numbers values = normal(shape.count(), 9);
      values[row * 301 + column] = bad;
      Given given;
      given.add("blocks.3.w", shape, values);
      const Chain chain = source("blocks.3.w") | quantise_bfp8();
      EXPECT_EQ(chain.name(), "bfp8_b");
      EXPECT_EQ(error_of([&] { chain(given.sources()); }),
                fmt::format("mismatch: blocks.3.w: bfp8_b: element [{},{}] is {}; expected numbers that are "
                            "finite in bf16",
                            row, column, bad));
    }
  }
}

TEST(QuantiseBfp8, LargestNumbersThatAreFinite) {
  EXPECT_THAT(quantised({2, 1}, {0x1.fep127, -0x1p127}), testing::ElementsAre(0x1.fcp127, -0x1p127));
}

TEST(Quantise, OnlyMatrices) {
  for (const Step& step : {quantise_bfp8(), int8_codes(), int8_scales()}) {
    for (const Shape& shape : {Shape{}, Shape{8}, Shape{2, 2, 2}}) {
      EXPECT_EQ(error_of([&] { run(step, shape, counting(shape.count())); }),
                "mismatch: the tensor is " + to_string(shape) + "; expected a matrix [N,K]");
    }
  }
}

TEST(QuantiseInt8, EveryRowWithinHalfAStep) {
  unsigned seed = 1;
  for (const Shape& shape : shapes()) {
    for (const double size : {1.0, 1e-30, 1e30, 1e-43, 1e-310}) {
      Numbers values = normal(shape.count(), seed++);
      for (double& value : values) value *= size;
      const Numbers codes = numbers(run(int8_codes(), shape, values));
      const Tensor scales = run(int8_scales(), shape, values);
      ASSERT_EQ(scales.shape(), Shape{shape[0]});
      for (std::int64_t n = 0; n < shape[0]; ++n) {
        const double scale = scales.as<double>()[n];
        ASSERT_EQ(scale, static_cast<double>(static_cast<float>(scale))) << "exact in f32";
        double largest = 0;
        double largest_code = 0;
        for (std::int64_t k = 0; k < shape[1]; ++k) {
          const std::int64_t at = n * shape[1] + k;
          ASSERT_LE(std::fabs(values[at] - scale * codes[at]), scale / 2 * (1 + 0x1p-45));
          largest = std::max(largest, std::fabs(values[at]));
          largest_code = std::max(largest_code, std::fabs(codes[at]));
        }
        if (shape[1] == 0) continue;
        ASSERT_GE(scale, 0x1p-126);
        if (scale > 0x1p-126) {
          ASSERT_EQ(largest_code, 127);
          ASSERT_NEAR(scale, largest / 127, largest / 127 * 0x1p-24);
        }
      }
      const Tensor stored = convert(run(int8_codes(), shape, values), DType::kI8);
      EXPECT_EQ(numbers(convert(stored, DType::kF64)), codes);
    }
  }
}

TEST(QuantiseInt8, TiesGoToTheEvenCodeAndZeroHasNoSign) {
  const Numbers codes = numbers(run(int8_codes(), {1, 8}, {-127, 0.5, 1.5, 2.5, -0.5, -1.5, -0.2, 126.5}));
  EXPECT_THAT(codes, testing::ElementsAre(-127, 0, 2, 2, 0, -2, 0, 126));
  EXPECT_FALSE(std::signbit(codes[4]) || std::signbit(codes[6]));
}

TEST(QuantiseInt8, RowsOfZeros) {
  const Numbers values = {0, -0.0, 0, 1, 2, -127};
  EXPECT_THAT(numbers(run(int8_codes(), {2, 3}, values)), testing::ElementsAre(0, 0, 0, 1, 2, -127));
  EXPECT_THAT(numbers(run(int8_scales(), {2, 3}, values)), testing::ElementsAre(0, 1));
}

TEST(QuantiseInt8, WhatHasNoScaleIsNamed) {
  for (const Step& step : {int8_codes(), int8_scales()}) {
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      Given given;
      given.add("w", {2, 3}, {1, 2, 3, 4, 5, bad});
      const Chain chain = source("w") | step;
      EXPECT_EQ(error_of([&] { chain(given.sources()); }),
                fmt::format("mismatch: w: {}: element [1,2] is {}; expected numbers that are finite",
                            step.name, bad));
    }
    EXPECT_THAT(error_of([&] { run(step, {2, 1}, {1, -1e41}); }),
                testing::HasSubstr("row 1 has an element of magnitude 1e+41"));
    EXPECT_EQ(error_of([&] { run(step, {1, 1}, {4e40}); }), "");
  }
}

}  // namespace
}  // namespace sinew::transforms

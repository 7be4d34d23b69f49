// Each fold against the plain form, in double, within the bound that its header derives.
#include "plan/folds.h"

#include <gmock/gmock.h>

#include <cmath>

#include "plan/transforms.h"
#include "plan/transforms_test_support.h"

namespace sinew::transforms {
namespace {

constexpr double kUnit = 0x1p-53;

/// n u / (1 - n u): what n roundings in a row can cost, as a part of the sum of magnitudes.
double rounding(std::int64_t n) {
  const double nu = static_cast<double>(n) * kUnit;
  return nu / (1 - nu);
}

/// A product with its bias, what its input is scaled, moved by, and the inputs.
struct Product {
  std::int64_t n;
  std::int64_t k;
  Numbers weight, bias, scale, offset, x;
};
Product product_of(std::int64_t n, std::int64_t k, unsigned seed) {
  Product p{n, k, normal(n * k, seed), normal(n, seed + 1), normal(k, seed + 2), {}, normal(k, seed + 3)};
  // Offsets as of pixels: large against what is left after them.
  for (const double v : normal(k, seed + 4)) p.offset.push_back(120 + v);
  for (std::size_t i = 0; i < p.x.size(); ++i) p.x[i] += p.offset[i];
  return p;
}
Given given(const Product& p) {
  Given all;
  all.add("w", {p.n, p.k}, p.weight).add("b", {p.n}, p.bias);
  all.add("scale", {p.k}, p.scale).add("offset", {p.k}, p.offset);
  return all;
}

TEST(FoldInput, ScaleAndOffsetLeaveTheProduct) {
  for (const auto& [n, k] : {std::pair(1, 1), std::pair(5, 3), std::pair(64, 768), std::pair(3, 1000)}) {
    const Product p = product_of(n, k, static_cast<unsigned>(10 * n + k));
    const Given from = given(p);
    const Chain weight = fold_input_scale(source("w"), source("scale"));
    const Numbers folded = numbers(weight(from.sources()));
    const Numbers bias = numbers(fold_input_offset(source("b"), weight, source("offset"))(from.sources()));
    ASSERT_EQ(folded.size(), p.weight.size());
    ASSERT_EQ(bias.size(), p.bias.size());
    for (std::int64_t row = 0; row < n; ++row) {
      double plain = 0;
      double quick = 0;
      double magnitude = std::fabs(p.bias[row]);
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t at = row * k + i;
        EXPECT_EQ(folded[at], p.weight[at] * p.scale[i]);
        plain += p.weight[at] * ((p.x[i] - p.offset[i]) * p.scale[i]);
        quick += folded[at] * p.x[i];
        magnitude += std::fabs(folded[at]) * (std::fabs(p.x[i]) + std::fabs(p.offset[i]));
      }
      plain += p.bias[row];
      quick += bias[row];
      EXPECT_LE(std::fabs(plain - quick), 2 * rounding(k + 4) * magnitude) << n << 'x' << k << " row " << row;
    }
  }
}

TEST(FoldInput, ShiftIsTheAffinePartOfALayerNorm) {
  constexpr std::int64_t kRows = 17;
  constexpr std::int64_t kColumns = 96;
  const Numbers w = normal(kRows * kColumns, 1);
  const Numbers b = normal(kRows, 2);
  const Numbers gamma = normal(kColumns, 3);
  const Numbers beta = normal(kColumns, 4);
  const Numbers x = normal(kColumns, 5);
  Given from;
  from.add("w", {kRows, kColumns}, w).add("b", {1, kRows}, b).add("gamma", {kColumns}, gamma);
  from.add("beta", {1, kColumns}, beta);
  const Tensor weight = fold_input_scale(source("w"), source("gamma"))(from.sources());
  const Tensor bias = fold_input_shift(source("b"), source("w"), source("beta"))(from.sources());
  EXPECT_EQ(bias.shape(), (Shape{1, kRows})) << "the bias keeps its shape";
  for (std::int64_t n = 0; n < kRows; ++n) {
    double plain = 0;
    double folded = 0;
    double magnitude = std::fabs(b[n]);
    for (std::int64_t k = 0; k < kColumns; ++k) {
      plain += w[n * kColumns + k] * (x[k] * gamma[k] + beta[k]);
      folded += weight.as<double>()[n * kColumns + k] * x[k];
      magnitude += std::fabs(w[n * kColumns + k]) * (std::fabs(x[k] * gamma[k]) + std::fabs(beta[k]));
    }
    EXPECT_LE(std::fabs(plain + b[n] - (folded + bias.as<double>()[n])),
              2 * rounding(kColumns + 4) * magnitude)
        << n;
  }
}

TEST(FoldRow, AddsToEachRowOfATable) {
  Given from;
  from.add("pos", {1, 3, 2}, {100, 200, 1, 2, 3, 4}).add("bias", {2}, {0.5, -0.5});
  // HaMeR's constant: the bias, the row of each token, and the class token's row for all of them.
  const Chain table = fold_row(fold_row(source_rows("pos", 1, 2), source_rows("pos", 0, 1)), source("bias"));
  const Tensor made = table(from.sources());
  EXPECT_EQ(made.shape(), (Shape{2, 2}));
  EXPECT_THAT(numbers(made), testing::ElementsAre(101.5, 201.5, 103.5, 203.5));
  EXPECT_THAT(table.sources(), testing::ElementsAre("pos", "bias"));
}

TEST(FoldRow, OneRoundingAnElement) {
  const Numbers table = normal(7 * 5, 1);
  const Numbers row = normal(5, 2);
  Given from;
  from.add("t", {7, 5}, table).add("r", {5}, row);
  const Numbers made = numbers(fold_row(source("t"), source("r"))(from.sources()));
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i], table[i] + row[i % 5]);
}

TEST(Folds, ExtentsThatDoNotFitAreNamed) {
  Given from;
  from.add("w", {2, 3}, counting(6)).add("v2", {2}, {1, 2}).add("v3", {3}, {1, 2, 3});
  from.add("cube", {1, 2, 3}, counting(6)).add("column", {3, 1}, {1, 2, 3});
  const auto error = [&](const Chain& chain) { return error_of([&] { chain(from.sources()); }); };
  EXPECT_EQ(error(fold_input_scale(source("w"), source("v2"))),
            "mismatch: w + v2: fold input scale: the scale is [2]; expected a row of 3");
  EXPECT_EQ(error(fold_input_scale(source("cube"), source("v3"))),
            "mismatch: cube + v3: fold input scale: the weight is [1,2,3]; expected a matrix");
  EXPECT_EQ(error(fold_input_scale(source("w"), source("column"))),
            "mismatch: w + column: fold input scale: the scale is [3,1]; expected a row of 3");
  EXPECT_EQ(error(fold_input_offset(source("v3"), source("w"), source("v3"))),
            "mismatch: v3 + w: fold input offset: the bias is [3]; expected a row of 2");
  EXPECT_EQ(error(fold_input_offset(source("v2"), source("w"), source("v2"))),
            "mismatch: v2 + w: fold input offset: the offset is [2]; expected a row of 3");
  EXPECT_EQ(error(fold_input_shift(source("v2"), source("w"), source("v2"))),
            "mismatch: v2 + w: fold input shift: the shift is [2]; expected a row of 3");
  EXPECT_EQ(error(fold_row(source("w"), source("v2"))),
            "mismatch: w + v2: add a row: the row is [2]; expected a row of 3");
  EXPECT_EQ(error(fold_row(source("v3"), source("v3"))),
            "mismatch: v3: add a row: the table is [3]; expected a matrix");
}

}  // namespace
}  // namespace sinew::transforms

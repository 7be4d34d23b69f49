// Steps that move elements or put zeros between them: exact, and attention does not notice padded heads.
#include "plan/transforms.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "plan/folds.h"
#include "plan/transforms_test_support.h"
#include "tensor/tile.h"

namespace sinew::transforms {
namespace {

using testing::ElementsAre;

Tensor run(const Step& step, const Shape& shape, const Numbers& values) {
  return step.apply(Tensor::of<double>(shape, values));
}

TEST(Rows, OfMatricesVectorsAndTables) {
  Given given;
  given.add("matrix", {4, 3}, counting(12), DType::kF32).add("vector", {5}, counting(5));
  given.add("table", {1, 4, 2}, counting(8)).add("cube", {2, 2, 2}, counting(8));
  const auto made = [&](const Chain& chain) { return chain(given.sources()); };
  EXPECT_EQ(source_rows("matrix", 1, 2).name(), "rows 1..3");
  EXPECT_EQ(made(source_rows("matrix", 1, 2)).shape(), (Shape{2, 3}));
  EXPECT_THAT(numbers(made(source_rows("matrix", 1, 2))), ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_THAT(numbers(made(source_rows("vector", 3, 2))), ElementsAre(3, 4));
  EXPECT_EQ(made(source_rows("table", 3, 1)).shape(), (Shape{1, 2}));
  EXPECT_THAT(numbers(made(source_rows("table", 3, 1))), ElementsAre(6, 7));
  EXPECT_THAT(numbers(made(source_rows("cube", 1, 2))), ElementsAre(2, 3, 4, 5)) << "across matrices";
  EXPECT_EQ(made(source_rows("matrix", 4, 0)).shape(), (Shape{0, 3}));
  EXPECT_EQ(numbers(made(source("matrix") | rows(1, 2))), numbers(made(source_rows("matrix", 1, 2))));
}

TEST(Rows, OfStridedViews) {
  const Numbers values = counting(24);
  Given given;
  given.add_view("turned", {DType::kF64, {3, 4}, {1, 3}, values.data()});
  given.add_view("cube", {DType::kF64, {2, 3, 4}, {1, 2, 6}, values.data()});
  EXPECT_THAT(numbers(source_rows("turned", 1, 1)(given.sources())), ElementsAre(1, 4, 7, 10));
  EXPECT_THAT(numbers(source_rows("cube", 4, 1)(given.sources())), ElementsAre(3, 9, 15, 21));
}

TEST(Rows, BeyondTheTensorIsAnError) {
  Given given;
  given.add("w", {4, 3}, counting(12)).add("scalar", {}, {1});
  const auto error = [&](const Chain& chain) { return error_of([&] { chain(given.sources()); }); };
  EXPECT_EQ(error(source_rows("w", 2, 3)),
            "mismatch: w: rows 2..5: the tensor is [4,3]; expected rows within 0..4");
  EXPECT_EQ(error(source("w") | rows(5, 0)),
            "mismatch: w: rows 5..5: the tensor is [4,3]; expected rows within 0..4");
  EXPECT_EQ(error(source_rows("scalar", 0, 1)), "mismatch: scalar: rows 0..1: a scalar has no rows");
  EXPECT_THAT(error_of([] { source_rows("w", -1, 2); }), testing::HasSubstr("usage: w: rows -1, 2 of them"));
  EXPECT_THAT(error_of([] { rows(1, -2); }), testing::HasSubstr("usage: rows 1, -2 of them"));
}

TEST(Category, OfWeightsAndBiases) {
  Given given;
  given.add("W", {3, 2, 4}, counting(24), DType::kBF16).add("b", {3, 2}, counting(6));
  const Chain weight = source_category("W", 1) | transpose();
  EXPECT_EQ(weight.name(), "category 1, transpose");
  EXPECT_EQ(weight(given.sources()).shape(), (Shape{4, 2}));
  EXPECT_THAT(numbers(weight(given.sources())), ElementsAre(8, 12, 9, 13, 10, 14, 11, 15));
  EXPECT_THAT(numbers(source_category("b", 2)(given.sources())), ElementsAre(4, 5));
  EXPECT_THAT(numbers((source("b") | category(2))(given.sources())), ElementsAre(4, 5));
  EXPECT_EQ(numbers((source("W") | transpose() | category(1))(given.sources())),
            numbers(weight(given.sources())));
}

TEST(Category, OfAStridedView) {
  const Numbers values = counting(24);
  Given given;
  given.add_view("W", {DType::kF64, {2, 3, 4}, {1, 2, 6}, values.data()});
  EXPECT_THAT(numbers(source_category("W", 1)(given.sources())),
              ElementsAre(1, 7, 13, 19, 3, 9, 15, 21, 5, 11, 17, 23));
}

TEST(Category, OutOfRangeIsAUsersError) {
  Given given;
  given.add("W", {32, 2, 4}, Numbers(256)).add("scalar", {}, {1});
  EXPECT_EQ(error_of([&] { source_category("W", 32)(given.sources()); }),
            "usage: W: category 32: the tensor is [32,2,4]; expected a category from 0 to 31");
  EXPECT_EQ(error_of([&] { (source("W") | category(40))(given.sources()); }),
            "usage: W: category 40: the tensor is [32,2,4]; expected a category from 0 to 31");
  EXPECT_EQ(error_of([&] { source_category("scalar", 0)(given.sources()); }),
            "mismatch: scalar: category 0: the tensor is a scalar; expected [categories, ...]");
  EXPECT_EQ(error_of([] { source_category("W", -1); }), "usage: W: category -1: categories count from 0");
  EXPECT_EQ(error_of([] { category(-1); }), "usage: category -1: categories count from 0");
}

TEST(Parts, NothingElseIsRead) {
  // Tensors that no machine holds, of which only the parts exist: 2^40 rows, 2^40 categories.
  const Numbers values = counting(6);
  Given given;
  given.add_view("rows", {DType::kF64, {std::int64_t{1} << 40, 3}, values.data()});
  given.add_view("categories", {DType::kF64, {std::int64_t{1} << 40, 1, 3}, values.data()});
  EXPECT_THAT(numbers(source_rows("rows", 1, 1)(given.sources())), ElementsAre(3, 4, 5));
  EXPECT_THAT(numbers(source_category("categories", 1)(given.sources())), ElementsAre(3, 4, 5));
}

TEST(Stacked, MatricesAndVectors) {
  Given given;
  given.add("a", {2, 3}, counting(6), DType::kF32).add("b", {1, 1, 3}, {6, 7, 8}, DType::kBF16);
  given.add("u", {2}, {1, 2}).add("v", {}, {3});
  const Chain matrices = stacked({"a", "b", "a"});
  EXPECT_EQ(matrices.name(), "stack 3");
  EXPECT_THAT(matrices.sources(), ElementsAre("a", "b", "a"));
  EXPECT_EQ(matrices(given.sources()).shape(), (Shape{5, 3}));
  EXPECT_THAT(numbers(matrices(given.sources())), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2, 3, 4, 5));
  EXPECT_EQ(stacked({"u", "v"})(given.sources()).shape(), Shape{3});
  EXPECT_THAT(numbers(stacked({"u", "v"})(given.sources())), ElementsAre(1, 2, 3));
}

TEST(Stacked, RowsThatDoNotFitAreNamed) {
  Given given;
  given.add("a", {2, 3}, counting(6)).add("b", {3, 2}, counting(6)).add("v", {3}, counting(3));
  EXPECT_EQ(error_of([&] { stacked({"a", "b"})(given.sources()); }),
            "mismatch: b: stack 2: [3,2] does not fit under a [2,3]");
  EXPECT_EQ(error_of([&] { stacked({"a", "v"})(given.sources()); }),
            "mismatch: v: stack 2: [3] does not fit under a [2,3]");
  EXPECT_EQ(error_of([&] { stacked({"a", "missing"})(given.sources()); }),
            "mismatch: the checkpoint has no tensor missing");
  EXPECT_EQ(error_of([] { stacked({}); }), "usage: stack 0: there is nothing to stack");
}

TEST(Transpose, SwapsTheLastTwoAxes) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{8, 16}, Shape{17, 9}, Shape{3, 4, 7},
                             Shape{2, 2, 9, 10}, Shape{0, 3}, Shape{2, 0, 3}}) {
    const Numbers values = normal(shape.count(), 1);
    const Tensor made = run(transpose(), shape, values);
    const int rank = shape.rank();
    const std::int64_t a = shape[rank - 2];
    const std::int64_t b = shape[rank - 1];
    ASSERT_EQ(made.shape()[rank - 2], b);
    ASSERT_EQ(made.shape()[rank - 1], a);
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      const std::int64_t matrix = i / (a * b) * a * b;
      const std::int64_t turned = matrix + i % b * a + i % (a * b) / b;
      ASSERT_EQ(made.as<double>()[turned], values[i]) << to_string(shape) << ' ' << i;
    }
    EXPECT_EQ(numbers(transpose().apply(made.clone())), values) << "twice is nothing";
  }
  EXPECT_EQ(error_of([] { run(transpose(), {3}, {1, 2, 3}); }),
            "mismatch: the tensor is [3]; expected a matrix [a,b] or [categories,a,b]");
}

TEST(Reshape, KeepsTheOrder) {
  const Tensor made = run(reshape({3, 2}), {2, 3}, counting(6));
  EXPECT_EQ(made.shape(), (Shape{3, 2}));
  EXPECT_EQ(numbers(made), counting(6));
  EXPECT_EQ(reshape({3, 2}).name, "reshape [3,2]");
  EXPECT_EQ(error_of([] { run(reshape({4}), {2, 3}, counting(6)); }),
            "mismatch: the tensor is [2,3] of 6 elements; expected 4");
}

TEST(PadHeads, PutsZerosBehindEachHead) {
  const HeadPadding rows_of_heads{.axis = 0, .heads = 2, .dim = 2, .padded = 3};
  EXPECT_EQ(pad_heads(rows_of_heads).name, "pad heads 2 to 3 on axis 0");
  EXPECT_THAT(numbers(run(pad_heads(rows_of_heads), {4}, {1, 2, 3, 4})), ElementsAre(1, 2, 0, 3, 4, 0));
  const Tensor tall = run(pad_heads(rows_of_heads), {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(tall.shape(), (Shape{6, 2}));
  EXPECT_THAT(numbers(tall), ElementsAre(1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0));
  const Tensor wide = run(pad_heads({1, 2, 2, 3}), {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(wide.shape(), (Shape{2, 6}));
  EXPECT_THAT(numbers(wide), ElementsAre(1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0));
  EXPECT_THAT(numbers(run(pad_heads({1, 1, 1, 2}), {2, 1, 2}, {1, 2, 3, 4})),
              ElementsAre(1, 2, 0, 0, 3, 4, 0, 0));
  EXPECT_THAT(numbers(run(pad_heads({0, 2, 2, 2}), {4}, {1, 2, 3, 4})), ElementsAre(1, 2, 3, 4));
}

TEST(PadHeads, WhatIsNotHeadsIsNamed) {
  Given given;
  given.add("q", {100, 4}, Numbers(400));
  EXPECT_EQ(
      error_of([&] { (source("q") | pad_heads({0, 2, 48, 64}))(given.sources()); }),
      "mismatch: q: pad heads 48 to 64 on axis 0: the tensor is [100,4]; expected 2 heads of 48 = 96 on "
      "that axis");
  EXPECT_EQ(error_of([&] { (source("q") | pad_heads({2, 2, 48, 64}))(given.sources()); }),
            "mismatch: q: pad heads 48 to 64 on axis 2: the tensor is [100,4]; it has no axis 2");
  EXPECT_EQ(error_of([&] { (source("q") | pad_heads({-1, 2, 48, 64}))(given.sources()); }),
            "mismatch: q: pad heads 48 to 64 on axis -1: the tensor is [100,4]; it has no axis -1");
  for (const HeadPadding& padding :
       {HeadPadding{0, 2, 48, 47}, HeadPadding{0, 0, 48, 64}, HeadPadding{0, 2, 0, 64}})
    EXPECT_THAT(error_of([&] { pad_heads(padding); }),
                testing::HasSubstr("expected heads > 0 and 0 < dim <= padded"));
}

/// Weights of one attention layer, as chains: q, k, v make heads, out consumes them.
struct AttentionChains {
  Chain q, k, v, out, q_bias, k_bias, v_bias;
};

constexpr std::int64_t kTokens = 9;
constexpr std::int64_t kWidth = 14;

/// x [kTokens, kWidth] W^T + b, W [rows, kWidth].
Numbers linear(const Numbers& x, const Numbers& w, const Numbers& b, std::int64_t columns) {
  const auto rows = static_cast<std::int64_t>(w.size()) / columns;
  Numbers out;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t i = 0; i < columns; ++i) sum += x[t * columns + i] * w[r * columns + i];
      out.push_back(b.empty() ? sum : sum + b[r]);
    }
  }
  return out;
}

/// softmax(scale * q k^T) v for each head of `dim` columns.
Numbers attend(const Numbers& q, const Numbers& k, const Numbers& v, std::int64_t heads, std::int64_t dim,
               double scale) {
  const std::int64_t pitch = heads * dim;
  Numbers out(q.size());
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      Numbers weights;
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t s = 0; s < kTokens; ++s) {
        double score = 0;
        for (std::int64_t i = h * dim; i < (h + 1) * dim; ++i) score += q[t * pitch + i] * k[s * pitch + i];
        weights.push_back(score * scale);
        largest = std::max(largest, weights.back());
      }
      double total = 0;
      for (double& weight : weights) total += weight = std::exp(weight - largest);
      for (std::int64_t i = h * dim; i < (h + 1) * dim; ++i) {
        for (std::int64_t s = 0; s < kTokens; ++s)
          out[t * pitch + i] += weights[s] / total * v[s * pitch + i];
      }
    }
  }
  return out;
}

Numbers attention_layer(const Sources& sources, const AttentionChains& w, const Numbers& x,
                        std::int64_t heads, std::int64_t dim, double scale) {
  const auto made = [&](const Chain& chain) { return numbers(chain(sources)); };
  const Numbers context =
      attend(linear(x, made(w.q), made(w.q_bias), kWidth), linear(x, made(w.k), made(w.k_bias), kWidth),
             linear(x, made(w.v), made(w.v_bias), kWidth), heads, dim, scale);
  return linear(context, made(w.out), {}, heads * dim);
}

TEST(PadHeads, AttentionIsTheSameBitForBit) {
  constexpr std::int64_t kHeads = 3;
  // GR00T's DiT, HaMeR's backbone, and a single column.
  for (const auto& [dim, padded] : {std::pair(48, 64), std::pair(80, 96), std::pair(1, 32)}) {
    const std::int64_t inner = kHeads * dim;
    Given given;
    unsigned seed = 1;
    for (const char* name : {"q", "k", "v"}) {
      given.add(name, {inner, kWidth}, normal(inner * kWidth, seed++));
      given.add(std::string(name) + ".b", {inner}, normal(inner, seed++));
    }
    given.add("out", {kWidth, inner}, normal(kWidth * inner, seed++));
    const Numbers x = normal(kTokens * kWidth, seed);
    const AttentionChains plain = {source("q"),   source("k"),   source("v"),  source("out"),
                                   source("q.b"), source("k.b"), source("v.b")};
    const Step rows_of_heads = pad_heads({0, kHeads, dim, padded});
    const AttentionChains wide = {
        plain.q | rows_of_heads,      plain.k | rows_of_heads,
        plain.v | rows_of_heads,      plain.out | pad_heads({1, kHeads, dim, padded}),
        plain.q_bias | rows_of_heads, plain.k_bias | rows_of_heads,
        plain.v_bias | rows_of_heads};
    const double scale = 1 / std::sqrt(static_cast<double>(dim));  // not of the padded width
    EXPECT_EQ(attention_layer(given.sources(), wide, x, kHeads, padded, scale),
              attention_layer(given.sources(), plain, x, kHeads, dim, scale))
        << dim;
    // Weights stored [in, out], as devices take them: the same padding on the other axis.
    EXPECT_EQ(numbers((plain.q | transpose() | pad_heads({1, kHeads, dim, padded}))(given.sources())),
              numbers((wide.q | transpose())(given.sources())));
  }
}

TEST(PadToMultiple, PutsZerosAtTheEnd) {
  EXPECT_EQ(pad_to_multiple(1, 32).name, "pad axis 1 to a multiple of 32");
  const Tensor wide = run(pad_to_multiple(1, 4), {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(wide.shape(), (Shape{2, 4}));
  EXPECT_THAT(numbers(wide), ElementsAre(1, 2, 3, 0, 4, 5, 6, 0));
  const Tensor tall = run(pad_to_multiple(0, 4), {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tall.shape(), (Shape{4, 3}));
  EXPECT_THAT(numbers(tall), ElementsAre(1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(numbers(run(pad_to_multiple(1, 3), {2, 3}, counting(6))), counting(6)) << "already one";
  EXPECT_EQ(run(pad_to_multiple(0, 32), {0, 3}, {}).shape(), (Shape{0, 3}));
  // N1.7's action width (spec tenstorrent 8.8).
  EXPECT_EQ(run(pad_to_multiple(1, 32), {1, 132}, Numbers(132)).shape(), (Shape{1, 160}));
  EXPECT_EQ(error_of([] { pad_to_multiple(0, 0); }),
            "usage: pad axis 0 to a multiple of 0: expected a positive multiple");
  EXPECT_EQ(error_of([] { run(pad_to_multiple(1, 4), {3}, counting(3)); }),
            "mismatch: the tensor is [3]; it has no axis 1");
}

TEST(Tiles, BytesAreThoseOfTheTileLayout) {
  for (const Shape& shape : {Shape{}, Shape{17}, Shape{32, 32}, Shape{33, 31}, Shape{64, 96},
                             Shape{3, 40, 70}, Shape{0, 5}, Shape{5, 0}}) {
    const Numbers values = normal(shape.count(), 3);
    const Tensor made = run(tiles(), shape, values);
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      const Tensor plain = convert(TensorView(DType::kF64, shape, values.data()), dtype);
      std::vector<std::byte> expected(static_cast<std::size_t>(tiled_bytes(shape, dtype)));
      to_tiles(plain, expected);
      const Tensor stored = convert(made, dtype);
      ASSERT_EQ(stored.view().bytes(), expected.size()) << to_string(shape);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), stored.data())) << to_string(shape);
    }
    EXPECT_EQ(made.shape(), (Shape{tile_grid(shape).tiles(), 1024}));
  }
  EXPECT_EQ(tiles().name, "tiles of 32 x 32");
}

TEST(Concatenated, AlongEitherAxis) {
  Given given;
  given.add("a", {2, 3}, counting(6)).add("b", {2, 1}, {10, 20}).add("v", {3}, {7, 8, 9});
  const Chain wide = concatenated({source("a"), source("b"), source("b")}, 1);
  EXPECT_EQ(wide.name(), "concatenate 3 on axis 1");
  EXPECT_THAT(wide.sources(), ElementsAre("a", "b"));
  EXPECT_EQ(wide(given.sources()).shape(), (Shape{2, 5}));
  EXPECT_THAT(numbers(wide(given.sources())), ElementsAre(0, 1, 2, 10, 10, 3, 4, 5, 20, 20));
  const Chain tall = concatenated({source("a") | transpose(), source("v") | reshape({3, 1})}, 1);
  EXPECT_EQ(tall.name(), "transpose / reshape [3,1], concatenate 2 on axis 1");
  EXPECT_THAT(numbers(tall(given.sources())), ElementsAre(0, 3, 7, 1, 4, 8, 2, 5, 9));
  EXPECT_EQ(numbers(concatenated({source("a"), source("a")}, 0)(given.sources())),
            numbers(stacked({"a", "a"})(given.sources())));
  EXPECT_THAT(numbers(concatenated({source("v"), source("v")}, 0)(given.sources())),
              ElementsAre(7, 8, 9, 7, 8, 9));
}

TEST(Concatenated, PartsThatDoNotFitAreNamed) {
  Given given;
  given.add("a", {2, 3}, counting(6)).add("b", {3, 2}, counting(6)).add("v", {3}, counting(3));
  const auto error = [&](const Chain& chain) { return error_of([&] { chain(given.sources()); }); };
  EXPECT_EQ(error(concatenated({source("a"), source("b")}, 0)),
            "mismatch: a + b: concatenate 2 on axis 0: [3,2] does not fit behind [2,3]");
  EXPECT_EQ(error(concatenated({source("a"), source("v")}, 0)),
            "mismatch: a + v: concatenate 2 on axis 0: [3] does not fit behind [2,3]");
  EXPECT_EQ(error(concatenated({source("a")}, 2)),
            "mismatch: a: concatenate 1 on axis 2: the tensor is [2,3]; it has no axis 2");
  EXPECT_EQ(error_of([] { concatenated({}, 0); }),
            "usage: concatenate 0 on axis 0: there is nothing to concatenate");
}

TEST(Transforms, AnEmbodimentsConstantOfGr00t) {
  // b3[e] + position rows (spec gr00t_n15 4.5).
  Given given;
  given.add("b3", {3, 2}, {0, 1, 10, 20, 30, 40}).add("position", {4, 2}, counting(8));
  const Chain b3_pos = fold_row(source_rows("position", 0, 3), source_category("b3", 1));
  EXPECT_EQ(b3_pos.name(), "rows 0..3 / category 1, add a row");
  EXPECT_THAT(numbers(b3_pos(given.sources())), ElementsAre(10, 21, 12, 23, 14, 25));
}

}  // namespace
}  // namespace sinew::transforms

// Own products of every instruction set that this processor has, against plain double-precision loops.
#include "backend/cpu/gemm_native.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/gemm_kernels.h"
#include "base/error.h"
#include "tensor/block_float.h"

namespace sinew::cpu {
namespace {

using testing::HasSubstr;

constexpr double kUnit = 0x1p-24;     // half a unit in the last place of f32 near 1
constexpr double kBf16Unit = 0x1p-8;  // of bf16, whose significands have 8 bits

/// Exactly as many bytes as asked for: with a sanitizer, a read beyond them is an error.
using Bytes = std::vector<std::byte>;

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
/// Elements of f32 or bf16, as the dtype says.
Bytes stored_as(DType dtype, const std::vector<float>& values) {
  if (dtype == DType::kF32) return bytes_of(values);
  std::vector<BF16> narrow(values.size());
  std::ranges::transform(values, narrow.begin(), [](float v) { return to_bf16(v); });
  return bytes_of(narrow);
}
float value_at(DType dtype, const Bytes& bytes, std::size_t i) {
  float wide;
  BF16 narrow;
  if (dtype == DType::kF32) {
    std::memcpy(&wide, bytes.data() + i * 4, 4);
    return wide;
  }
  std::memcpy(&narrow, bytes.data() + i * 2, 2);
  return to_f32(narrow);
}

/// The values of bfp8_b nearest to a matrix [N,K], in blocks of sixteen along N.
std::vector<float> as_bfp8(std::vector<float> w, std::int64_t n, std::int64_t k) {
  for (std::int64_t first = 0; first < n; first += kBlockSize) {
    for (std::int64_t i = 0; i < k; ++i) {
      std::array<float, kBlockSize> values{};
      const std::int64_t count = std::min<std::int64_t>(kBlockSize, n - first);
      for (std::int64_t c = 0; c < count; ++c) values[c] = w[(first + c) * k + i];
      const Block block = pack_block(values, BlockFormat::kBfp8);
      for (std::int64_t c = 0; c < count; ++c) {
        w[(first + c) * k + i] = to_f32(unpack_code(BlockFormat::kBfp8, block.exponent, block.codes[c]));
      }
    }
  }
  return w;
}

/// One product's operands and what they give.
struct Case {
  GemmShape shape;
  Bytes x, weight;
  std::vector<float> bias, residual;
};

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  std::vector<float> normal(std::int64_t count, float scale = 1) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& v : out) v = scale * normal(random_);
    return out;
  }
  Case make(const GemmShape& s) {
    Case c{
        .shape = s, .x = stored_as(s.operand, normal(s.m * s.k)), .weight = {}, .bias = {}, .residual = {}};
    auto w = normal(s.n * s.k, 1 / std::sqrt(static_cast<float>(s.k)));
    if (s.storage == WeightStorage::kBfp8) w = as_bfp8(w, s.n, s.k);
    c.weight = stored_as(s.operand, w);
    if (s.bias) c.bias = normal(s.n);
    if (s.residual) c.residual = normal(s.m * s.n);
    return c;
  }

 private:
  std::mt19937 random_;
};

TensorView weight_view(const Case& c) { return {c.shape.operand, {c.shape.n, c.shape.k}, c.weight.data()}; }

AlignedBuffer packed(const Case& c, Isa isa) {
  const WeightForm form = native_form(c.shape, isa);
  AlignedBuffer out(form.bytes);
  native_pack(weight_view(c), c.shape, {out.data(), form.bytes}, isa);
  return out;
}

Bytes multiply(const Case& c, Isa isa, int threads) {
  const AlignedBuffer weight = packed(c, isa);
  const GemmShape& s = c.shape;
  Bytes out(static_cast<std::size_t>(s.m * s.n) * size_of(s.out));
  GemmOperands operands{
      .x = c.x.data(), .weight = weight.data(), .bias = nullptr, .residual = nullptr, .out = out.data()};
  if (s.bias) operands.bias = c.bias.data();
  if (s.residual) operands.residual = c.residual.data();
  const auto gemm = make_native_gemm(s, operands, threads, isa);
  const ScratchSize size = gemm->scratch();
  AlignedBuffer shared(size.shared);
  AlignedBuffer per_thread(size.per_thread * static_cast<std::size_t>(threads));
  gemm->bind_scratch({shared.data(), per_thread.data(), size.per_thread});
  ThreadPool pool(threads);
  gemm->run(pool);
  const Bytes first = out;
  gemm->run(pool);  // what the first run left in scratch must not matter
  EXPECT_EQ(out, first);
  return out;
}

double exact_gelu(double x) { return x / 2 * std::erfc(-x * M_SQRT1_2); }

struct Expected {
  double value, bound;
};

/// Each sum is K additions in f32 in order (the bf16 dot product rounds after each of its two): K units of
/// the sum of sizes. Then one rounding a step; |GELU'| < 1.13, and its own error is 2e-7 of |x| at most.
Expected expected(const Case& c, std::int64_t row, std::int64_t column) {
  const GemmShape& s = c.shape;
  double sum = 0;
  double size = 0;
  for (std::int64_t i = 0; i < s.k; ++i) {
    const double term = static_cast<double>(value_at(s.operand, c.x, row * s.k + i)) *
                        value_at(s.operand, c.weight, column * s.k + i);
    sum += term;
    size += std::fabs(term);
  }
  double bound = static_cast<double>(s.k + 1) * kUnit * size;
  if (s.bias) {
    sum += c.bias[column];
    bound += kUnit * std::fabs(sum);
  }
  if (s.gelu) {
    bound = 1.13 * bound + 2e-7 * std::fabs(sum);
    sum = exact_gelu(sum);
  }
  if (s.residual) {
    sum += c.residual[row * s.n + column];
    bound += kUnit * std::fabs(sum);
  }
  if (s.out == DType::kBF16) bound += kBf16Unit * (std::fabs(sum) + bound);
  return {sum, 1.001 * bound};  // products of the roundings
}

void expect_right(const Case& c, Isa isa, int threads) {
  const Bytes out = multiply(c, isa, threads);
  const GemmShape& s = c.shape;
  for (std::int64_t at = 0; at < s.m * s.n; ++at) {
    const Expected e = expected(c, at / s.n, at % s.n);
    ASSERT_NEAR(value_at(s.out, out, at), e.value, e.bound)
        << s.m << " x " << s.n << " x " << s.k << " " << to_string(s.operand)
        << (s.storage == WeightStorage::kBfp8 ? " bfp8" : "") << ", element [" << at / s.n << "," << at % s.n
        << "]";
  }
}

struct Kind {
  DType operand;
  WeightStorage storage;
};
constexpr Kind kKinds[] = {{DType::kF32, WeightStorage::kPlain},
                           {DType::kBF16, WeightStorage::kPlain},
                           {DType::kBF16, WeightStorage::kBfp8}};

class GemmNativeTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this processor has no " << to_string(GetParam());
  }
  Random random_{11};
};

/// Bits of `turn` choose the rest of a product.
GemmShape varied(std::int64_t m, std::int64_t n, std::int64_t k, const Kind& kind, int turn) {
  return {.m = m,
          .n = n,
          .k = k,
          .operand = kind.operand,
          .out = (turn & 1) != 0 ? DType::kBF16 : DType::kF32,
          .storage = kind.storage,
          .bias = (turn & 2) != 0,
          .gelu = (turn & 4) != 0,
          .residual = (turn & 8) != 0};
}

TEST_P(GemmNativeTest, SmallShapes) {
  int turn = 0;
  for (const Kind& kind : kKinds) {
    for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 12, 13, 17, 25}) {
      for (const std::int64_t n : {1, 15, 16, 17, 31, 32, 33, 64, 65, 130, 260}) {
        for (const std::int64_t k : {1, 2, 3, 31, 32, 33, 49}) {
          expect_right(random_.make(varied(m, n, k, kind, turn)), GetParam(), 1 + turn % 2);
          ++turn;
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(GemmNativeTest, ShapesThatAreCutUp) {
  constexpr std::int64_t kShapes[][3] = {{1, 1024, 1024}, {192, 64, 300}, {300, 41, 49},  {49, 192, 513},
                                         {41, 49, 1025},  {17, 300, 256}, {400, 32, 64},  {769, 33, 17},
                                         {2, 300, 640},   {4, 260, 511},  {64, 157, 255}, {12, 128, 768}};
  int turn = 0;
  for (const Kind& kind : kKinds) {
    for (const auto& [m, n, k] : kShapes) {
      expect_right(random_.make(varied(m, n, k, kind, turn)), GetParam(), 1 + turn % 3);
      turn += 5;
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(GemmNativeTest, EveryEnding) {
  for (const Kind& kind : kKinds) {
    for (int ending = 0; ending < 16; ++ending) {
      expect_right(random_.make(varied(13, 41, 37, kind, ending)), GetParam(), 1);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(GemmNativeTest, BitsDoNotDependOnThreadsOrOtherRows) {
  constexpr std::int64_t kShapes[][3] = {
      {1, 300, 700}, {5, 1000, 90}, {49, 96, 600}, {192, 64, 320}, {500, 70, 33}};
  for (const Kind& kind : kKinds) {
    for (const auto& [m, n, k] : kShapes) {
      const Case all = random_.make(varied(m, n, k, kind, 14));
      const Bytes alone = multiply(all, GetParam(), 1);
      for (const int threads : {2, 3})
        EXPECT_EQ(multiply(all, GetParam(), threads), alone) << m << ", " << threads;
      Case last = all;  // the last row by itself
      last.shape.m = 1;
      const std::size_t row = all.x.size() / static_cast<std::size_t>(m);
      last.x.assign(all.x.end() - static_cast<std::ptrdiff_t>(row), all.x.end());
      last.residual.assign(all.residual.end() - n, all.residual.end());
      const Bytes result = multiply(last, GetParam(), 1);
      EXPECT_EQ(result, Bytes(alone.end() - static_cast<std::ptrdiff_t>(result.size()), alone.end())) << m;
    }
  }
}

TEST_P(GemmNativeTest, Bfp8GivesTheBitsOfBf16) {
  constexpr std::int64_t kShapes[][3] = {{1, 1024, 64}, {3, 50, 31}, {16, 64, 600}, {70, 33, 257}};
  for (const auto& [m, n, k] : kShapes) {
    Case c = random_.make(varied(m, n, k, kKinds[2], 2));
    const Bytes out = multiply(c, GetParam(), 2);
    c.shape.storage = WeightStorage::kPlain;
    EXPECT_EQ(multiply(c, GetParam(), 2), out) << m << " x " << n << " x " << k;
  }
}

/// Blocks of every exponent, to the largest and to the subnormals, signed zeros, a block of zeros.
TEST_P(GemmNativeTest, Bfp8OfEveryExponent) {
  constexpr std::int64_t kN = 16;
  constexpr std::int64_t kK = 256;
  std::vector<float> w(kN * kK);
  for (int e = 0; e < 255; ++e) {
    for (int c = 0; c < kN; ++c) {
      const int code = c == 0 ? 127 : c == 1 ? 0x80 : (e * 37 + c * 91) & 0xff;  // code 0x80: minus zero
      w[c * kK + e] = to_f32(
          unpack_code(BlockFormat::kBfp8, static_cast<std::uint8_t>(e), static_cast<std::uint8_t>(code)));
    }
  }
  // x picks one k a row, and a power of two brings the value into the normal range: the product is exact.
  std::vector<float> x(kK * kK);
  for (int e = 0; e < kK; ++e) x[e * kK + e] = e < 128 ? 0x1p60F : 0x1p-60F;
  Case c{.shape = {.m = kK, .n = kN, .k = kK, .operand = DType::kBF16, .storage = WeightStorage::kBfp8},
         .x = stored_as(DType::kBF16, x),
         .weight = stored_as(DType::kBF16, w),
         .bias = {},
         .residual = {}};
  const Bytes out = multiply(c, GetParam(), 1);
  for (std::int64_t at = 0; at < kK * kN; ++at) {
    const float value = w[at % kN * kK + at / kN];
    // The dot product takes subnormal operands for zero.
    const bool zero = GetParam() == Isa::kAvx512Bf16 && std::fpclassify(value) == FP_SUBNORMAL;
    EXPECT_EQ(value_at(DType::kF32, out, at), zero ? 0 : value * x[at / kN * kK + at / kN]) << at;
  }
  c.shape.storage = WeightStorage::kPlain;
  EXPECT_EQ(multiply(c, GetParam(), 1), out);
}

TEST_P(GemmNativeTest, PackingRefusesWhatBfp8CannotHold) {
  const GemmShape shape{.m = 1, .n = 40, .k = 5, .operand = DType::kBF16, .storage = WeightStorage::kBfp8};
  struct Bad {
    float value;
    const char* text;
  };
  for (const Bad& bad :
       {Bad{1.0078125F, "element [37,3] = 1.0078125 "},
        Bad{std::numeric_limits<float>::infinity(), "[37,3] = inf"},
        Bad{std::numeric_limits<float>::quiet_NaN(), "[37,3] = nan"}, Bad{0x1p-8F, "[37,3] = 0.00390625"}}) {
    std::vector<float> w(40 * 5, 1.0F);
    w[37 * 5 + 3] = bad.value;
    const Case c{.shape = shape, .x = {}, .weight = stored_as(DType::kBF16, w), .bias = {}, .residual = {}};
    try {
      packed(c, GetParam());
      FAIL() << "packed " << bad.value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      EXPECT_THAT(error.what(), HasSubstr(bad.text));
    }
  }
}

TEST_P(GemmNativeTest, FormsSayWhatTheBytesAre) {
  const bool narrow = GetParam() == Isa::kAvx2;
  const std::int64_t width = narrow ? 16 : 32;
  const std::string panels = narrow ? "panels of 16, " : "panels of 32, ";
  const auto form = [&](std::int64_t n, std::int64_t k, const Kind& kind) {
    return native_form(varied(192, n, k, kind, 0), GetParam());
  };
  EXPECT_EQ(form(64, 96, kKinds[0]).layout, panels + "k by k, v1");
  EXPECT_EQ(form(64, 96, kKinds[0]).dtype, "f32");
  EXPECT_EQ(form(64, 96, kKinds[0]).bytes, 64U * 96 * 4);
  EXPECT_EQ(form(65, 97, kKinds[0]).bytes, static_cast<std::size_t>((64 + width) * 97 * 4));
  EXPECT_EQ(form(64, 96, kKinds[1]).layout, panels + "pairs of k, v1");
  EXPECT_EQ(form(64, 96, kKinds[1]).dtype, "bf16");
  EXPECT_EQ(form(64, 96, kKinds[1]).bytes, 64U * 96 * 2);
  EXPECT_EQ(form(65, 97, kKinds[1]).bytes, static_cast<std::size_t>((64 + width) * 98 * 2));
  EXPECT_EQ(form(64, 96, kKinds[2]).layout,
            panels + "pairs of k, blocks of 16 pairs with exponents behind, v1");
  EXPECT_EQ(form(64, 96, kKinds[2]).dtype, "bfp8_b");
  EXPECT_EQ(form(64, 96, kKinds[2]).bytes, 64U * 96 * 17 / 16);
}

TEST_P(GemmNativeTest, PackedPlacesAndPadding) {
  const std::int64_t width = GetParam() == Isa::kAvx2 ? 16 : 32;
  const std::int64_t panels = (41 + width - 1) / width;
  const Case f32 = random_.make(varied(1, 41, 7, kKinds[0], 0));
  const AlignedBuffer f32_packed = packed(f32, GetParam());
  const Case bf16 = random_.make(varied(1, 41, 7, kKinds[1], 0));
  const AlignedBuffer bf16_packed = packed(bf16, GetParam());
  for (std::int64_t column = 0; column < panels * width; ++column) {
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t panel = column / width;
      const bool inside = column < 41 && i < 7;
      if (i < 7) {
        float value;
        std::memcpy(&value, f32_packed.data() + 4 * (panel * 7 * width + i * width + column % width), 4);
        EXPECT_EQ(value, inside ? value_at(DType::kF32, f32.weight, column * 7 + i) : 0);
      }
      BF16 half;
      std::memcpy(
          &half,
          bf16_packed.data() + 2 * (panel * 8 * width + i / 2 * 2 * width + column % width * 2 + i % 2), 2);
      EXPECT_EQ(to_f32(half), inside ? value_at(DType::kBF16, bf16.weight, column * 7 + i) : 0);
    }
  }
}

/// One k, a weight of 1: the result is the GELU of x.
TEST_P(GemmNativeTest, Gelu) {
  std::vector<float> x;
  for (int i = -4096; i <= 4096; ++i) x.push_back(static_cast<float>(i) / 512);
  for (float v = 1e-30F; v < 1e30F; v *= 3) x.insert(x.end(), {v, -v});
  const auto m = static_cast<std::int64_t>(x.size());
  const Case c{.shape = {.m = m, .n = 1, .k = 1, .gelu = true},
               .x = bytes_of(x),
               .weight = bytes_of(std::vector{1.0F}),
               .bias = {},
               .residual = {}};
  const Bytes out = multiply(c, GetParam(), 1);
  for (std::int64_t i = 0; i < m; ++i) {
    const double exact = exact_gelu(x[i]);
    // A power of e to 2e-7 and four roundings around it. Its exponent L is a polynomial whose terms add up to
    // 5 L in size: a rounding of each coefficient and of each step are 10 L units. Below -6 the result stays
    // at -6e-9.
    const double u = std::min(6.0, -static_cast<double>(x[i]));
    const double exponent = x[i] < 0 ? std::fabs(std::log(std::erfc(u * M_SQRT1_2))) : 0;
    const double bound = (2e-7 + (4 + 10 * exponent) * kUnit) * std::fabs(exact) + (x[i] < -6 ? 6e-9 : 0);
    EXPECT_NEAR(value_at(DType::kF32, out, i), exact, bound) << x[i];
    EXPECT_LE(std::fabs(value_at(DType::kF32, out, i) - exact), 2e-7 * std::fabs(x[i])) << x[i];
  }
}

TEST_P(GemmNativeTest, GeluAtTheEdgesOfNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const Case c{.shape = {.m = 4, .n = 1, .k = 1, .gelu = true},
               .x = bytes_of(x),
               .weight = bytes_of(std::vector{1.0F}),
               .bias = {},
               .residual = {}};
  const Bytes out = multiply(c, GetParam(), 1);
  EXPECT_EQ(value_at(DType::kF32, out, 0), kInfinity);
  EXPECT_NEAR(value_at(DType::kF32, out, 1), 0, 6e-9);
  EXPECT_TRUE(std::isnan(value_at(DType::kF32, out, 2)));
  EXPECT_EQ(value_at(DType::kF32, out, 3), 0);
}

TEST_P(GemmNativeTest, ImplementationNamesTheInstructions) {
  const auto name = [&](const Kind& kind) {
    return make_native_gemm(varied(4, 4, 4, kind, 0), {}, 1, GetParam())->implementation();
  };
  const std::string isa = "sinew " + std::string(to_string(GetParam()));
  const bool dot = GetParam() == Isa::kAvx512Bf16;
  EXPECT_EQ(name(kKinds[0]), isa + " f32");
  EXPECT_EQ(name(kKinds[1]), isa + (dot ? " bf16" : " bf16 widened"));
  EXPECT_EQ(name(kKinds[2]), isa + (dot ? " bfp8 by bf16" : " bfp8 widened"));
}

INSTANTIATE_TEST_SUITE_P(Isas, GemmNativeTest, testing::Values(Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16),
                         [](const auto& test) {
                           std::string name(to_string(test.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(GemmNative, ServesWhatItHasKernelsFor) {
  const GemmShape f32{.m = 1, .n = 1, .k = 1};
  GemmShape bfp8 = f32;
  bfp8.storage = WeightStorage::kBfp8;
  EXPECT_FALSE(native_serves(f32, Isa::kBaseline));
  EXPECT_EQ(native_serves(f32, Isa::kAvx2), best_isa() >= Isa::kAvx2);
  EXPECT_FALSE(native_serves(bfp8)) << "bfp8 goes with bf16";
  bfp8.operand = DType::kBF16;
  EXPECT_EQ(native_serves(bfp8), best_isa() >= Isa::kAvx2);
  GemmShape half = f32;
  half.operand = DType::kF16;
  EXPECT_FALSE(native_serves(half));
}

TEST(Gemm, UsesNoInstructionSetAboveItsLimit) {
  if (best_isa() < Isa::kAvx2) GTEST_SKIP() << "this processor has no AVX2";
  for (const Isa isa : kAllIsas) {
    if (isa < Isa::kAvx2 || isa > best_isa()) continue;
    const GemmShape shape{.m = 16, .n = 64, .k = 64, .isa = isa};
    const std::string name = make_gemm(shape, {}, 1)->implementation();
    EXPECT_EQ(name, "sinew " + std::string(to_string(gemm_kernels(native_isa(isa))->isa)) + " f32");
    EXPECT_LE(gemm_kernels(native_isa(isa))->isa, isa);
  }
  EXPECT_EQ(make_gemm({.m = 16, .n = 64, .k = 64, .isa = Isa::kAvx2}, {}, 1)->implementation(),
            "sinew avx2 f32");
}

}  // namespace
}  // namespace sinew::cpu

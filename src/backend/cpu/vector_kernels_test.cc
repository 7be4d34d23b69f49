// Every table that this processor can run, against plain double-precision loops.
#include "backend/cpu/vector_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "tensor/tensor.h"

namespace sinew::cpu {
namespace {

constexpr double kUnit = 0x1p-24;  // half a unit in the last place of f32 near 1

class VectorKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this processor has no " << to_string(GetParam());
  }
  const VectorKernels& kernels() const { return vector_kernels(GetParam()); }

  std::vector<float> random(std::int64_t n, float scale = 1, float offset = 0) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<std::size_t>(n));
    for (float& v : out) v = offset + scale * normal(random_);
    return out;
  }
  std::mt19937 random_{42};
};

TEST_P(VectorKernelsTest, TableIsTheOneAskedFor) { EXPECT_EQ(kernels().isa, GetParam()); }

TEST_P(VectorKernelsTest, LayerNorm) {
  for (const std::int64_t n : {1, 2, 15, 16, 17, 80, 320, 1024, 1280, 1283}) {
    for (const float offset : {0.0F, 30.0F}) {
      const auto x = random(n, 2, offset);
      const auto gamma = random(n, 0.2F, 1);
      const auto beta = random(n);
      std::vector<float> out(x.size());
      std::vector<BF16> narrow(x.size());
      kernels().layer_norm_f32(x.data(), gamma.data(), beta.data(), n, 1e-5F, out.data());
      kernels().layer_norm_bf16(x.data(), gamma.data(), beta.data(), n, 1e-5F, narrow.data());
      double mean = 0;
      double largest = 0;
      for (const double v : x) {
        mean += v / static_cast<double>(n);
        largest = std::max(largest, std::fabs(v));
      }
      double variance = 0;
      for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
      const double deviation = std::sqrt(variance + static_cast<double>(1e-5F));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double normed = (x[i] - mean) / deviation;
        const double expected = normed * gamma[i] + beta[i];
        // Partial sums of at most n/4 terms put an error of (n/4 + 4) units of the largest |x| into the mean;
        // the rest are a few roundings.
        const double relative =
            (static_cast<double>(n) / 4 + 16) * kUnit * (largest / deviation) * (1 + std::fabs(normed));
        const double bound = std::fabs(gamma[i]) * relative + 2 * kUnit * std::fabs(expected) + 1e-12;
        EXPECT_NEAR(out[i], expected, bound) << "n " << n << " element " << i;
        EXPECT_EQ(narrow[i].bits, to_bf16(out[i]).bits);
      }
    }
  }
}

TEST_P(VectorKernelsTest, ConversionsAgreeWithTheScalarOnesForEveryClassOfNumber) {
  std::vector<float> x = random(1000, 1e3F);
  for (const std::uint32_t bits :
       {0x00000000U, 0x80000000U, 0x7f800000U, 0xff800000U, 0x7f800001U, 0xffc12345U, 0x7f7fffffU,
        0x00000001U, 0x3f808000U, 0x3f818000U, 0x3f80ffffU, 0x00008000U}) {
    x.push_back(std::bit_cast<float>(bits));
  }
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<BF16> narrow(x.size());
  std::vector<float> wide(x.size());
  kernels().f32_to_bf16(x.data(), n, narrow.data());
  kernels().bf16_to_f32(narrow.data(), n, wide.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(narrow[i].bits, to_bf16(x[i]).bits) << x[i];
    EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[i]), static_cast<std::uint32_t>(narrow[i].bits) << 16);
  }
}

template <typename T>
double widen(T v) {
  if constexpr (std::is_same_v<T, BF16>)
    return to_f32(v);
  else
    return v;
}

/// One head, from fused [rows, 3 * dim] matrices so that strides differ from dim, against double.
template <typename T>
void check_attention(void (*kernel)(const HeadArguments<T>&), std::mt19937& random, std::int64_t queries,
                     std::int64_t keys, std::int64_t dim, float spread) {
  std::normal_distribution<float> normal(0, spread);
  const std::int64_t stride = 3 * dim + 5;
  std::vector<T> matrix(static_cast<std::size_t>(std::max(queries, keys) * stride));
  for (T& v : matrix) {
    if constexpr (std::is_same_v<T, BF16>)
      v = to_bf16(normal(random));
    else
      v = normal(random);
  }
  std::vector<T> out(static_cast<std::size_t>(queries * (dim + 3)));
  AlignedBuffer scratch(static_cast<std::size_t>(attention_scratch(keys, dim)) * sizeof(float));
  HeadArguments<T> h;
  h.q = matrix.data();
  h.k = matrix.data() + dim;
  h.v = matrix.data() + 2 * dim;
  h.out = out.data();
  h.q_stride = h.k_stride = h.v_stride = stride;
  h.out_stride = dim + 3;
  h.queries = queries;
  h.keys = keys;
  h.dim = dim;
  h.scale = 1 / std::sqrt(static_cast<float>(dim));
  h.scratch = reinterpret_cast<float*>(scratch.data());
  kernel(h);

  for (std::int64_t i = 0; i < queries; ++i) {
    std::vector<double> scores(static_cast<std::size_t>(keys));
    double score_error = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double magnitude = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        const double product = widen(h.q[i * stride + d]) * widen(h.k[j * stride + d]) * h.scale;
        scores[static_cast<std::size_t>(j)] += product;
        magnitude += std::fabs(product);
      }
      score_error = std::max(score_error, (static_cast<double>(dim) + 3) * kUnit * magnitude);
    }
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& s : scores) sum += s = std::exp(s - top);
    for (std::int64_t d = 0; d < dim; ++d) {
      double expected = 0;
      double magnitude = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double term = scores[static_cast<std::size_t>(j)] / sum * widen(h.v[j * stride + d]);
        expected += term;
        magnitude += std::fabs(term);
      }
      // A score's error e moves its weight by e and the sum by e; exp is good to 2e-7; the sums have `keys`
      // terms. Weights are held at e^-87, which is 1e-38 of the largest.
      const double relative = 2 * score_error + 4e-7 + (static_cast<double>(keys) + 8) * kUnit;
      const double rounding = std::is_same_v<T, BF16> ? 0x1p-8 : kUnit;
      const double bound = relative * magnitude + rounding * std::fabs(expected) + 1e-30;
      EXPECT_NEAR(widen(out[static_cast<std::size_t>(i * h.out_stride + d)]), expected, bound)
          << queries << " queries, " << keys << " keys, dim " << dim << ": row " << i << ", column " << d;
    }
  }
}

TEST_P(VectorKernelsTest, Attention) {
  for (const std::int64_t queries : {1, 3, 4, 7, 41}) {
    for (const std::int64_t keys : {1, 5, 16, 49, 192}) {
      for (const std::int64_t dim : {1, 8, 64, 80}) {
        check_attention<float>(kernels().attention_f32, random_, queries, keys, dim, 1);
        check_attention<BF16>(kernels().attention_bf16, random_, queries, keys, dim, 1);
      }
    }
  }
}

TEST_P(VectorKernelsTest, AttentionWithOneDominantKey) {
  check_attention<float>(kernels().attention_f32, random_, 5, 33, 16, 12);  // scores of several hundred
}

INSTANTIATE_TEST_SUITE_P(Isas, VectorKernelsTest, testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace sinew::cpu

// The row kernels in terms of the vectors of vector_types.h, which says what holds for this file, too.
#pragma once

#include <cmath>
#include <cstring>

#include "backend/cpu/vector_kernels.h"
#include "backend/cpu/vector_types.h"

namespace sinew::cpu::SINEW_ISA_NAMESPACE {

/// Sum of the lanes, pairwise.
static inline float sum(Vec v) {
  float lanes[kLanes];
  std::memcpy(lanes, &v, sizeof(v));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}
static inline float largest(Vec v) {
  float lanes[kLanes];
  std::memcpy(lanes, &v, sizeof(v));
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  }
  return lanes[0];
}

/// e^x for x <= 0 (the softmax's range), relative error below 2e-7: x = n ln2 + r, |r| <= ln2/2, Taylor to
/// degree 7. Below -87 the result is held at e^-87 = 1.6e-38, above the subnormals, which would cost 100
/// cycles each.
static inline Vec exp_of_negative(Vec x) {
  const Vec lowest = splat(-87.0F);
  x = x > lowest ? x : lowest;
  const Vec shifted = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec n = shifted - 12582912.0F;
  const Vec r =
      (x - n * 0.693145752F) - n * 1.42860677e-6F;  // ln 2 in two parts, the first with 16 zero bits
  Vec p = splat(1.0F / 5040);
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const IntVec exponent = (__builtin_convertvector(n, IntVec) + 127) << 23;
  Vec scale;
  std::memcpy(&scale, &exponent, sizeof(scale));
  return p * scale;
}

static inline void put(float* p, float v) { *p = v; }
static inline void put(BF16* p, float v) { *p = to_bf16(v); }
static inline float get(const float* p) { return *p; }
static inline float get(const BF16* p) { return to_f32(*p); }

template <typename Out>
static void layer_norm(const float* x, const float* gamma, const float* beta, std::int64_t n, float eps,
                       Out* out) {
  Vec total{};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) total += load(x + i);
  float mean = sum(total);
  for (; i < n; ++i) mean += x[i];
  mean /= static_cast<float>(n);

  Vec squares{};
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const Vec d = load(x + i) - mean;
    squares += d * d;
  }
  float variance = sum(squares);
  for (; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
  variance /= static_cast<float>(n);

  const float scale = 1 / std::sqrt(variance + eps);
  for (i = 0; i + kLanes <= n; i += kLanes) {
    store(out + i, (load(x + i) - mean) * scale * load(gamma + i) + load(beta + i));
  }
  for (; i < n; ++i) put(out + i, (x[i] - mean) * scale * gamma[i] + beta[i]);
}

template <typename From, typename To>
static void convert_row(const From* x, std::int64_t n, To* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, load(x + i));
  for (; i < n; ++i) put(out + i, get(x + i));
}

/// c[r][..] = sum_k a[r * a_stride + k] * b[k * b_stride + ..] for R rows and C vectors of columns. With R =
/// 4 and C = 3 the twelve accumulators, three loads and one broadcast fill the 16 registers of AVX2.
template <int R, int C>
static inline void block_product(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                                 std::int64_t k, float* c, std::int64_t c_stride) {
  Vec sums[R][C];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < C; ++j) sums[r][j] = Vec{};
  }
  for (std::int64_t i = 0; i < k; ++i) {
    Vec column[C];
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) column[j] = load(b + i * b_stride + j * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int j = 0; j < C; ++j) sums[r][j] += a[r * a_stride + i] * column[j];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < C; ++j) store(c + r * c_stride + j * kLanes, sums[r][j]);
  }
}

/// All columns [0, n) of R rows, n a multiple of kLanes.
template <int R>
static void row_product(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                        std::int64_t k, float* c, std::int64_t c_stride, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + 3 * kLanes <= n; j += 3 * kLanes)
    block_product<R, 3>(a, a_stride, b + j, b_stride, k, c + j, c_stride);
  for (; j < n; j += kLanes) block_product<R, 1>(a, a_stride, b + j, b_stride, k, c + j, c_stride);
}

/// Scores to unnormalised weights in place; returns their sum. `padded` is n rounded up to a vector; the
/// padding becomes 0.
static float softmax_row(float* row, std::int64_t n, std::int64_t padded) {
  for (std::int64_t i = n; i < padded; ++i) row[i] = -INFINITY;
  Vec top = load(row);
  for (std::int64_t i = kLanes; i < padded; i += kLanes) {
    const Vec x = load(row + i);
    top = x > top ? x : top;
  }
  const float peak = largest(top);
  for (std::int64_t i = 0; i < padded; i += kLanes) store(row + i, exp_of_negative(load(row + i) - peak));
  for (std::int64_t i = n; i < padded; ++i) row[i] = 0;
  Vec total{};
  for (std::int64_t i = 0; i < padded; i += kLanes) total += load(row + i);
  return sum(total);
}

/// Four query rows at a time: scores in L1, softmax, weighted sum of V.
template <typename T>
static void attention(const HeadArguments<T>& h) {
  const std::int64_t keys = (h.keys + kLanes - 1) / kLanes * kLanes;
  const std::int64_t dim = (h.dim + kLanes - 1) / kLanes * kLanes;
  float* k_transposed = h.scratch;         // [dim][padded keys]
  float* v = k_transposed + h.dim * keys;  // [keys][padded dim]
  float* rows = v + h.keys * dim;          // queries [4][h.dim], then results [4][padded dim]
  float* scores = rows + 4 * dim;          // [4][padded keys]
  for (std::int64_t j = 0; j < h.keys; ++j) {
    for (std::int64_t d = 0; d < h.dim; ++d) k_transposed[d * keys + j] = get(h.k + j * h.k_stride + d);
    for (std::int64_t d = 0; d < h.dim; ++d) v[j * dim + d] = get(h.v + j * h.v_stride + d);
    for (std::int64_t d = h.dim; d < dim; ++d) v[j * dim + d] = 0;
  }
  for (std::int64_t d = 0; d < h.dim; ++d) {
    for (std::int64_t j = h.keys; j < keys; ++j) k_transposed[d * keys + j] = 0;
  }
  for (std::int64_t first = 0; first < h.queries; first += 4) {
    const std::int64_t count = h.queries - first < 4 ? h.queries - first : 4;
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t d = 0; d < h.dim; ++d)
        rows[r * dim + d] = h.scale * get(h.q + (first + r) * h.q_stride + d);
    }
    if (count == 4) {
      row_product<4>(rows, dim, k_transposed, keys, h.dim, scores, keys, keys);
    } else {
      for (std::int64_t r = 0; r < count; ++r) {
        row_product<1>(rows + r * dim, dim, k_transposed, keys, h.dim, scores + r * keys, keys, keys);
      }
    }
    float inverse[4];
    for (std::int64_t r = 0; r < count; ++r) inverse[r] = 1 / softmax_row(scores + r * keys, h.keys, keys);
    if (count == 4) {
      row_product<4>(scores, keys, v, dim, h.keys, rows, dim, dim);
    } else {
      for (std::int64_t r = 0; r < count; ++r) {
        row_product<1>(scores + r * keys, keys, v, dim, h.keys, rows + r * dim, dim, dim);
      }
    }
    for (std::int64_t r = 0; r < count; ++r) {
      T* out = h.out + (first + r) * h.out_stride;
      for (std::int64_t d = 0; d < h.dim; ++d) put(out + d, rows[r * dim + d] * inverse[r]);
    }
  }
}

}  // namespace sinew::cpu::SINEW_ISA_NAMESPACE

// NOLINTNEXTLINE(bugprone-macro-parentheses): the argument is a name being declared
#define SINEW_VECTOR_KERNELS(table, level)                                    \
  const VectorKernels table = {level,                                         \
                               SINEW_ISA_NAMESPACE::layer_norm<float>,        \
                               SINEW_ISA_NAMESPACE::layer_norm<BF16>,         \
                               SINEW_ISA_NAMESPACE::attention<float>,         \
                               SINEW_ISA_NAMESPACE::attention<BF16>,          \
                               SINEW_ISA_NAMESPACE::convert_row<float, BF16>, \
                               SINEW_ISA_NAMESPACE::convert_row<BF16, float>, \
                               SINEW_ISA_NAMESPACE::kLanes,                   \
                               SINEW_ISA_NAMESPACE::pixel_product,            \
                               SINEW_ISA_NAMESPACE::depthwise_row}

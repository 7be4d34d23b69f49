#include "image/resample_kernels.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define SINEW_AVX2 __attribute__((target("avx2")))
#endif

namespace sinew::kernels {

HorizontalPass::HorizontalPass(const AxisFilter& columns, const std::uint8_t pad[3], bool avx2)
    : columns_(columns), avx2_(avx2) {
  bias_.reserve(std::size_t{4} * columns.outputs());
  for (int k = 0; k < columns.outputs(); ++k) {
    for (int c = 0; c < 3; ++c) bias_.push_back(kHalf + columns.outside[k] * pad[c]);
    bias_.push_back(0);
  }
  if (avx2_) pack();
}

void HorizontalPass::pack() {
  constexpr int kSplit = AxisFilter::kWeightBits / 2;
  for (int k = 0; k < columns_.outputs(); ++k) {
    quad_begin_.push_back(static_cast<int>(quads_.size()));
    for (int j = 0; j < columns_.count[k]; j += 4) {
      Quad quad{};
      for (int tap = 0; tap < 4 && j + tap < columns_.count[k]; ++tap) {
        const std::int32_t weight = columns_.row(k)[j + tap];
        for (int channel = 0; channel < 3; ++channel) {
          const int at = tap / 2 * 8 + channel * 2 + tap % 2;
          quad.high[at] = static_cast<std::int16_t>(weight >> kSplit);
          quad.low[at] = static_cast<std::int16_t>(weight & ((1 << kSplit) - 1));
        }
      }
      quads_.push_back(quad);
    }
  }
  quad_begin_.push_back(static_cast<int>(quads_.size()));
}

void HorizontalPass::run(const Image& source, int y, std::uint8_t* out) const {
  const std::uint8_t* row = source.pixel(0, y);
  if (!avx2_) return run_plain(row, out);
  // A quad reads 16 bytes from its first pixel on: at most 13 beyond the row.
  constexpr std::size_t kSlack = 16;
  const std::size_t bytes = std::size_t{3} * source.width;
  const std::size_t left = source.rgb.size() - static_cast<std::size_t>(y) * bytes;
  if (left < bytes + kSlack) {
    tail_.assign(bytes + kSlack, 0);
    std::memcpy(tail_.data(), row, bytes);
    row = tail_.data();
  }
  run_avx2(row, out);
}

void HorizontalPass::run_plain(const std::uint8_t* row, std::uint8_t* out) const {
  for (int k = 0; k < columns_.outputs(); ++k) {
    const std::uint8_t* pixel = row + std::size_t{3} * columns_.first[k];
    const std::int32_t* weights = columns_.row(k);
    std::int32_t r = bias_[4 * k];
    std::int32_t g = bias_[4 * k + 1];
    std::int32_t b = bias_[4 * k + 2];
    for (int j = 0; j < columns_.count[k]; ++j, pixel += 3) {
      r += weights[j] * pixel[0];
      g += weights[j] * pixel[1];
      b += weights[j] * pixel[2];
    }
    out[3 * k] = to_pixel(r);
    out[3 * k + 1] = to_pixel(g);
    out[3 * k + 2] = to_pixel(b);
  }
}

namespace {

[[gnu::always_inline]] inline void vertical_body(const VerticalRow& row, std::uint8_t* out) {
  std::int32_t* sums = row.sums;
  if (row.outside != 0) {
    for (std::size_t i = 0; i < row.stride; ++i) sums[i] = kHalf + row.outside * row.padding[i];
  } else {
    std::fill(sums, sums + row.stride, kHalf);
  }
  for (int j = 0; j < row.count; ++j) {
    const std::uint8_t* in = row.first + j * row.stride;
    const std::int32_t weight = row.weights[j];
    if (weight == 0) continue;
    for (std::size_t i = 0; i < row.stride; ++i) sums[i] += weight * in[i];
  }
  for (std::size_t i = 0; i < row.stride; ++i) out[i] = to_pixel(sums[i]);
}

void vertical_plain(const VerticalRow& row, std::uint8_t* out) { vertical_body(row, out); }

}  // namespace

#if defined(__x86_64__)

SINEW_AVX2 void HorizontalPass::run_avx2(const std::uint8_t* row, std::uint8_t* out) const {
  // Bytes r0 g0 b0 r1 g1 b1 ... of four pixels to 16-bit r0 r1 g0 g1 b0 b1 - - | r2 r3 g2 g3 b2 b3 - -.
  const __m256i spread = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                          6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  for (int k = 0; k < columns_.outputs(); ++k) {
    const std::uint8_t* pixel = row + std::size_t{3} * columns_.first[k];
    __m256i high = _mm256_setzero_si256();
    __m256i low = _mm256_setzero_si256();
    for (int q = quad_begin_[k]; q < quad_begin_[k + 1]; ++q, pixel += 12) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel));
      const __m256i pairs = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), spread);
      const auto* quad = reinterpret_cast<const __m256i*>(&quads_[q]);
      high = _mm256_add_epi32(high, _mm256_madd_epi16(pairs, _mm256_load_si256(quad)));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(pairs, _mm256_load_si256(quad + 1)));
    }
    const __m256i both = _mm256_add_epi32(_mm256_slli_epi32(high, AxisFilter::kWeightBits / 2), low);
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    sum = _mm_add_epi32(sum, _mm_loadu_si128(reinterpret_cast<const __m128i*>(&bias_[std::size_t{4} * k])));
    sum = _mm_srai_epi32(sum, AxisFilter::kWeightBits);
    sum = _mm_packs_epi32(sum, sum);
    const int rgb = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
    std::memcpy(out + std::size_t{3} * k, &rgb,
                4);  // the fourth byte belongs to the next pixel, written next
  }
}

namespace {
SINEW_AVX2 void vertical_avx2(const VerticalRow& row, std::uint8_t* out) { vertical_body(row, out); }
}  // namespace

void vertical(const VerticalRow& row, std::uint8_t* out, bool avx2) {
  avx2 ? vertical_avx2(row, out) : vertical_plain(row, out);
}

#else

void HorizontalPass::run_avx2(const std::uint8_t* row, std::uint8_t* out) const { run_plain(row, out); }
void vertical(const VerticalRow& row, std::uint8_t* out, bool /*avx2*/) { vertical_plain(row, out); }

#endif

}  // namespace sinew::kernels

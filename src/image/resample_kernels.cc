#include "image/resample_kernels.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define SINEW_AVX2 __attribute__((target("avx2")))
#endif

namespace sinew::kernels {
namespace {
constexpr int kSplit = AxisFilter::kWeightBits / 2;
constexpr std::int32_t kLowMask = (1 << kSplit) - 1;
constexpr int kUniformQuads = 8;
}  // namespace

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
  const int most = *std::max_element(columns_.count.begin(), columns_.count.end());
  // The same number of quads for every output: a loop of 2 or 3 turns, which one being anyone's guess, costs
  // more in mispredicted branches (a third of the pass at side 1080) than a turn with weights of 0. Not so
  // for long windows.
  const int least = most <= 4 * kUniformQuads ? most : 0;
  for (int k = 0; k < columns_.outputs(); ++k) {
    quad_begin_.push_back(static_cast<int>(quads_.size()));
    for (int j = 0; j < std::max(columns_.count[k], least); j += 4) {
      Quad quad{};
      for (int tap = 0; tap < 4 && j + tap < columns_.count[k]; ++tap) {
        const std::int32_t weight = columns_.row(k)[j + tap];
        for (int channel = 0; channel < 3; ++channel) {
          const int at = tap / 2 * 8 + channel * 2 + tap % 2;
          quad.high[at] = static_cast<std::int16_t>(weight >> kSplit);
          quad.low[at] = static_cast<std::int16_t>(weight & kLowMask);
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
  // A quad reads 16 bytes, and quads of weights 0 may lie past the row.
  constexpr std::size_t kSlack = 16 + 12 * kUniformQuads;
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

void vertical_plain(const VerticalRow& row, std::size_t from, std::uint8_t* out) {
  for (std::size_t i = from; i < row.bytes; ++i) {
    std::int32_t sum = kHalf;
    for (int j = 0; j < row.count; ++j) sum += row.weights[j] * row.lines[j][i];
    out[i] = to_pixel(sum);
  }
}

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
    const __m256i both = _mm256_add_epi32(_mm256_slli_epi32(high, kSplit), low);
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

/// (high, low) halves of two weights, repeated, as the multiply-add instruction wants them.
SINEW_AVX2 inline __m256i pair_of(std::int32_t a, std::int32_t b) {
  return _mm256_set1_epi32(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(b) << 16 | static_cast<std::uint32_t>(a)));
}

/// 16 columns at a time, two input rows per step; sums stay in registers. Returns how many columns are done.
SINEW_AVX2 std::size_t vertical_avx2(const VerticalRow& row, std::uint8_t* out) {
  constexpr std::size_t kColumns = 16;
  std::size_t i = 0;
  for (; i + kColumns <= row.bytes; i += kColumns) {
    __m256i high[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int j = 0; j < row.count; j += 2) {
      const bool two = j + 1 < row.count;
      const std::int32_t a = row.weights[j];
      const std::int32_t b = two ? row.weights[j + 1] : 0;
      const auto* line_a = reinterpret_cast<const __m128i*>(row.lines[j] + i);
      const auto* line_b = reinterpret_cast<const __m128i*>(row.lines[two ? j + 1 : j] + i);
      const __m256i pixels_a = _mm256_cvtepu8_epi16(_mm_loadu_si128(line_a));
      const __m256i pixels_b = _mm256_cvtepu8_epi16(_mm_loadu_si128(line_b));
      const __m256i first = _mm256_unpacklo_epi16(pixels_a, pixels_b);
      const __m256i second = _mm256_unpackhi_epi16(pixels_a, pixels_b);
      const __m256i weight_high = pair_of(a >> kSplit, b >> kSplit);
      const __m256i weight_low = pair_of(a & kLowMask, b & kLowMask);
      high[0] = _mm256_add_epi32(high[0], _mm256_madd_epi16(first, weight_high));
      high[1] = _mm256_add_epi32(high[1], _mm256_madd_epi16(second, weight_high));
      low[0] = _mm256_add_epi32(low[0], _mm256_madd_epi16(first, weight_low));
      low[1] = _mm256_add_epi32(low[1], _mm256_madd_epi16(second, weight_low));
    }
    const __m256i half = _mm256_set1_epi32(kHalf);
    for (int k = 0; k < 2; ++k) {
      const __m256i sum =
          _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(high[k], kSplit), low[k]), half);
      high[k] = _mm256_srai_epi32(sum, AxisFilter::kWeightBits);
    }
    // Packing undoes the unpacking, lane by lane.
    const __m256i words = _mm256_packs_epi32(high[0], high[1]);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_castsi256_si128(bytes));
  }
  return i;
}

}  // namespace

void vertical(const VerticalRow& row, std::uint8_t* out, bool avx2) {
  vertical_plain(row, avx2 ? vertical_avx2(row, out) : 0, out);
}

#else

void HorizontalPass::run_avx2(const std::uint8_t* row, std::uint8_t* out) const { run_plain(row, out); }
void vertical(const VerticalRow& row, std::uint8_t* out, bool /*avx2*/) { vertical_plain(row, 0, out); }

#endif

}  // namespace sinew::kernels

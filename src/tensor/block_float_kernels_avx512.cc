// Two blocks at a time in AVX-512 (F, BW, DQ, VL): row r of two neighbouring faces, 32 columns of the matrix.
// Codes are formed in 16-bit lanes: from bf16 all the way, from f32 after the rounding. tensor/block_float.cc
// says what is computed.
#include "tensor/block_float_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <array>
#include <cstring>

#if defined(__GNUC__) && !defined(__clang__)
// GCC PR105593: the "undefined" operands inside g++ 12's own intrinsics are reported where those are inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define SINEW_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define SINEW_INLINE SINEW_TARGET __attribute__((always_inline)) inline

namespace sinew::kernels {
namespace {

struct Exponents {
  int left;
  int right;
};

SINEW_INLINE __m512i both(int left, int right) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set1_epi16(static_cast<short>(left))),
                            _mm256_set1_epi16(static_cast<short>(right)), 1);
}

/// The largest exponents among sixteen and sixteen bf16 words: the instruction that searches eight words
/// finds the least, so they are inverted.
SINEW_INLINE Exponents largest_exponents(__m512i words) {
  const __m512i inverted =
      _mm512_andnot_si512(words, _mm512_set1_epi16(0x7fff));  // 0x7fff - |bf16|, without the sign
  const __m256i left = _mm512_castsi512_si256(inverted);
  const __m256i right = _mm512_extracti64x4_epi64(inverted, 1);
  const __m128i least_left =
      _mm_minpos_epu16(_mm_min_epu16(_mm256_castsi256_si128(left), _mm256_extracti128_si256(left, 1)));
  const __m128i least_right =
      _mm_minpos_epu16(_mm_min_epu16(_mm256_castsi256_si128(right), _mm256_extracti128_si256(right, 1)));
  return {(0x7fff - (_mm_cvtsi128_si32(least_left) & 0xffff)) >> 7,
          (0x7fff - (_mm_cvtsi128_si32(least_right) & 0xffff)) >> 7};
}

/// What a NaN becomes is 0x7fc0, whatever its sign and payload.
SINEW_INLINE __m512i round_to_bf16(__m512i bits) {
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i cut = _mm512_and_si512(sum, _mm512_set1_epi32(static_cast<int>(0xffff0000U)));
  const __m512i absolute = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __mmask16 nan = _mm512_cmpgt_epi32_mask(absolute, _mm512_set1_epi32(0x7f800000));
  return _mm512_mask_mov_epi32(cut, nan, _mm512_set1_epi32(0x7fc00000));
}

/// Sixteen magnitudes before saturation.
template <int kWidth, bool kTruncate>
SINEW_INLINE __m512i magnitudes(__m512i bits, int exponent) {
  constexpr int kDropped = 24 - kWidth;
  constexpr int kAndOr = 0xea;  // (a & b) | c
  const __m512i own = _mm512_and_si512(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(0xff));
  __m512i m =
      _mm512_maskz_ternarylogic_epi32(_mm512_test_epi32_mask(own, own), bits, _mm512_set1_epi32(0x7fffff),
                                      _mm512_set1_epi32(0x800000), kAndOr);
  m = _mm512_srlv_epi32(m, _mm512_sub_epi32(_mm512_set1_epi32(exponent), own));
  if constexpr (!kTruncate) {
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(m, kDropped), _mm512_set1_epi32(1));
    m = _mm512_add_epi32(_mm512_add_epi32(m, _mm512_set1_epi32((1 << (kDropped - 1)) - 1)), odd);
  }
  return _mm512_srli_epi32(m, kDropped);
}

/// Saturates and puts the signs of `words`, their bits 15, on.
template <int kWidth>
SINEW_INLINE __m512i codes_of(__m512i magnitude, __m512i words) {
  magnitude = _mm512_min_epu16(magnitude, _mm512_set1_epi16((1 << kWidth) - 1));
  const __m512i sign =
      _mm512_and_si512(_mm512_srli_epi16(words, 15 - kWidth), _mm512_set1_epi16(1 << kWidth));
  return _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(magnitude, magnitude),
                                _mm512_or_si512(magnitude, sign));
}

template <int kWidth>
SINEW_INLINE void store_codes(__m512i codes, std::uint8_t* left, std::uint8_t* right) {
  if constexpr (kWidth == 7) {
    const __m256i bytes = _mm512_cvtepi16_epi8(codes);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(left), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(right), _mm256_extracti128_si256(bytes, 1));
  } else if constexpr (kWidth == 3) {
    const __m512i pairs = _mm512_or_si512(codes, _mm512_srli_epi32(codes, 12));
    const __m128i bytes = _mm512_cvtepi32_epi8(pairs);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(left), bytes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(right), _mm_unpackhi_epi64(bytes, bytes));
  } else {
    const __m512i pairs = _mm512_or_si512(codes, _mm512_srli_epi32(codes, 14));
    const __m512i fours = _mm512_or_si512(pairs, _mm512_srli_epi64(pairs, 28));
    const auto bytes = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(fours)));
    const auto low = static_cast<std::uint32_t>(bytes);
    const auto high = static_cast<std::uint32_t>(bytes >> 32);
    std::memcpy(left, &low, sizeof(low));
    std::memcpy(right, &high, sizeof(high));
  }
}

/// Every second word of two registers, from the even or the odd places.
constexpr std::array<std::int16_t, 32> every_second_word(int first) {
  std::array<std::int16_t, 32> places{};
  for (int i = 0; i < 32; ++i) places[i] = static_cast<std::int16_t>(2 * i + first);
  return places;
}
alignas(64) constexpr auto kLowerHalves = every_second_word(0);
alignas(64) constexpr auto kUpperHalves = every_second_word(1);

template <int kWidth, bool kTruncate, bool kThroughBf16>
SINEW_INLINE Exponents pack_f32_pair(const std::byte* from, std::uint8_t* left, std::uint8_t* right) {
  __m512i a = _mm512_loadu_si512(from);
  __m512i b = _mm512_loadu_si512(from + 64);
  if constexpr (kThroughBf16) {
    a = round_to_bf16(a);
    b = round_to_bf16(b);
  }
  const __m512i upper = _mm512_permutex2var_epi16(a, _mm512_load_si512(kUpperHalves.data()), b);
  const Exponents exponents = largest_exponents(upper);
  const __m512i lower = _mm512_permutex2var_epi16(magnitudes<kWidth, kTruncate>(a, exponents.left),
                                                  _mm512_load_si512(kLowerHalves.data()),
                                                  magnitudes<kWidth, kTruncate>(b, exponents.right));
  store_codes<kWidth>(codes_of<kWidth>(lower, upper), left, right);
  return exponents;
}

/// The eight bits of a bf16's significand are shifted at the top of 15 bits, of which 15 - width are dropped.
/// Numbers shifted by 8 or more come out below half a unit in every format, as they should.
template <int kWidth, bool kTruncate>
SINEW_INLINE Exponents pack_bf16_pair(const std::byte* from, std::uint8_t* left, std::uint8_t* right) {
  constexpr int kDropped = 15 - kWidth;
  constexpr int kAndOr = 0xea;  // (a & b) | c
  const __m512i x = _mm512_loadu_si512(from);
  const Exponents exponents = largest_exponents(x);
  const __m512i own = _mm512_and_si512(_mm512_srli_epi16(x, 7), _mm512_set1_epi16(0xff));
  __m512i m = _mm512_ternarylogic_epi32(_mm512_slli_epi16(x, 7), _mm512_set1_epi16(0x3f80),
                                        _mm512_set1_epi16(0x4000), kAndOr);
  m = _mm512_maskz_srlv_epi16(_mm512_test_epi16_mask(own, own), m,
                              _mm512_sub_epi16(both(exponents.left, exponents.right), own));
  if constexpr (!kTruncate) {
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(m, kDropped), _mm512_set1_epi16(1));
    m = _mm512_add_epi16(_mm512_add_epi16(m, _mm512_set1_epi16((1 << (kDropped - 1)) - 1)), odd);
  }
  store_codes<kWidth>(codes_of<kWidth>(_mm512_srli_epi16(m, kDropped), x), left, right);
  return exponents;
}

/// Rows lie kilobytes apart, too far for the processor's own prefetching: the same row of the next tile is
/// asked for while this one is packed. 1280 x 5120 on a busy Xeon, processor time without and with: bf16 4.9
/// and 3.9 ms, f32 10.6 and 7.5; no difference within the second-level cache. Unpacking did not gain from the
/// same.
template <typename T>
SINEW_INLINE void prefetch_next_tile(const std::byte* row) {
  constexpr int kRowBytes = kTileSide * static_cast<int>(sizeof(T));
  for (int line = 0; line < kRowBytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(row) + kRowBytes + line, _MM_HINT_T0);
  }
}

template <int kWidth, bool kTruncate, bool kThroughBf16, typename T>
SINEW_TARGET void pack_blocks_of(const std::byte* source, std::int64_t stride, std::uint8_t* tile) {
  constexpr int kBytes = kBlockSize * (kWidth + 1) / 8;
  for (int row = 0; row < kTileSide; ++row, source += stride) {
    const int block = tile_offset(row, 0) / kBlockSize;
    std::uint8_t* left = tile + kTileBlocks + block * kBytes;
    std::uint8_t* right = left + kFaceSide * kBytes;
    prefetch_next_tile<T>(source);
    Exponents exponents;
    if constexpr (sizeof(T) == 4) {
      exponents = pack_f32_pair<kWidth, kTruncate, kThroughBf16>(source, left, right);
    } else {
      exponents = pack_bf16_pair<kWidth, kTruncate>(source, left, right);
    }
    tile[block] = static_cast<std::uint8_t>(exponents.left);
    tile[block + kFaceSide] = static_cast<std::uint8_t>(exponents.right);
  }
}

template <int kWidth, typename T>
void pack_tile(const std::byte* source, std::int64_t stride, const BlockPacking& packing, std::byte* tile) {
  auto* out = reinterpret_cast<std::uint8_t*>(tile);
  const bool truncate = packing.rounding == BlockRounding::kTruncate;
  const bool through_bf16 = packing.through_bf16 && sizeof(T) == 4;
  if (through_bf16) {
    return truncate ? pack_blocks_of<kWidth, true, true, T>(source, stride, out)
                    : pack_blocks_of<kWidth, false, true, T>(source, stride, out);
  }
  return truncate ? pack_blocks_of<kWidth, true, false, T>(source, stride, out)
                  : pack_blocks_of<kWidth, false, false, T>(source, stride, out);
}

/// 32 codes as those of bfp8, which have the same value under the same exponent, one in each word.
template <int kWidth>
SINEW_INLINE __m512i load_codes(const std::uint8_t* left, const std::uint8_t* right) {
  if constexpr (kWidth == 7) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(left));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(right));
    return _mm512_cvtepu8_epi16(_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1));
  } else if constexpr (kWidth == 3) {
    const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(left));
    const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(right));
    const __m512i x = _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(a, b));
    return _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi32(x, 4), _mm512_set1_epi32(0xf0)),
                           _mm512_and_si512(_mm512_slli_epi32(x, 16), _mm512_set1_epi32(0xf00000)));
  } else {
    std::uint32_t a;
    std::uint32_t b;
    std::memcpy(&a, left, sizeof(a));
    std::memcpy(&b, right, sizeof(b));
    const std::uint64_t bytes = a | static_cast<std::uint64_t>(b) << 32;
    const __m512i x = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(static_cast<std::int64_t>(bytes)));
    const __m512i first = _mm512_or_si512(_mm512_slli_epi64(x, 6), _mm512_slli_epi64(x, 16 + 4));
    const __m512i last = _mm512_or_si512(_mm512_slli_epi64(x, 32 + 2), _mm512_slli_epi64(x, 48));
    return _mm512_and_si512(_mm512_or_si512(first, last), _mm512_set1_epi16(0xc0));
  }
}

/// For magnitudes below 64, what normalisation adds to a bf16 of the block's exponent without fraction: minus
/// the shift in the exponent, and the fraction.
constexpr std::array<std::int16_t, 64> normalisation() {
  std::array<std::int16_t, 64> table{};
  for (int m = 1; m < 64; ++m) {
    int shift = 0;
    while ((m << shift) < 64) ++shift;
    table[m] = static_cast<std::int16_t>(-128 * shift + ((m << shift) - 64) * 2);
  }
  return table;
}
alignas(64) constexpr auto kNormalisation = normalisation();

SINEW_INLINE __m512i unpack_words(__m512i codes, int left, int right) {
  const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi16(0x7f));
  const __m512i fraction = _mm512_and_si512(magnitude, _mm512_set1_epi16(0x3f));
  __m512i add = _mm512_permutex2var_epi16(_mm512_load_si512(kNormalisation.data()), fraction,
                                          _mm512_load_si512(kNormalisation.data() + 32));
  add = _mm512_mask_slli_epi16(add, _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x40)), fraction, 1);
  const __m512i words = _mm512_add_epi16(both(left << 7, right << 7), add);
  const __mmask32 some = _mm512_test_epi16_mask(magnitude, magnitude);
  const __mmask32 below = some & _mm512_movepi16_mask(words);
  const __m512i sign = _mm512_slli_epi16(_mm512_sub_epi16(codes, magnitude), 8);
  return _mm512_maskz_mov_epi16(~below, _mm512_or_si512(_mm512_maskz_mov_epi16(some, words), sign));
}

template <int kWidth, typename T>
SINEW_TARGET void unpack_tile(const std::byte* tile, std::byte* out, std::int64_t stride) {
  constexpr int kBytes = kBlockSize * (kWidth + 1) / 8;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tile);
  for (int row = 0; row < kTileSide; ++row, out += stride) {
    const int block = tile_offset(row, 0) / kBlockSize;
    const std::uint8_t* left = bytes + kTileBlocks + block * kBytes;
    const __m512i words = unpack_words(load_codes<kWidth>(left, left + kFaceSide * kBytes), bytes[block],
                                       bytes[block + kFaceSide]);
    if constexpr (sizeof(T) == 2) {
      _mm512_storeu_si512(out, words);
    } else {
      const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(words));
      const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(words, 1));
      _mm512_storeu_si512(out, _mm512_slli_epi32(low, 16));
      _mm512_storeu_si512(out + 64, _mm512_slli_epi32(high, 16));
    }
  }
}

}  // namespace

const BlockKernels kBlockAvx512 = {
    Isa::kAvx512,
    {pack_tile<7, float>, pack_tile<3, float>, pack_tile<1, float>},
    {pack_tile<7, BF16>, pack_tile<3, BF16>, pack_tile<1, BF16>},
    {unpack_tile<7, float>, unpack_tile<3, float>, unpack_tile<1, float>},
    {unpack_tile<7, BF16>, unpack_tile<3, BF16>, unpack_tile<1, BF16>},
};

}  // namespace sinew::kernels

#endif

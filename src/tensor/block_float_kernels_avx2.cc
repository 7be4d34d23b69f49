// A block at a time in AVX2. Sixteen codes are formed in 16-bit lanes: from bf16 all the way, from f32 after
// the rounding. tensor/block_float.cc says what is computed.
#include "tensor/block_float_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define SINEW_TARGET __attribute__((target("avx2")))
#define SINEW_INLINE SINEW_TARGET __attribute__((always_inline)) inline

namespace sinew::kernels {
namespace {

/// The largest exponent of eight words 0xffff - |bf16|, of which the smallest counts.
SINEW_INLINE int largest_exponent(__m128i inverted) {
  const int least = _mm_cvtsi128_si32(_mm_minpos_epu16(inverted)) & 0xffff;
  return (0xffff - least) >> 7;
}

/// What a NaN becomes is 0x7fc0, whatever its sign and payload.
SINEW_INLINE __m256i round_to_bf16(__m256i bits) {
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i cut = _mm256_and_si256(sum, _mm256_set1_epi32(static_cast<int>(0xffff0000U)));
  const __m256i absolute = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i nan = _mm256_cmpgt_epi32(absolute, _mm256_set1_epi32(0x7f800000));
  return _mm256_blendv_epi8(cut, _mm256_set1_epi32(0x7fc00000), nan);
}

/// Eight magnitudes before saturation.
template <int kWidth, bool kTruncate>
SINEW_INLINE __m256i magnitudes(__m256i bits, int exponent) {
  constexpr int kDropped = 24 - kWidth;
  const __m256i own = _mm256_and_si256(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(0xff));
  __m256i m =
      _mm256_or_si256(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff)), _mm256_set1_epi32(0x800000));
  m = _mm256_andnot_si256(_mm256_cmpeq_epi32(own, _mm256_setzero_si256()), m);
  m = _mm256_srlv_epi32(m, _mm256_sub_epi32(_mm256_set1_epi32(exponent), own));
  if constexpr (!kTruncate) {
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(m, kDropped), _mm256_set1_epi32(1));
    m = _mm256_add_epi32(_mm256_add_epi32(m, _mm256_set1_epi32((1 << (kDropped - 1)) - 1)), odd);
  }
  return _mm256_srli_epi32(m, kDropped);
}

/// Saturates and puts the signs on; `signs` has 0xffff for negative numbers.
template <int kWidth>
SINEW_INLINE __m256i codes_of(__m256i magnitude, __m256i signs) {
  magnitude = _mm256_min_epu16(magnitude, _mm256_set1_epi16((1 << kWidth) - 1));
  const __m256i zero = _mm256_cmpeq_epi16(magnitude, _mm256_setzero_si256());
  const __m256i sign = _mm256_and_si256(signs, _mm256_set1_epi16(1 << kWidth));
  return _mm256_or_si256(magnitude, _mm256_andnot_si256(zero, sign));
}

template <int kWidth>
SINEW_INLINE void store_codes(__m128i codes, std::uint8_t* out) {
  if constexpr (kWidth == 7) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), codes);
  } else if constexpr (kWidth == 3) {
    const __m128i pairs = _mm_maddubs_epi16(codes, _mm_set1_epi16(0x1001));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(pairs, pairs));
  } else {
    const __m128i pairs = _mm_maddubs_epi16(codes, _mm_set1_epi16(0x0401));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00100001));
    fours = _mm_packus_epi32(fours, fours);
    const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(fours, fours));
    std::memcpy(out, &bytes, sizeof(bytes));
  }
}

/// Sixteen words, of which `ordered` says whether they are in order or, as packing two registers leaves them,
/// in the order of quarters 0 2 1 3.
SINEW_INLINE __m128i words_to_bytes(__m256i words, bool ordered) {
  if (!ordered) words = _mm256_permute4x64_epi64(words, 0xd8);
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

template <int kWidth, bool kTruncate, bool kThroughBf16>
SINEW_INLINE std::uint8_t pack_f32_block(const std::byte* from, std::uint8_t* out) {
  __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
  if constexpr (kThroughBf16) {
    a = round_to_bf16(a);
    b = round_to_bf16(b);
  }
  const __m256i absolute = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_max_epi32(_mm256_and_si256(a, absolute), _mm256_and_si256(b, absolute));
  most = _mm256_srli_epi32(most, 16);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  const int exponent = largest_exponent(_mm_xor_si128(words, _mm_set1_epi16(-1)));
  const __m256i magnitude = _mm256_packus_epi32(magnitudes<kWidth, kTruncate>(a, exponent),
                                                magnitudes<kWidth, kTruncate>(b, exponent));
  const __m256i signs = _mm256_packs_epi32(_mm256_srai_epi32(a, 31), _mm256_srai_epi32(b, 31));
  store_codes<kWidth>(words_to_bytes(codes_of<kWidth>(magnitude, signs), false), out);
  return static_cast<std::uint8_t>(exponent);
}

/// The eight bits of a bf16's significand are shifted as the upper byte of 15 bits, of which 15 - width are
/// dropped. Numbers shifted by 8 or more come out below half a unit in every format, as they should.
template <int kWidth, bool kTruncate>
SINEW_INLINE std::uint8_t pack_bf16_block(const std::byte* from, std::uint8_t* out) {
  constexpr int kDropped = 15 - kWidth;
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m256i absolute = _mm256_and_si256(x, _mm256_set1_epi16(0x7fff));
  const __m256i inverted = _mm256_xor_si256(absolute, _mm256_set1_epi16(-1));
  const int exponent = largest_exponent(
      _mm_min_epu16(_mm256_castsi256_si128(inverted), _mm256_extracti128_si256(inverted, 1)));
  const __m256i own = _mm256_srli_epi16(absolute, 7);
  __m256i m = _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(x, 8), _mm256_set1_epi16(0x7f00)),
                              _mm256_set1_epi16(static_cast<short>(0x8000)));
  m = _mm256_andnot_si256(_mm256_cmpeq_epi16(own, _mm256_setzero_si256()), m);
  // There is no shift by lane of words: multiply by 2^(15 - shift) and keep the upper half. The factors'
  // upper bytes come from a table, their lower ones are 0.
  const __m256i factors =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i shift = _mm256_min_epu16(
      _mm256_sub_epi16(_mm256_set1_epi16(static_cast<short>(exponent)), own), _mm256_set1_epi16(8));
  const __m256i index = _mm256_or_si256(_mm256_slli_epi16(shift, 8), _mm256_set1_epi16(0x80));
  m = _mm256_mulhi_epu16(m, _mm256_shuffle_epi8(factors, index));
  if constexpr (!kTruncate) {
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi16(m, kDropped), _mm256_set1_epi16(1));
    m = _mm256_add_epi16(_mm256_add_epi16(m, _mm256_set1_epi16((1 << (kDropped - 1)) - 1)), odd);
  }
  m = _mm256_srli_epi16(m, kDropped);
  store_codes<kWidth>(words_to_bytes(codes_of<kWidth>(m, _mm256_srai_epi16(x, 15)), true), out);
  return static_cast<std::uint8_t>(exponent);
}

/// As in block_float_kernels_avx512.cc, which has the figures.
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
  for (int row = 0; row < kTileSide; ++row) {
    prefetch_next_tile<T>(source + row * stride);
    for (int half = 0; half < 2; ++half) {
      const std::byte* from = source + row * stride + half * kFaceSide * static_cast<int>(sizeof(T));
      const int block = tile_offset(row, half * kFaceSide) / kBlockSize;
      std::uint8_t* codes = tile + kTileBlocks + block * kBytes;
      if constexpr (sizeof(T) == 4) {
        tile[block] = pack_f32_block<kWidth, kTruncate, kThroughBf16>(from, codes);
      } else {
        tile[block] = pack_bf16_block<kWidth, kTruncate>(from, codes);
      }
    }
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

/// Sixteen codes as those of bfp8, which have the same value under the same exponent.
template <int kWidth>
SINEW_INLINE __m128i load_codes(const std::uint8_t* bytes) {
  if constexpr (kWidth == 7) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  } else if constexpr (kWidth == 3) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
    const __m128i upper = _mm_set1_epi8(static_cast<char>(0xf0));
    return _mm_unpacklo_epi8(_mm_and_si128(_mm_slli_epi16(x, 4), upper), _mm_and_si128(x, upper));
  } else {
    int four;
    std::memcpy(&four, bytes, sizeof(four));
    const __m128i x = _mm_cvtsi32_si128(four);
    const __m128i upper = _mm_set1_epi8(static_cast<char>(0xc0));
    const __m128i first = _mm_unpacklo_epi8(_mm_and_si128(_mm_slli_epi16(x, 6), upper),
                                            _mm_and_si128(_mm_slli_epi16(x, 4), upper));
    const __m128i last =
        _mm_unpacklo_epi8(_mm_and_si128(_mm_slli_epi16(x, 2), upper), _mm_and_si128(x, upper));
    return _mm_unpacklo_epi16(first, last);
  }
}

/// A magnitude m converted to f32 is normalised: exponent field 127 + 6 - k, where k is the shift that a code
/// of bfp8 needs. What is left is to put the block's exponent in the place of 133.
SINEW_INLINE __m256i unpack_words(__m128i codes, int exponent) {
  const __m128i magnitude = _mm_and_si128(codes, _mm_set1_epi8(0x7f));
  const __m256i low = _mm256_castps_si256(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(magnitude)));
  const __m256i high =
      _mm256_castps_si256(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(magnitude, 8))));
  __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(low, 16), _mm256_srli_epi32(high, 16));
  words = _mm256_permute4x64_epi64(words, 0xd8);
  const __m256i zero = _mm256_cmpeq_epi16(words, _mm256_setzero_si256());
  words = _mm256_add_epi16(words, _mm256_set1_epi16(static_cast<short>((exponent - 133) * 128)));
  const __m256i below = _mm256_andnot_si256(zero, _mm256_srai_epi16(words, 15));
  const __m256i sign = _mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 8);
  words = _mm256_andnot_si256(zero, words);
  words = _mm256_or_si256(words, _mm256_and_si256(sign, _mm256_set1_epi16(static_cast<short>(0x8000))));
  return _mm256_andnot_si256(below, words);
}

template <int kWidth, typename T>
SINEW_TARGET void unpack_tile(const std::byte* tile, std::byte* out, std::int64_t stride) {
  constexpr int kBytes = kBlockSize * (kWidth + 1) / 8;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tile);
  for (int row = 0; row < kTileSide; ++row) {
    for (int half = 0; half < 2; ++half) {
      const int block = tile_offset(row, half * kFaceSide) / kBlockSize;
      const __m256i words =
          unpack_words(load_codes<kWidth>(bytes + kTileBlocks + block * kBytes), bytes[block]);
      auto* to =
          reinterpret_cast<__m256i*>(out + row * stride + half * kFaceSide * static_cast<int>(sizeof(T)));
      if constexpr (sizeof(T) == 2) {
        _mm256_storeu_si256(to, words);
      } else {
        const __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words));
        const __m256i high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1));
        _mm256_storeu_si256(to, _mm256_slli_epi32(low, 16));
        _mm256_storeu_si256(to + 1, _mm256_slli_epi32(high, 16));
      }
    }
  }
}

}  // namespace

const BlockKernels kBlockAvx2 = {
    Isa::kAvx2,
    {pack_tile<7, float>, pack_tile<3, float>, pack_tile<1, float>},
    {pack_tile<7, BF16>, pack_tile<3, BF16>, pack_tile<1, BF16>},
    {unpack_tile<7, float>, unpack_tile<3, float>, unpack_tile<1, float>},
    {unpack_tile<7, BF16>, unpack_tile<3, BF16>, unpack_tile<1, BF16>},
};

}  // namespace sinew::kernels

#endif

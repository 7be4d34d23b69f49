// The inner loops of products in terms of the vectors of vector_types.h, which says what holds for this file,
// too. Its includer may define SINEW_BF16_DOT.
#pragma once

#include <utility>

#include "backend/cpu/gemm_kernels.h"
#include "backend/cpu/vector_types.h"

namespace sinew::cpu::SINEW_ISA_NAMESPACE {

inline constexpr int kWidth = kPanelVectors * kLanes;  // columns of a panel

template <typename To, typename From>
static inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// One k a step.
struct F32Step {
  static inline Vec broadcast(const std::byte* word) {
    float x;
    std::memcpy(&x, word, sizeof(x));
    return splat(x);
  }
  static inline Vec multiply_add(Vec sum, Vec x, Vec w) { return sum + x * w; }
};

#if defined(SINEW_BF16_DOT)
/// Two k a step. The instruction sums both products in f32, treats subnormals as zero, rounds to nearest
/// even.
struct PairStep {
  static inline Vec broadcast(const std::byte* word) {
    std::int32_t pair;
    std::memcpy(&pair, word, sizeof(pair));
    return bits_as<Vec>(IntVec{} + pair);
  }
  static inline Vec multiply_add(Vec sum, Vec x, Vec w) {
    return _mm512_dpbf16_ps(sum, bits_as<__m512bh>(x), bits_as<__m512bh>(w));
  }
};
#endif

template <typename Step, int R, int V>
struct Sums {
  Vec at[R][V];

  /// One step. With few rows the broadcast rows stay in registers and each vector of weights passes once;
  /// otherwise the vectors of the step stay.
  __attribute__((always_inline)) void add(const std::byte* x, const std::byte* w, std::int64_t panel_stride) {
    const auto weights = [&](int j) {
      return load(reinterpret_cast<const float*>(w + j / kPanelVectors * panel_stride) +
                  j % kPanelVectors * kLanes);
    };
    if constexpr (R < V) {
      Vec row[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) row[r] = Step::broadcast(x + 4 * r);
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) {
        const Vec column = weights(j);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) at[r][j] = Step::multiply_add(at[r][j], row[r], column);
      }
    } else {
      Vec column[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) column[j] = weights(j);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec row = Step::broadcast(x + 4 * r);
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) at[r][j] = Step::multiply_add(at[r][j], row, column[j]);
      }
    }
  }
};

/// R rows by V vectors. Sums come from and go to memory, so that nothing but the loop decides what lies in
/// registers: 24 loads and stores are under 1 % of 256 steps. One flat loop: with steps unrolled g++ 12 loads
/// weights early and runs out of registers, with an outer loop it keeps sums in memory. This one runs at 0.98
/// of the multipliers' peak from the first-level cache (12 by 2 vectors of 16).
template <typename Step, int R, int V>
__attribute__((noinline)) static void product(const ProductTile& tile) {
  constexpr int kAhead = 16;  // steps: rows come from the second-level cache, one time (+2 %)
  Sums<Step, R, V> sums;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) sums.at[r][j] = load(tile.sums + (r * V + j) * kLanes);
  }
  const std::byte* x = tile.rows;
  const std::byte* w = tile.panel;
  const std::byte* next = tile.next;
  std::int64_t step = 0;
  do {  // at least once: with a way around the loop, g++ 12 keeps copies of the sums in memory
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j)
      __builtin_prefetch(next + j / kPanelVectors * tile.next_stride + j % kPanelVectors * 64, 0, 2);
    next += tile.next_bytes;
    __builtin_prefetch(x + kAhead * 4 * R, 0, 3);
    sums.add(x, w, tile.panel_stride);
    x += 4 * R;
    w += 4 * kWidth;
  } while (++step < tile.steps);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) store(tile.sums + (r * V + j) * kLanes, sums.at[r][j]);
  }
}

/// Registers: R V sums, and V weights and a broadcast, or R broadcasts and a weight.
constexpr int most_rows(int vectors) {
  const int room = kLanes == 16 ? 24 : 12;
  return room / vectors;
}

template <typename Step, int V, int... kRows>
static void product_of(const ProductTile& tile, int rows, std::integer_sequence<int, kRows...>) {
  static constexpr void (*kBy[])(const ProductTile&) = {product<Step, kRows + 1, V>...};
  kBy[rows - 1](tile);
}
template <typename Step, int V>
static void product_rows(const ProductTile& tile, int rows) {
  product_of<Step, V>(tile, rows, std::make_integer_sequence<int, most_rows(V)>());
}
template <typename Step>
static constexpr std::array<GemmKernels::Product, 3> kProducts = {
    product_rows<Step, kPanelVectors * kPanelGroups[0]>, product_rows<Step, kPanelVectors * kPanelGroups[1]>,
    product_rows<Step, kPanelVectors * kPanelGroups[2]>};

static inline std::uint32_t word_at(const std::byte* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

typedef std::uint32_t Quad __attribute__((vector_size(16)));

/// How a row of x becomes words: as it is (f32, pairs of bf16), or each bf16 widened.
struct PlainWords {
  static inline Quad four(const std::byte* row, std::int64_t word) {
    Quad words;
    std::memcpy(&words, row + 4 * word, sizeof(words));
    return words;
  }
  static inline std::uint32_t one(const std::byte* row, std::int64_t word) { return word_at(row + 4 * word); }
};
struct WidenedWords {
  static inline Quad four(const std::byte* row, std::int64_t word) {
    typedef std::uint16_t Halves __attribute__((vector_size(8)));
    Halves halves;
    std::memcpy(&halves, row + 2 * word, sizeof(halves));
    return __builtin_convertvector(halves, Quad) << 16;
  }
  static inline std::uint32_t one(const std::byte* row, std::int64_t word) {
    std::uint16_t half;
    std::memcpy(&half, row + 2 * word, sizeof(half));
    return std::uint32_t{half} << 16;
  }
};

/// Four words of each of four rows, transposed: words i of the rows go to out + i * stride.
template <typename Words>
static inline void transpose_four(const std::byte* x, std::int64_t row_bytes, std::int64_t word,
                                  std::uint32_t* out, std::int64_t stride) {
  const Quad a = Words::four(x, word);
  const Quad b = Words::four(x + row_bytes, word);
  const Quad c = Words::four(x + 2 * row_bytes, word);
  const Quad d = Words::four(x + 3 * row_bytes, word);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Quad columns[] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                          __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                          __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                          __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(out + i * stride, &columns[i], sizeof(Quad));
}

/// The first `words` words of each row, transposed. Returns the place behind them. The last four rows may be
/// written twice.
template <typename Words>
static std::uint32_t* transpose_words(const PackRows& pack, std::int64_t row_bytes, std::int64_t words) {
  auto* out = reinterpret_cast<std::uint32_t*>(pack.out);
  const std::int64_t rows = pack.rows;
  std::int64_t word = 0;
  for (; rows >= 4 && word + 4 <= words; word += 4, out += 4 * rows) {
    for (std::int64_t r = 0; r < rows; r += 4) {
      const std::int64_t first = r < rows - 4 ? r : rows - 4;
      transpose_four<Words>(pack.x + first * row_bytes, row_bytes, word, out + first, rows);
    }
  }
  for (; word < words; ++word) {
    for (std::int64_t r = 0; r < rows; ++r) *out++ = Words::one(pack.x + r * row_bytes, word);
  }
  return out;
}

static void pack_f32(const PackRows& pack) { transpose_words<PlainWords>(pack, 4 * pack.k, pack.k); }

/// The partner of a last odd k is zero.
static void pack_pairs(const PackRows& pack) {
  std::uint32_t* last = transpose_words<PlainWords>(pack, 2 * pack.k, pack.k / 2);
  for (std::int64_t r = 0; r < pack.rows && pack.k % 2 == 1; ++r)
    *last++ = WidenedWords::one(pack.x + r * 2 * pack.k, pack.k - 1) >> 16;
}
static void pack_widened(const PackRows& pack) {
  std::uint32_t* last = transpose_words<WidenedWords>(pack, 2 * pack.k, pack.k);
  for (std::int64_t r = 0; r < pack.rows && pack.k % 2 == 1; ++r) *last++ = 0;
}

static inline UintVec load_words(const std::byte* from) {
  UintVec words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}
static inline void store_words(std::byte* to, UintVec words) { std::memcpy(to, &words, sizeof(words)); }

/// Of a word that holds a pair of bf16, the first and the second as f32.
static inline UintVec first_of_pair(UintVec pair) { return pair << 16; }
static inline UintVec second_of_pair(UintVec pair) { return pair & 0xffff0000U; }

static void widen_pairs(const std::byte* panel, std::int64_t pairs, std::byte* out) {
  constexpr int kRow = 4 * kWidth;
  for (std::int64_t pair = 0; pair < pairs; ++pair, panel += kRow, out += 2 * kRow) {
    for (int j = 0; j < kPanelVectors; ++j) {
      const UintVec words = load_words(panel + j * 4 * kLanes);
      store_words(out + j * 4 * kLanes, first_of_pair(words));
      store_words(out + kRow + j * 4 * kLanes, second_of_pair(words));
    }
  }
}

/// Byte kByte of each word, a signed code, times the unit that its exponent stands for: exact.
template <int kByte>
static inline Vec bfp8_values(UintVec codes, std::uint8_t exponent) {
  const auto code = bits_as<IntVec>(codes << (24 - 8 * kByte)) >> 24;
  return __builtin_convertvector(code, Vec) * splat(kBfp8Units[exponent]);
}

/// See kBlockPairs; of a word's four codes the first two are of the first vector at k and k + 1.
template <bool kPairs>
static void expand_bfp8(const std::byte* panel, std::int64_t pairs, std::byte* out) {
  constexpr int kGroups = kWidth / 16;  // columns that share an exponent
  constexpr int kVector = 4 * kLanes;   // bytes
  constexpr int kSecond = kGroups - 1;  // the group of the second vector
  constexpr std::int64_t kCodes = kBlockPairs * kVector;
  for (std::int64_t first = 0; first < pairs;
       first += kBlockPairs, panel += kCodes + kBlockPairs * 2 * kGroups) {
    const auto* exponent = reinterpret_cast<const std::uint8_t*>(panel + kCodes);
    const std::int64_t count = pairs - first < kBlockPairs ? pairs - first : kBlockPairs;
    for (std::int64_t i = 0; i < count; ++i, exponent += 2 * kGroups) {
      const UintVec codes = load_words(panel + i * kVector);
      const auto a0 = bits_as<UintVec>(bfp8_values<0>(codes, exponent[0]));
      const auto a1 = bits_as<UintVec>(bfp8_values<1>(codes, exponent[kGroups]));
      const auto b0 = bits_as<UintVec>(bfp8_values<2>(codes, exponent[kSecond]));
      const auto b1 = bits_as<UintVec>(bfp8_values<3>(codes, exponent[kGroups + kSecond]));
      if constexpr (kPairs) {
        store_words(out, a0 >> 16 | a1);  // the lower half of a bf16's f32 is zero
        store_words(out + kVector, b0 >> 16 | b1);
        out += 2 * kVector;
      } else {
        store_words(out, a0);
        store_words(out + kVector, b0);
        store_words(out + 2 * kVector, a1);
        store_words(out + 3 * kVector, b1);
        out += 4 * kVector;
      }
    }
  }
}

/// 2^(a b) for products in [-126, 0], relative error 2e-9 before rounding: the nearest integer goes to the
/// exponent, the rest is in [-1/2, 1/2]. a b is never rounded by itself (-ffp-contract=fast).
static inline Vec exp2_of_product(Vec a, Vec b) {
  const Vec shifted =
      a * b + 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, kept in the lowest bits
  const Vec r = a * b - (shifted - 12582912.0F);
  Vec p = splat(1.53526750034e-4F);
  p = p * r + 1.33988491401e-3F;
  p = p * r + 9.6184399951e-3F;
  p = p * r + 5.55033254731e-2F;
  p = p * r + 2.40226478905e-1F;
  p = p * r + 6.93147202809e-1F;
  p = p * r + 1.0F;
  return bits_as<Vec>(bits_as<UintVec>(p) + (bits_as<UintVec>(shifted) << 23));
}

/// x/2 (1 + erf(x/sqrt 2)) = max(x, 0) - |x|/2 erfc(|x|/sqrt 2), which loses nothing to cancellation on
/// either side. log2 erfc(u/sqrt 2) is u times a polynomial of degree 10, fitted on [0, 6] with weight 1/(1 +
/// |ln erfc|): 8.4e-9 of that, below what rounding adds. Beyond 6 the result stays at -5.9e-9 (or x), at
/// infinity too.
static inline Vec gelu(Vec x) {
  const Vec absolute = x < Vec{} ? -x : x;
  const Vec u = absolute < splat(6.0F) ? absolute : splat(6.0F);
  Vec p = splat(2.61412696641e-9F);
  p = p * u - 9.74649378879e-8F;
  p = p * u + 1.61082483023e-6F;
  p = p * u - 1.54208431724e-5F;
  p = p * u + 9.18737249728e-5F;
  p = p * u - 3.11088151489e-4F;
  p = p * u + 3.58126023874e-5F;
  p = p * u + 6.92756555824e-3F;
  p = p * u - 5.2439510997e-2F;
  p = p * u - 4.59218980658e-1F;
  p = p * u - 1.15110455489F;
  const Vec positive = x < Vec{} ? Vec{} : x;  // NaN passes
  return positive - 0.5F * u * exp2_of_product(p, u);
}

/// Vectors of columns, or the last few columns of a matrix that ends within one.
struct WholeVector {
  static inline Vec get(const float* p) { return load(p); }
  template <typename Out>
  static inline void put(Out* p, Vec v) {
    store(p, v);
  }
};
struct PartOfVector {
  std::int64_t count;
  Vec get(const float* p) const {
    Vec v{};
    std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(float));
    return v;
  }
  template <typename Out>
  void put(Out* p, Vec v) const {
    Out values[kLanes];
    store(values, v);
    std::memcpy(p, values, static_cast<std::size_t>(count) * sizeof(Out));
  }
};

template <bool kGelu, typename Out, typename Access>
static inline void finish_vector(const FinishRows& f, std::int64_t row, std::int64_t column,
                                 const Access& access) {
  Vec v = load(f.sums + row * f.sums_stride + column);
  if (f.bias != nullptr) v += access.get(f.bias + column);
  if constexpr (kGelu) v = gelu(v);
  if (f.residual != nullptr) v += access.get(f.residual + row * f.stride + column);
  access.put(reinterpret_cast<Out*>(f.out) + row * f.stride + column, v);
}

template <bool kGelu, typename Out>
static void finish_rows(const FinishRows& f) {
  const std::int64_t whole = f.columns / kLanes * kLanes;
  for (std::int64_t row = 0; row < f.rows; ++row) {
    for (std::int64_t c = 0; c < whole; c += kLanes) finish_vector<kGelu, Out>(f, row, c, WholeVector{});
    if (whole < f.columns) finish_vector<kGelu, Out>(f, row, whole, PartOfVector{f.columns - whole});
  }
}
template <typename Out>
static void finish(const FinishRows& f) {
  f.gelu ? finish_rows<true, Out>(f) : finish_rows<false, Out>(f);
}

#if defined(SINEW_BF16_DOT)
static constexpr std::array<GemmKernels::Product, 3> kPairProducts = kProducts<PairStep>;
#else
static constexpr std::array<GemmKernels::Product, 3> kPairProducts = {};
#endif

static constexpr GemmKernels table(Isa isa) {
  return {
      .isa = isa,
      .lanes = kLanes,
      .most_rows = {most_rows(kPanelVectors * kPanelGroups[0]), most_rows(kPanelVectors * kPanelGroups[1]),
                    most_rows(kPanelVectors * kPanelGroups[2])},
      .product_f32 = kProducts<F32Step>,
      .product_pairs = kPairProducts,
      .pack_f32 = pack_f32,
      .pack_pairs = pack_pairs,
      .pack_widened = pack_widened,
      .widen_pairs = widen_pairs,
      .widen_bfp8 = expand_bfp8<false>,
      .expand_bfp8 = expand_bfp8<true>,
      .finish_f32 = finish<float>,
      .finish_bf16 = finish<BF16>};
}

}  // namespace sinew::cpu::SINEW_ISA_NAMESPACE

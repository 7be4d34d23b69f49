// The row kernels of convolutions; see vector_kernels_impl.h, which each instruction set's file includes
// first.
#pragma once

#include "backend/cpu/convolution_kernels.h"
#include "backend/cpu/vector_kernels_impl.h"

namespace sinew::cpu::SINEW_ISA_NAMESPACE {

// NaN passes, as in the reference.
static inline Vec rectified(Vec x, Rectifier rectifier, Vec slope) {
  const Vec zero{};
  switch (rectifier) {
    case Rectifier::kNone:
      return x;
    case Rectifier::kRelu:
      return x < zero ? zero : x;
    case Rectifier::kRelu6: {
      const Vec low = x < zero ? zero : x;
      return low > splat(6.0F) ? splat(6.0F) : low;
    }
    case Rectifier::kPRelu:
      return x >= zero ? x : slope * x;
  }
  return x;
}

static inline Vec load_some(const float* p, std::int64_t count) {
  Vec v{};
  std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(float));
  return v;
}

/// The finish of `V` vectors of `count` lanes each from channel `at` on, vector j at start[j].
template <int V>
struct FinishVectors {
  const Finish& finish;
  const std::int64_t* start;
  std::int64_t count;  // kLanes, or fewer when V is 1

  inline Vec get(const float* p) const { return count < kLanes ? load_some(p, count) : load(p); }
  inline void put(Vec sum, int j, const float* residual, float* out) const {
    Vec value = sum + get(finish.bias + start[j]);
    if (residual != nullptr) value += get(residual + start[j]);
    value = rectified(value, finish.rectifier,
                      finish.rectifier == Rectifier::kPRelu ? get(finish.slope + start[j]) : Vec{});
    if (count < kLanes) {
      std::memcpy(out + start[j], &value, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      store(out + start[j], value);
    }
  }
};

/// R pixels from `pixel` on, a panel of V vectors. R and V: see most_pixels.
template <int R, int V>
static void product_tile(const PixelProduct& p, std::int64_t pixel, const float* w,
                         const FinishVectors<V>& finish) {
  Vec sums[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) sums[r][j] = Vec{};
  }
  const std::int64_t stride = p.pixel_stride;
  const float* x = p.x + pixel * stride;
  for (std::int64_t s = 0; s < p.segments; ++s, x += p.segment_stride) {
    for (std::int64_t i = 0; i < p.length; ++i, w += V * kLanes) {
      Vec row[V];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) row[j] = load(w + j * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec value = splat(x[r * stride + i]);
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) sums[r][j] += value * row[j];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const float* residual = p.residual == nullptr ? nullptr : p.residual + (pixel + r) * p.n;
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) finish.put(sums[r][j], j, residual, p.out + (pixel + r) * p.n);
  }
}

/// With V vectors to a panel: as many pixels as leave their V R sums, V weights and a broadcast in 32
/// registers of AVX-512, or 16 elsewhere.
template <int V>
constexpr int most_pixels() {
  constexpr int kWide = V == 3 ? 8 : 12;
  constexpr int kNarrow = V == 3 ? 4 : V == 2 ? 6 : 8;
  return kLanes == 16 ? kWide : kNarrow;
}

/// product_tile for a number of pixels known at run time, 1..R.
template <int R, int V>
static void product_tile_of(std::int64_t count, const PixelProduct& p, std::int64_t pixel, const float* w,
                            const FinishVectors<V>& finish) {
  if constexpr (R > 1) {
    if (count < R) return product_tile_of<R - 1, V>(count, p, pixel, w, finish);
  }
  product_tile<R, V>(p, pixel, w, finish);
}

template <int V>
static void product_panel(const PixelProduct& p, std::int64_t vector, const float* w) {
  std::int64_t start[V];
  for (int j = 0; j < V; ++j) {
    const std::int64_t first = (vector + j) * kLanes;
    start[j] = p.n < kLanes ? 0 : first < p.n - kLanes ? first : p.n - kLanes;
  }
  const FinishVectors<V> finish{p.finish, start, p.n < kLanes ? p.n : kLanes};
  // Tiles of even height: 49 pixels are 10 10 10 10 9, not 12 12 12 12 1.
  const std::int64_t tiles = (p.pixels + most_pixels<V>() - 1) / most_pixels<V>();
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t first = p.pixels * t / tiles;
    const std::int64_t count = p.pixels * (t + 1) / tiles - first;
    product_tile_of<most_pixels<V>(), V>(count, p, first, w, finish);
  }
}

static void pixel_product(const PixelProduct& p) {
  const std::int64_t vectors = (p.n + kLanes - 1) / kLanes;
  const float* w = p.weight;
  for (std::int64_t v = 0; v < vectors;) {
    const std::int64_t left = vectors - v;
    const std::int64_t width = left == 1 || left == 3 ? left : 2;  // panel_width
    if (width == 1) product_panel<1>(p, v, w);
    if (width == 2) product_panel<2>(p, v, w);
    if (width == 3) product_panel<3>(p, v, w);
    w += width * kLanes * p.segments * p.length;
    v += width;
  }
}

/// T output pixels side by side whose windows lie in the picture's columns, one vector of channels. kColumns
/// 0: a window of any width.
template <int kColumns, int kStride, int T>
static inline void depthwise_run(const DepthwiseRow& d, std::int64_t column, std::int64_t channel,
                                 const float* w, const FinishVectors<1>& finish) {
  const std::int64_t channels = d.channels;
  const std::int64_t taps = kColumns > 0 ? kColumns : d.window_columns;
  const std::int64_t stride = kStride > 0 ? kStride : d.stride;
  Vec sums[T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) sums[t] = Vec{};
  const float* x = d.x + (column * stride - d.pad_left) * channels + channel;
  for (std::int64_t i = 0; i < d.rows; ++i, x += d.columns * channels) {
#pragma GCC unroll 5
    for (std::int64_t j = 0; j < taps; ++j, w += kLanes) {
      const Vec weight = load(w);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) sums[t] += load(x + (t * stride + j) * channels) * weight;
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) finish.put(sums[t], 0, nullptr, d.out + (column + t) * channels);
}

/// One output pixel whose window reaches over an edge of the picture.
static void depthwise_edge(const DepthwiseRow& d, std::int64_t column) {
  const std::int64_t start = column * d.stride - d.pad_left;
  const std::int64_t first = start < 0 ? -start : 0;
  const std::int64_t last = d.columns - start < d.window_columns ? d.columns - start : d.window_columns;
  const std::int64_t vectors = (d.channels + kLanes - 1) / kLanes;
  const std::int64_t count = d.channels < kLanes ? d.channels : kLanes;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const std::int64_t channel = v * kLanes < d.channels - count ? v * kLanes : d.channels - count;
    const FinishVectors<1> finish{d.finish, &channel, count};
    Vec sum{};
    for (std::int64_t i = 0; i < d.rows; ++i) {
      const float* w = d.weight + ((v * d.window_rows + d.first_row + i) * d.window_columns + first) * kLanes;
      const float* x = d.x + (i * d.columns + start + first) * d.channels + channel;
      for (std::int64_t j = first; j < last; ++j, w += kLanes, x += d.channels) {
        sum += finish.get(x) * load(w);
      }
    }
    finish.put(sum, 0, nullptr, d.out + column * d.channels);
  }
}

/// Output pixels [first, last), all inside.
template <int kColumns, int kStride>
static void depthwise_inside(const DepthwiseRow& d, std::int64_t first, std::int64_t last) {
  const std::int64_t vectors = (d.channels + kLanes - 1) / kLanes;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const std::int64_t channel = v * kLanes < d.channels - kLanes ? v * kLanes : d.channels - kLanes;
    const FinishVectors<1> finish{d.finish, &channel, kLanes};
    const float* w = d.weight + (v * d.window_rows + d.first_row) * d.window_columns * kLanes;
    std::int64_t c = first;
    for (; c + 8 <= last; c += 8) depthwise_run<kColumns, kStride, 8>(d, c, channel, w, finish);
    if (c + 4 <= last) {
      depthwise_run<kColumns, kStride, 4>(d, c, channel, w, finish);
      c += 4;
    }
    for (; c < last; ++c) depthwise_run<kColumns, kStride, 1>(d, c, channel, w, finish);
  }
}

static void depthwise_row(const DepthwiseRow& d) {
  std::int64_t first = (d.pad_left + d.stride - 1) / d.stride;
  const std::int64_t room = d.columns + d.pad_left - d.window_columns;
  std::int64_t last = room < 0 ? 0 : room / d.stride + 1;
  if (last > d.out_columns) last = d.out_columns;
  if (d.channels < kLanes || last <= first) first = last = d.out_columns;  // all by the general way
  for (std::int64_t c = 0; c < first; ++c) depthwise_edge(d, c);
  if (first < last) {
    if (d.window_columns == 3 && d.stride == 1) {
      depthwise_inside<3, 1>(d, first, last);
    } else if (d.window_columns == 3 && d.stride == 2) {
      depthwise_inside<3, 2>(d, first, last);
    } else if (d.window_columns == 5 && d.stride == 1) {
      depthwise_inside<5, 1>(d, first, last);
    } else if (d.window_columns == 5 && d.stride == 2) {
      depthwise_inside<5, 2>(d, first, last);
    } else {
      depthwise_inside<0, 0>(d, first, last);
    }
  }
  for (std::int64_t c = last; c < d.out_columns; ++c) depthwise_edge(d, c);
}

}  // namespace sinew::cpu::SINEW_ISA_NAMESPACE

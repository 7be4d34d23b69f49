// The row kernels of convolutions; see vector_kernels_impl.h, which each instruction set's file includes
// first.
#pragma once

#include "backend/cpu/convolution_kernels.h"
#include "backend/cpu/vector_kernels_impl.h"

namespace sinew::cpu::SINEW_ISA_NAMESPACE {

/// NaN passes, as in the reference.
template <Rectifier kRectifier>
static inline Vec rectified(Vec x, const Vec& slope) {
  const Vec zero{};
  if constexpr (kRectifier == Rectifier::kRelu || kRectifier == Rectifier::kRelu6) x = x < zero ? zero : x;
  if constexpr (kRectifier == Rectifier::kRelu6) x = x > splat(6.0F) ? splat(6.0F) : x;
  if constexpr (kRectifier == Rectifier::kPRelu) x = x >= zero ? x : slope * x;
  return x;
}

/// Vectors of kLanes channels; or the one of a picture with fewer channels than that.
struct WholeVectors {
  Vec get(const float* p) const { return load(p); }
  void put(float* p, Vec v) const { store(p, v); }
};
struct PartOfVector {
  std::int64_t count;
  Vec get(const float* p) const {
    Vec v{};
    std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(float));
    return v;
  }
  void put(float* p, Vec v) const { std::memcpy(p, &v, static_cast<std::size_t>(count) * sizeof(float)); }
};

/// sums[r][j] of R pixels, n apart in `residual` and `out`, and V vectors of channels, the j-th from start[j]
/// on.
template <Rectifier kRectifier, int R, int V, typename Access>
static inline void finish_as(Vec (&sums)[R][V], const Finish& finish, const std::int64_t* start,
                             std::int64_t n, float* out, const Access& access) {
#pragma GCC unroll 4
  for (int j = 0; j < V; ++j) {
    const Vec bias = access.get(finish.bias + start[j]);
    Vec slope{};
    if constexpr (kRectifier == Rectifier::kPRelu) slope = access.get(finish.slope + start[j]);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      access.put(out + r * n + start[j], rectified<kRectifier>(sums[r][j] + bias, slope));
    }
  }
}

template <int R, int V, typename Access>
static inline void finish_block(Vec (&sums)[R][V], const Finish& finish, const std::int64_t* start,
                                std::int64_t n, const float* residual, float* out, const Access& access) {
  if (residual != nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) sums[r][j] += access.get(residual + r * n + start[j]);
    }
  }
  switch (finish.rectifier) {
    case Rectifier::kNone:
      return finish_as<Rectifier::kNone>(sums, finish, start, n, out, access);
    case Rectifier::kRelu:
      return finish_as<Rectifier::kRelu>(sums, finish, start, n, out, access);
    case Rectifier::kRelu6:
      return finish_as<Rectifier::kRelu6>(sums, finish, start, n, out, access);
    case Rectifier::kPRelu:
      return finish_as<Rectifier::kPRelu>(sums, finish, start, n, out, access);
  }
}

/// R pixels from `pixel` on, a panel of V vectors. No call may stand between the sums and their finish for
/// whole vectors: g++ 12 would keep the sums in memory for the loop too, at half the speed.
template <int R, int V, typename Access>
static void product_tile(const PixelProduct& p, std::int64_t pixel, const float* w, const std::int64_t* start,
                         const Access& access) {
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
  const float* residual = p.residual == nullptr ? nullptr : p.residual + pixel * p.n;
  finish_block(sums, p.finish, start, p.n, residual, p.out + pixel * p.n, access);
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
template <int R, int V, typename Access>
static void product_tile_of(std::int64_t count, const PixelProduct& p, std::int64_t pixel, const float* w,
                            const std::int64_t* start, const Access& access) {
  if constexpr (R > 1) {
    if (count < R) return product_tile_of<R - 1, V>(count, p, pixel, w, start, access);
  }
  product_tile<R, V>(p, pixel, w, start, access);
}

template <int V, typename Access>
static void product_panel(const PixelProduct& p, std::int64_t vector, const float* w, const Access& access) {
  std::int64_t start[V];
  for (int j = 0; j < V; ++j) {
    const std::int64_t first = (vector + j) * kLanes;
    start[j] = p.n < kLanes ? 0 : first < p.n - kLanes ? first : p.n - kLanes;
  }
  // Tiles of even height: 49 pixels are 10 10 10 10 9, not 12 12 12 12 1.
  const std::int64_t tiles = (p.pixels + most_pixels<V>() - 1) / most_pixels<V>();
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t first = p.pixels * t / tiles;
    const std::int64_t count = p.pixels * (t + 1) / tiles - first;
    product_tile_of<most_pixels<V>(), V>(count, p, first, w, start, access);
  }
}

static void pixel_product(const PixelProduct& p) {
  if (p.n < kLanes) return product_panel<1>(p, 0, p.weight, PartOfVector{p.n});
  const std::int64_t vectors = (p.n + kLanes - 1) / kLanes;
  for (std::int64_t panel = p.first_panel; panel < p.last_panel; ++panel) {
    const std::int64_t first = 2 * panel;
    const std::int64_t left = vectors - first;
    const float* w = p.weight + first * kLanes * p.segments * p.length;
    if (left == 1) {
      product_panel<1>(p, first, w, WholeVectors{});
    } else if (left == 3) {
      product_panel<3>(p, first, w, WholeVectors{});
    } else {
      product_panel<2>(p, first, w, WholeVectors{});
    }
  }
}

/// T output pixels side by side whose windows lie in the picture's columns, one vector of channels. kColumns
/// and kStride 0: any.
template <int kColumns, int kStride, int T>
static inline void depthwise_run(const DepthwiseRow& d, std::int64_t column, std::int64_t channel,
                                 const float* w) {
  const std::int64_t channels = d.channels;
  const std::int64_t taps = kColumns > 0 ? kColumns : d.window_columns;
  const std::int64_t stride = kStride > 0 ? kStride : d.stride;
  Vec sums[T][1];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) sums[t][0] = Vec{};
  const float* x = d.x + (column * stride - d.pad_left) * channels + channel;
  for (std::int64_t i = 0; i < d.rows; ++i, x += d.columns * channels) {
#pragma GCC unroll 5
    for (std::int64_t j = 0; j < taps; ++j, w += kLanes) {
      const Vec weight = load(w);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) sums[t][0] += load(x + (t * stride + j) * channels) * weight;
    }
  }
  finish_block(sums, d.finish, &channel, channels, nullptr, d.out + column * channels, WholeVectors{});
}

/// T output pixels from `column` on, all channels.
template <int kColumns, int kStride, int T>
static void depthwise_block(const DepthwiseRow& d, std::int64_t column) {
  const std::int64_t vectors = (d.channels + kLanes - 1) / kLanes;
  for (std::int64_t v = 0; v < vectors; ++v) {
    const std::int64_t channel = v * kLanes < d.channels - kLanes ? v * kLanes : d.channels - kLanes;
    const float* w = d.weight + (v * d.window_rows + d.first_row) * d.window_columns * kLanes;
    depthwise_run<kColumns, kStride, T>(d, column, channel, w);
  }
}

/// One output pixel, whose window may reach over an edge of the picture: V vectors of channels from `vector`
/// on.
template <int V, typename Access>
static inline void depthwise_pixel(const DepthwiseRow& d, std::int64_t column, std::int64_t vector,
                                   const Access& access) {
  const std::int64_t left = column * d.stride - d.pad_left;
  const std::int64_t first = left < 0 ? -left : 0;
  const std::int64_t last = d.columns - left < d.window_columns ? d.columns - left : d.window_columns;
  const std::int64_t block = d.window_rows * d.window_columns * kLanes;
  std::int64_t start[V];
  Vec sums[1][V];
#pragma GCC unroll 8
  for (int j = 0; j < V; ++j) {
    const std::int64_t channel = (vector + j) * kLanes;
    start[j] = d.channels < kLanes ? 0 : channel < d.channels - kLanes ? channel : d.channels - kLanes;
    sums[0][j] = Vec{};
  }
  for (std::int64_t i = 0; i < d.rows; ++i) {
    const float* w = d.weight + vector * block + ((d.first_row + i) * d.window_columns + first) * kLanes;
    const float* x = d.x + (i * d.columns + left + first) * d.channels;
    for (std::int64_t tap = first; tap < last; ++tap, w += kLanes, x += d.channels) {
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) sums[0][j] += access.get(x + start[j]) * load(w + j * block);
    }
  }
  finish_block(sums, d.finish, start, d.channels, nullptr, d.out + column * d.channels, access);
}

static void depthwise_pixels(const DepthwiseRow& d, std::int64_t first, std::int64_t last) {
  const std::int64_t vectors = (d.channels + kLanes - 1) / kLanes;
  for (std::int64_t c = first; c < last; ++c) {
    if (d.channels < kLanes) {
      depthwise_pixel<1>(d, c, 0, PartOfVector{d.channels});
      continue;
    }
    std::int64_t v = 0;
    for (; v + 8 <= vectors; v += 8) depthwise_pixel<8>(d, c, v, WholeVectors{});
    for (; v + 2 <= vectors; v += 2) depthwise_pixel<2>(d, c, v, WholeVectors{});
    if (v < vectors) depthwise_pixel<1>(d, c, v, WholeVectors{});
  }
}

/// Output pixels [first, last), all inside the picture's columns.
template <int kColumns, int kStride>
static void depthwise_inside(const DepthwiseRow& d, std::int64_t first, std::int64_t last) {
  std::int64_t c = first;
  for (; c + 8 <= last; c += 8) depthwise_block<kColumns, kStride, 8>(d, c);
  if (c + 4 <= last) {
    depthwise_block<kColumns, kStride, 4>(d, c);
    c += 4;
  }
  depthwise_pixels(d, c, last);  // fewer sums side by side than 4 would wait for one another
}

static void depthwise_row(const DepthwiseRow& d) {
  std::int64_t first = (d.pad_left + d.stride - 1) / d.stride;
  const std::int64_t room = d.columns + d.pad_left - d.window_columns;
  std::int64_t last = room < 0 ? 0 : room / d.stride + 1;
  if (last > d.out_columns) last = d.out_columns;
  if (d.channels < kLanes || last <= first) first = last = d.out_columns;  // all by the general way
  depthwise_pixels(d, 0, first);
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
  depthwise_pixels(d, last, d.out_columns);
}

}  // namespace sinew::cpu::SINEW_ISA_NAMESPACE

// What the row kernels of convolutions take: see vector_kernels.h for how they are compiled and chosen.
//
// oneDNN 2.6.3 is not used for convolutions: with a PReLU as post-op it has only its reference form (ref:any,
// 0.2 GFLOP/s, under AVX-512 and under AVX2). Without one its 1x1 convolutions reach its largest product's
// rate, and pixel_product does that with bias, residual and PReLU inside.
#pragma once

#include <cstdint>

#include "program/rectifier.h"
#include "tensor/tensor.h"

namespace sinew::cpu {

/// What comes after the sums of products: + bias, + residual, rectifier.
struct Finish {
  const float* bias = nullptr;   // [n]
  const float* slope = nullptr;  // [n] for kPRelu
  Rectifier rectifier = Rectifier::kNone;
};

/// A product of pixels with weights: out[p, :] = finish(sum_k x[p, k] w[k, :]) for p in [0, pixels). A
/// pixel's k run through `segments` pieces of `length` floats (the rows of its window), `segment_stride`
/// apart. Strides in floats.
struct PixelProduct {
  const float* x = nullptr;
  std::int64_t pixel_stride = 0, segment_stride = 0;
  std::int64_t pixels = 0, segments = 1, length = 0;
  const float* weight = nullptr;  // by pack_panels
  std::int64_t n = 0;
  std::int64_t first_panel = 0, last_panel = 0;  // those to be computed, of panels_for(n)
  Finish finish;
  const float* residual = nullptr;  // [pixels, n] or nothing
  float* out = nullptr;             // [pixels, n]
};

/// One output row of a depthwise convolution. `x` is column 0 of the first input row that lies in the
/// picture, `first_row` that row's place in the window, `rows` how many rows of the window lie in the
/// picture.
struct DepthwiseRow {
  const float* x = nullptr;
  std::int64_t columns = 0, channels = 0;  // of the picture
  std::int64_t first_row = 0, rows = 0;
  std::int64_t window_rows = 0, window_columns = 0, stride = 1, pad_left = 0;
  const float* weight = nullptr;  // by pack_channel_blocks
  Finish finish;
  std::int64_t out_columns = 0;
  float* out = nullptr;  // [out_columns, channels]
};

/// Vectors of `lanes` numbers needed for `count` >= 1 of them. Vector v holds those from vector_start on: the
/// last one overlaps the one before it rather than reach beyond the end (unless count < lanes).
std::int64_t vectors_for(std::int64_t count, std::int64_t lanes);
std::int64_t vector_start(std::int64_t vector, std::int64_t count, std::int64_t lanes);
/// Panels of two vectors side by side, from vector 2 p on; the last one takes a third rather than leave it
/// alone.
std::int64_t panels_for(std::int64_t n, std::int64_t lanes);

/// An f32 weight [n, ...] with k numbers in each row, in panels: for each panel k rows of its vectors, zeros
/// beyond n. Each number of a result is one sum over k in order, so its bits do not depend on how pixels are
/// cut into calls.
Tensor pack_panels(const TensorView& weight, std::int64_t lanes);
/// An f32 weight [..., channels] by vectors of channels: [vector][tap][lane], zeros beyond the channels.
Tensor pack_channel_blocks(const TensorView& weight, std::int64_t lanes);

}  // namespace sinew::cpu

// Family: convolutions and pooling over pictures, channels last: a picture is [rows, columns, channels].
#pragma once

#include "program/program.h"
#include "program/rectifier.h"

namespace sinew {

/// Where a window lands: output (r, c) sees rows r*stride_rows - pad_top + i for i in [0, rows), columns
/// alike. What lies outside the picture counts as zero (and not at all for pooling). Padding is smaller than
/// the window, so that every window holds at least one pixel.
struct Window {
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride_rows = 1, stride_columns = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  std::int64_t out_rows(std::int64_t extent) const {
    return (extent + pad_top + pad_bottom - rows) / stride_rows + 1;
  }
  std::int64_t out_columns(std::int64_t extent) const {
    return (extent + pad_left + pad_right - columns) / stride_columns + 1;
  }
};

/// out = rectifier(conv(x, weight) + bias + residual). x [H,W,C]; weight [N,rows,columns,C] as TFLite stores
/// it; bias [N]; residual [H',W',N] and slope [N] (kPRelu only) optional; out [H',W',N]. All f32 (f64, the
/// weight of any float type then).
struct Convolution final : Op {
  ValueId x, weight, bias, residual, slope, out;
  Window window;
  Rectifier rectifier = Rectifier::kNone;

  std::string_view name() const override { return "convolution"; }
  std::vector<ValueId> inputs() const override;
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

/// Each channel by itself: x [H,W,C]; weight [rows,columns,C]; bias [C]; out [H',W',C]. Dtypes, slope and
/// rectifier as Convolution; there is no residual.
struct DepthwiseConvolution final : Op {
  ValueId x, weight, bias, slope, out;
  Window window;
  Rectifier rectifier = Rectifier::kNone;

  std::string_view name() const override { return "depthwise_convolution"; }
  std::vector<ValueId> inputs() const override;
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

/// The largest of each window. x [H,W,C], out [H',W',C], f32 (f64).
struct MaxPool final : Op {
  ValueId x, out;
  Window window;

  std::string_view name() const override { return "max_pool"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
  std::string attributes() const override;
};

/// out[0,c] = the mean of channel c. x [H,W,C], out [1,C], f32 (f64).
struct MeanPool final : Op {
  ValueId x, out;

  std::string_view name() const override { return "mean_pool"; }
  std::vector<ValueId> inputs() const override { return {x}; }
  std::vector<ValueId> outputs() const override { return {out}; }
  void check(const Program& program) const override;
  Cost cost(const Program& program) const override;
};

}  // namespace sinew

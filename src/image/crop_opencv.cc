// The original demo's crop (spec hamer 3.1, steps 3 to 6): OpenCV 4.6's fixed-point bilinear warp, after
// scikit-image's Gaussian for large boxes. Only the pixels that the warp reads are blurred: two rows per
// patch row instead of the whole frame.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "image/affine.h"
#include "image/crop.h"

namespace sinew {
namespace {

constexpr int kFractions = 32;  // positions are rounded to 1/32 pixel
constexpr double kBlurAbove = 1.1;

/// Where one patch column or row lies in the frame: positions of its two taps and their weights in 1/32. A
/// tap outside the frame counts as black: weight 0, position 0.
struct Tap {
  int at[2] = {0, 0};
  int weight[2] = {0, 0};
};

/// Patch to frame. The two cross terms are rounding noise of the solver, but they belong to OpenCV's result.
Affine patch_to_frame(const CropGeometry& geometry, double center_x) {
  // Three points in float32, half first, and the map between them in double.
  const auto half = static_cast<float>(geometry.box_size / 2);
  const double center_y = geometry.center_y;
  const double x0 = static_cast<float>(center_x);
  const double y0 = static_cast<float>(center_y);
  const double x2 = static_cast<float>(center_x + half);
  const double y1 = static_cast<float>(center_y + half);
  if (!(x2 > x0) || !(y1 > y0)) {
    throw fail(ErrorCode::kUsage, "crop: a square of {} pixels around ({}, {}) vanishes in float32",
               geometry.box_size, geometry.center_x, geometry.center_y);
  }
  return inverse_of(affine_through({{{x0, y0}, {x0, y1}, {x2, y0}}}, {{{128, 128}, {128, 256}, {256, 128}}}));
}

/// `position` in 1/1024 pixel with 1/64 added (16: rounding to 1/32); taps beyond 0..extent-1 are dropped.
Tap tap_at(std::int64_t position, int extent) {
  const std::int64_t fine = position >> 5;
  const std::int64_t pixel = fine >> 5;
  const auto fraction = static_cast<int>(fine & (kFractions - 1));
  Tap tap;
  for (int i = 0; i < 2; ++i) {
    if (pixel + i < 0 || pixel + i >= extent) continue;
    tap.at[i] = static_cast<int>(pixel + i);
    tap.weight[i] = i == 0 ? kFractions - fraction : fraction;
  }
  return tap;
}

std::int64_t fixed_point(double value) { return static_cast<std::int64_t>(std::nearbyint(value * 1024)); }

/// The patch columns' taps for one row. Rows differ only when a cross term tips a rounding, so they are kept
/// until that happens.
class ColumnTaps {
 public:
  ColumnTaps(const Affine& map, int frame_width, bool mirrored, bool full_square)
      : map_(map), width_(frame_width), mirrored_(mirrored), taps_(full_square ? kCropSide : kCropColumns) {
    place(0);
  }
  const std::vector<Tap>& get() const { return taps_; }
  void place(int row) {
    const std::int64_t origin = fixed_point(map_[1] * row + map_[2]) + 16;
    if (origin == origin_) return;
    origin_ = origin;
    const int first = (kCropSide - static_cast<int>(taps_.size())) / 2;
    for (std::size_t j = 0; j < taps_.size(); ++j) {
      Tap& tap = taps_[j];
      tap = tap_at(origin + fixed_point(map_[0] * (first + static_cast<int>(j))), width_);
      if (!mirrored_) continue;
      for (int i = 0; i < 2; ++i) {  // the frame is not mirrored; reading it is
        if (tap.weight[i] != 0) tap.at[i] = width_ - 1 - tap.at[i];
      }
    }
  }

 private:
  const Affine& map_;
  int width_;
  bool mirrored_;
  std::int64_t origin_ = std::numeric_limits<std::int64_t>::min();
  std::vector<Tap> taps_;
};

std::vector<Tap> row_taps(const Affine& map, int height) {
  std::vector<Tap> taps(kCropSide);
  for (int i = 0; i < kCropSide; ++i) taps[i] = tap_at(fixed_point(map[4] * i + map[5]) + 16, height);
  return taps;
}

void warp_u8(const Image& frame, ColumnTaps& columns, const std::vector<Tap>& rows, std::uint8_t* out) {
  for (int y = 0; y < kCropSide; ++y) {
    const Tap& row = rows[y];
    columns.place(y);
    const std::uint8_t* above = frame.pixel(0, row.at[0]);
    const std::uint8_t* below = frame.pixel(0, row.at[1]);
    for (const Tap& column : columns.get()) {
      const std::size_t left = std::size_t{3} * column.at[0];
      const std::size_t right = std::size_t{3} * column.at[1];
      for (std::size_t c = 0; c < 3; ++c) {
        const int upper = column.weight[0] * above[left + c] + column.weight[1] * above[right + c];
        const int lower = column.weight[0] * below[left + c] + column.weight[1] * below[right + c];
        // OpenCV's weights carry a factor 32, (32 s + 2^14) >> 15 = (s + 2^9) >> 10.
        *out++ = static_cast<std::uint8_t>((row.weight[0] * upper + row.weight[1] * lower + 512) >> 10);
      }
    }
  }
}

/// Gaussian of a frame, one row at a time and only at the columns that a set of taps reads. Sums run as in
/// SciPy's correlate1d: the centre, then pairs from the outside in, so that even float64 results agree.
class BlurredRows {
 public:
  /// `columns`: the taps of one patch row; those of others lie at most a pixel away.
  BlurredRows(const Image& frame, double sigma, const std::vector<Tap>& columns)
      : frame_(frame), radius_(static_cast<int>(std::floor(4 * sigma + 0.5))), weights_(radius_ + 1) {
    const auto bell = [&](int k) { return std::exp(-0.5 / (sigma * sigma) * (k * k)); };
    double sum = 0;
    for (int k = -radius_; k <= radius_; ++k) sum += bell(k);
    for (int k = 0; k <= radius_; ++k) weights_[k] = bell(k) / sum;
    int low = frame.width;
    int high = 0;
    for (const Tap& tap : columns) {
      for (int i = 0; i < 2; ++i) {
        if (tap.weight[i] == 0) continue;
        low = std::min(low, tap.at[i]);
        high = std::max(high, tap.at[i] + 1);
      }
    }
    if (low > high) return;  // the crop lies beside the frame
    low_ = std::max(low - radius_ - 1, 0);
    high_ = std::min(high + radius_ + 1, frame.width);
    vertical_.resize(std::size_t{3} * (high_ - low_));
  }

  /// Row y at the columns' taps: out[(2 * column + tap) * 3 + channel]; taps of weight 0 are left alone.
  void read(int y, const std::vector<Tap>& columns, double* out);

 private:
  void blur_vertically(int y);

  const Image& frame_;
  int radius_;
  std::vector<double> weights_;  // by distance
  int low_ = 0, high_ = 0;       // columns of vertical_
  std::vector<double> vertical_;
};

void BlurredRows::blur_vertically(int y) {
  // Blocks of a fixed size stay in registers over all distances, and are vectorised even without -O3. The row
  // is made of whole blocks: the last one starts early, and a row shorter than a block goes value by value.
  constexpr std::size_t kBlock = 16;
  const std::size_t count = vertical_.size();
  const std::size_t block = count < kBlock ? 1 : kBlock;
  for (std::size_t from = 0; from < count; from += block) {
    const std::size_t begin = std::min(from, count - block);
    const auto line = [&](int row) {
      return frame_.pixel(low_, std::clamp(row, 0, frame_.height - 1)) + begin;
    };
    if (block == 1) {
      vertical_[begin] = line(y)[0] * weights_[0];
      for (int k = radius_; k > 0; --k) vertical_[begin] += (line(y - k)[0] + line(y + k)[0]) * weights_[k];
      continue;
    }
    double sums[kBlock];
    const std::uint8_t* center = line(y);
    for (std::size_t i = 0; i < kBlock; ++i) sums[i] = center[i] * weights_[0];
    for (int k = radius_; k > 0; --k) {
      const std::uint8_t* above = line(y - k);
      const std::uint8_t* below = line(y + k);
      const double weight = weights_[k];
      for (std::size_t i = 0; i < kBlock; ++i) sums[i] += (above[i] + below[i]) * weight;
    }
    std::copy_n(sums, kBlock, &vertical_[begin]);
  }
}

void BlurredRows::read(int y, const std::vector<Tap>& columns, double* out) {
  if (vertical_.empty()) return;
  blur_vertically(y);
  const auto at = [&](int x) {
    return &vertical_[std::size_t{3} * (std::clamp(x, 0, frame_.width - 1) - low_)];
  };
  for (const Tap& tap : columns) {
    for (int i = 0; i < 2; ++i, out += 3) {
      if (tap.weight[i] == 0) continue;
      const double* center = at(tap.at[i]);
      double sum[3] = {center[0] * weights_[0], center[1] * weights_[0], center[2] * weights_[0]};
      for (int k = radius_; k > 0; --k) {
        const double* left = at(tap.at[i] - k);
        const double* right = at(tap.at[i] + k);
        for (int c = 0; c < 3; ++c) sum[c] += (left[c] + right[c]) * weights_[k];
      }
      std::copy(sum, sum + 3, out);
    }
  }
}

void warp_blurred(const Image& frame, double sigma, ColumnTaps& columns, const std::vector<Tap>& rows,
                  float* out) {
  BlurredRows blurred(frame, sigma, columns.get());
  std::vector<double> lines[2];
  for (auto& line : lines) line.assign(columns.get().size() * 6, 0.0);
  for (int y = 0; y < kCropSide; ++y) {
    const Tap& row = rows[y];
    columns.place(y);
    for (int i = 0; i < 2; ++i) {
      if (row.weight[i] != 0) blurred.read(row.at[i], columns.get(), lines[i].data());
    }
    for (std::size_t j = 0; j < columns.get().size(); ++j) {
      const Tap& column = columns.get()[j];
      // Products of 1/32 are exact in float32, whatever the order.
      const double w00 = column.weight[0] * row.weight[0] / 1024.0;
      const double w01 = column.weight[1] * row.weight[0] / 1024.0;
      const double w10 = column.weight[0] * row.weight[1] / 1024.0;
      const double w11 = column.weight[1] * row.weight[1] / 1024.0;
      const double* above = &lines[0][6 * j];
      const double* below = &lines[1][6 * j];
      for (int c = 0; c < 3; ++c) {
        *out++ =
            static_cast<float>(above[c] * w00 + above[c + 3] * w01 + below[c] * w10 + below[c + 3] * w11);
      }
    }
  }
}

}  // namespace

Crop crop_opencv(const Image& frame, const CropGeometry& geometry, bool is_right, bool full_square) {
  check_frame(frame);
  constexpr double kFarthest = 1 << 20;  // far outside any frame, and 2^30 in 1/1024 pixel
  if (!(geometry.box_size <= kMaxSquareSide) || !(std::abs(geometry.center_x) <= kFarthest) ||
      !(std::abs(geometry.center_y) <= kFarthest)) {
    throw fail(ErrorCode::kLimit,
               "crop: a square of {} pixels around ({}, {}), at most {} pixels are supported",
               geometry.box_size, geometry.center_x, geometry.center_y, kMaxSquareSide);
  }
  const double center_x = is_right ? double{geometry.center_x} : frame.width - double{geometry.center_x} - 1;
  const Affine map = patch_to_frame(geometry, center_x);
  ColumnTaps columns(map, frame.width, !is_right, full_square);
  const std::vector<Tap> rows = row_taps(map, frame.height);
  Crop out;
  out.columns = static_cast<int>(columns.get().size());
  const std::size_t size = std::size_t{3} * out.rows * out.columns;
  const double shrink = geometry.box_size / 256 / 2;
  if (shrink > kBlurAbove) {
    out.f32.resize(size);
    warp_blurred(frame, (shrink - 1) / 2, columns, rows, out.f32.data());
  } else {
    out.u8.resize(size);
    warp_u8(frame, columns, rows, out.u8.data());
  }
  return out;
}

}  // namespace sinew

#include "image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/cpu.h"
#include "image/resample_kernels.h"

namespace sinew {

namespace {
// Towards zero, as a C cast does and Pillow relies on.
int truncated(double value) { return static_cast<int>(value); }
}  // namespace

AxisFilter triangle_filter(int source, float start, float end, int outputs) {
  const double scale = static_cast<double>(end - start) / outputs;  // the subtraction is float32's
  const double stretch = std::max(scale, 1.0);                      // also the support, whose unit is 1
  const double inverse = 1.0 / stretch;
  AxisFilter filter;
  filter.taps = static_cast<int>(std::ceil(stretch)) * 2 + 1;
  filter.first.resize(outputs);
  filter.count.resize(outputs);
  filter.outside.assign(outputs, 0);
  filter.weights.assign(static_cast<std::size_t>(outputs) * filter.taps, 0);
  std::vector<double> window(filter.taps);
  for (int k = 0; k < outputs; ++k) {
    const double center = start + (k + 0.5) * scale;
    const int low = std::max(0, truncated(center - stretch + 0.5));
    const int high = std::min(source, truncated(center + stretch + 0.5));
    double sum = 0;
    for (int j = 0; j < high - low; ++j) {
      const double distance = std::abs((j + low - center + 0.5) * inverse);
      window[j] = distance < 1.0 ? 1.0 - distance : 0.0;
      sum += window[j];
    }
    for (int j = 0; j < high - low; ++j) {
      if (sum != 0.0) window[j] /= sum;
      filter.row(k)[j] = truncated(0.5 + window[j] * (1 << AxisFilter::kWeightBits));
    }
    filter.first[k] = low;
    filter.count[k] = high - low;
  }
  return filter;
}

void place_in_frame(AxisFilter& filter, std::int64_t offset, int extent) {
  for (int k = 0; k < filter.outputs(); ++k) {
    std::int32_t* weights = filter.row(k);
    const std::int64_t first = offset + filter.first[k];
    const std::int64_t end = first + filter.count[k];
    const std::int64_t low = std::clamp<std::int64_t>(first, 0, extent);
    const std::int64_t high = std::clamp<std::int64_t>(end, low, extent);
    const auto kept = static_cast<int>(high - low);
    const auto before = static_cast<int>(std::min<std::int64_t>(low - first, filter.count[k]));
    std::int32_t outside = 0;
    for (int j = 0; j < filter.count[k]; ++j) {
      if (j < before || j >= before + kept) outside += weights[j];
    }
    if (kept > 0) std::memmove(weights, weights + before, sizeof(*weights) * kept);
    std::fill(weights + kept, weights + filter.taps, 0);
    filter.first[k] = kept > 0 ? static_cast<int>(low) : 0;
    filter.count[k] = kept;
    filter.outside[k] = outside;
  }
}

void mirror_outputs(AxisFilter& filter) {
  std::reverse(filter.first.begin(), filter.first.end());
  std::reverse(filter.count.begin(), filter.count.end());
  std::reverse(filter.outside.begin(), filter.outside.end());
  for (int k = 0, last = filter.outputs() - 1; k < last; ++k, --last) {
    std::swap_ranges(filter.row(k), filter.row(k) + filter.taps, filter.row(last));
  }
}

namespace {

/// The rows that some output needs.
struct RowRange {
  int first = std::numeric_limits<int>::max();
  int end = 0;
  bool padded = false;
};

RowRange needed_rows(const AxisFilter& rows) {
  RowRange range;
  for (int k = 0; k < rows.outputs(); ++k) {
    if (rows.outside[k] != 0) range.padded = true;
    if (rows.count[k] == 0) continue;
    range.first = std::min(range.first, rows.first[k]);
    range.end = std::max(range.end, rows.first[k] + rows.count[k]);
  }
  range.first = std::min(range.first, range.end);
  return range;
}

/// What a row of pure padding becomes: weights do not sum to exactly 2^22, so it is not simply `pad`.
std::vector<std::uint8_t> filtered_pad(const AxisFilter& columns, const std::uint8_t pad[3]) {
  std::vector<std::uint8_t> out;
  out.reserve(std::size_t{3} * columns.outputs());
  for (int k = 0; k < columns.outputs(); ++k) {
    std::int32_t sum = columns.outside[k];
    for (int j = 0; j < columns.count[k]; ++j) sum += columns.row(k)[j];
    for (int c = 0; c < 3; ++c) out.push_back(kernels::to_pixel(kernels::kHalf + sum * pad[c]));
  }
  return out;
}

}  // namespace

void resample(const Image& source, const AxisFilter& columns, const AxisFilter& rows,
              const std::uint8_t pad[3], std::uint8_t* out) {
  const bool avx2 = best_isa() >= Isa::kAvx2;
  const std::size_t stride = std::size_t{3} * columns.outputs();
  const RowRange range = needed_rows(rows);
  // Slack: the AVX2 kernel stores 4 bytes per pixel.
  std::vector<std::uint8_t> narrow((range.end - range.first) * stride + 4);
  const kernels::HorizontalPass horizontal(columns, pad, avx2);
  for (int y = range.first; y < range.end; ++y) {
    horizontal.run(source, y, &narrow[(y - range.first) * stride]);
  }
  const std::vector<std::uint8_t> padding =
      range.padded ? filtered_pad(columns, pad) : std::vector<std::uint8_t>(stride);
  std::vector<const std::uint8_t*> lines(rows.taps + 1);
  std::vector<std::int32_t> weights(rows.taps + 1);
  for (int k = 0; k < rows.outputs(); ++k) {
    kernels::VerticalRow row{lines.data(), weights.data(), 0, stride};
    const auto add = [&](const std::uint8_t* line, std::int32_t weight) {
      if (weight == 0) return;
      lines[row.count] = line;
      weights[row.count++] = weight;
    };
    for (int j = 0; j < rows.count[k]; ++j) {
      add(&narrow[(rows.first[k] - range.first + j) * stride], rows.row(k)[j]);
    }
    add(padding.data(), rows.outside[k]);
    kernels::vertical(row, out + k * stride, avx2);
  }
}

}  // namespace sinew

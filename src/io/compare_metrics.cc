#include "io/compare_metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace sinew {
namespace {

// Three buffers of 32 KiB stay in the second-level cache.
constexpr std::int64_t kChunk = 4096;

/// Walks a view in row-major order as pieces of at most the wanted length with one stride each. Neighbouring
/// axes that continue each other are merged first, so that a contiguous view is a single run.
class Pieces {
 public:
  explicit Pieces(const TensorView& view) : dtype_(view.dtype), data_(view.data) {
    for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t extent = view.shape[axis];
      if (extent == 1) continue;
      if (rank_ > 0 && view.strides[axis] == extents_[rank_ - 1] * steps_[rank_ - 1]) {
        extents_[rank_ - 1] *= extent;
      } else {
        extents_[rank_] = extent;
        steps_[rank_++] = view.strides[axis];
      }
    }
    if (rank_ == 0) {
      extents_[0] = 1;
      steps_[0] = 1;
      rank_ = 1;
    }
  }

  /// The elements left in the current run.
  std::int64_t left() const { return extents_[0] - index_[0]; }

  /// The next `length` (<= left()) elements, as a view of rank 1.
  TensorView next(std::int64_t length) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < rank_; ++axis) offset += index_[axis] * steps_[axis];
    index_[0] += length;
    for (int axis = 0; axis + 1 < rank_ && index_[axis] == extents_[axis]; ++axis) {
      index_[axis] = 0;
      ++index_[axis + 1];
    }
    return {dtype_, Shape{length}, Strides{steps_[0]},
            data_ + offset * static_cast<std::int64_t>(size_of(dtype_))};
  }

 private:
  DType dtype_;
  const std::byte* data_;
  int rank_ = 0;  // innermost axis first
  std::array<std::int64_t, Shape::kMaxRank> extents_{}, steps_{}, index_{};
};

/// Calls fn(piece, position) until `size` elements have been given out.
template <typename Fn>
void take(Pieces& pieces, std::int64_t size, Fn&& fn) {
  for (std::int64_t done = 0; done < size;) {
    const std::int64_t length = std::min(size - done, pieces.left());
    fn(pieces.next(length), done);
    done += length;
  }
}

/// Fills `actual`, `reference` and `difference` from 64-bit integers; the difference is exact before it is
/// rounded.
template <typename T>
void take_integers(Pieces& a, Pieces& b, std::int64_t size, double* actual, double* reference,
                   double* difference) {
  std::array<T, kChunk> left;
  std::array<T, kChunk> right;
  take(a, size,
       [&](const TensorView& piece, std::int64_t at) { convert_into(piece, piece.dtype, left.data() + at); });
  take(b, size, [&](const TensorView& piece, std::int64_t at) {
    convert_into(piece, piece.dtype, right.data() + at);
  });
  for (std::int64_t i = 0; i < size; ++i) {
    actual[i] = static_cast<double>(left[i]);
    reference[i] = static_cast<double>(right[i]);
    // The distance of two integers of 64 bits fits in 64 bits without sign, where subtraction may wrap.
    const auto x = static_cast<std::uint64_t>(left[i]);
    const auto y = static_cast<std::uint64_t>(right[i]);
    difference[i] = left[i] >= right[i] ? static_cast<double>(x - y) : -static_cast<double>(y - x);
  }
}

}  // namespace

MetricsAccumulator::MetricsAccumulator() : actual_(kChunk), reference_(kChunk), difference_(kChunk) {}

void MetricsAccumulator::add(const TensorView& actual, const TensorView& reference) {
  assert(squeezed(actual).shape == squeezed(reference).shape);
  const std::int64_t count = actual.shape.count();
  Pieces a(actual);
  Pieces b(reference);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t size = std::min(kChunk, count - done);
    if (actual.dtype == reference.dtype && actual.dtype == DType::kI64) {
      take_integers<std::int64_t>(a, b, size, actual_.data(), reference_.data(), difference_.data());
    } else if (actual.dtype == reference.dtype && actual.dtype == DType::kU64) {
      take_integers<std::uint64_t>(a, b, size, actual_.data(), reference_.data(), difference_.data());
    } else {
      take(a, size,
           [&](const TensorView& p, std::int64_t at) { convert_into(p, DType::kF64, actual_.data() + at); });
      take(b, size, [&](const TensorView& p, std::int64_t at) {
        convert_into(p, DType::kF64, reference_.data() + at);
      });
      for (std::int64_t i = 0; i < size; ++i) difference_[i] = actual_[i] - reference_[i];
    }
    add_chunk(static_cast<std::size_t>(size));
    done += size;
  }
}

/// Counts the pairs with an infinity or a NaN and closes the gaps they leave; the number of finite pairs.
std::size_t MetricsAccumulator::drop_nonfinite(std::size_t size) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool finite_actual = std::isfinite(actual_[i]);
    const bool finite_reference = std::isfinite(reference_[i]);
    if (finite_reference) metrics_.max_reference = std::max(metrics_.max_reference, std::fabs(reference_[i]));
    if (finite_actual && finite_reference) {
      actual_[kept] = actual_[i];
      reference_[kept] = reference_[i];
      difference_[kept++] = difference_[i];
    } else {
      metrics_.nonfinite_actual += finite_actual ? 0 : 1;
      metrics_.nonfinite_reference += finite_reference ? 0 : 1;
      metrics_.nonfinite_differences += actual_[i] == reference_[i] ? 0 : 1;
    }
  }
  return kept;
}

void MetricsAccumulator::add_chunk(std::size_t size) {
  metrics_.count += static_cast<std::int64_t>(size);
  const std::size_t kept = drop_nonfinite(size);
  if (kept == 0) return;
  const auto n = static_cast<double>(kept);
  double sum_actual = 0;
  double sum_reference = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    sum_actual += actual_[i];
    sum_reference += reference_[i];
    difference_squared_ += difference_[i] * difference_[i];
    reference_squared_ += reference_[i] * reference_[i];
    metrics_.max_abs_difference = std::max(metrics_.max_abs_difference, std::fabs(difference_[i]));
  }
  const double mean_a = sum_actual / n;
  const double mean_r = sum_reference / n;
  double aa = 0;
  double rr = 0;
  double ar = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const double x = actual_[i] - mean_a;
    const double y = reference_[i] - mean_r;
    aa += x * x;
    rr += y * y;
    ar += x * y;
  }
  const double total = finite_ + n;
  const double step_a = mean_a - mean_actual_;
  const double step_r = mean_r - mean_reference_;
  const double weight = finite_ * n / total;
  actual_actual_ += aa + step_a * step_a * weight;
  reference_reference_ += rr + step_r * step_r * weight;
  actual_reference_ += ar + step_a * step_r * weight;
  mean_actual_ += step_a * n / total;
  mean_reference_ += step_r * n / total;
  finite_ = total;
}

Metrics MetricsAccumulator::result() const {
  Metrics out = metrics_;
  if (out.max_abs_difference == 0) return out;  // relative_l2 0, correlation 1
  out.relative_l2 = std::sqrt(difference_squared_) / std::sqrt(reference_squared_);
  const double spread = std::sqrt(actual_actual_) * std::sqrt(reference_reference_);
  out.correlation = spread > 0 ? actual_reference_ / spread : std::numeric_limits<double>::quiet_NaN();
  return out;
}

TensorView squeezed(const TensorView& view) {
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  Strides strides{};
  std::size_t rank = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    if (view.shape[axis] == 1) continue;
    strides[rank] = view.strides[axis];
    dims[rank++] = view.shape[axis];
  }
  return {view.dtype, Shape(std::span<const std::int64_t>(dims.data(), rank)), strides, view.data};
}

}  // namespace sinew

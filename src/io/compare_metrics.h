// How far two tensors of equal extents are apart, in one pass and in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace sinew {

/// Elements that are not finite on either side are counted and left out of the other numbers. Two equal
/// infinities agree; every other such pair, two NaNs included, is a difference: a NaN is never what a result
/// or its reference should hold.
struct Metrics {
  std::int64_t count = 0;
  double max_abs_difference = 0;
  double max_reference = 0;  // largest finite |reference|
  // ||actual - reference|| / ||reference||; infinity when only the reference is all zero, NaN when the
  // squares leave the range of double (magnitudes above 1e150 or all below 1e-160)
  double relative_l2 = 0;
  double correlation = 1;  // Pearson; 1 when no element differs, NaN when one side is constant
  std::int64_t nonfinite_actual = 0;
  std::int64_t nonfinite_reference = 0;
  std::int64_t nonfinite_differences = 0;
};

/// Adds up pairs of views. Everything is computed in double; two i64 or two u64 tensors are subtracted
/// exactly, other pairs with 64-bit integers after rounding those to double.
class MetricsAccumulator {
 public:
  MetricsAccumulator();
  /// Views of any dtypes and strides with equal shapes up to axes of extent 1.
  void add(const TensorView& actual, const TensorView& reference);
  Metrics result() const;

 private:
  void add_chunk(std::size_t size);
  std::size_t drop_nonfinite(std::size_t size);

  Metrics metrics_;
  std::vector<double> actual_, reference_, difference_;
  // Sums over the finite pairs; means and centred sums are merged chunk by chunk (Chan, Golub, LeVeque 1979),
  // since the textbook form with plain sums of squares cancels for tensors whose mean is far from zero.
  double finite_ = 0, mean_actual_ = 0, mean_reference_ = 0;
  double actual_actual_ = 0, reference_reference_ = 0, actual_reference_ = 0;
  double difference_squared_ = 0, reference_squared_ = 0;
};

/// The view without its axes of extent 1.
TensorView squeezed(const TensorView& view);

}  // namespace sinew

// Where a program's weights come from.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace sinew {

/// Where a backend gets the weights of a program from, one at a time, so that a cold start never holds the
/// model twice.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// The tensor in exactly this dtype and shape, contiguous, on an address aligned for its elements, valid
  /// until release(). Throws Error (kMismatch) when there is no such plan tensor.
  virtual TensorView load(const std::string& name, DType dtype, const Shape& shape) = 0;
  /// The backend has taken what it needs.
  virtual void release(const std::string& name) = 0;
};

}  // namespace sinew

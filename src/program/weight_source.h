// Where a program's weights come from.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "tensor/tensor.h"

namespace sinew {

/// How a backend lays out a weight for itself. Of two equal forms of one weight, made by the same backend on
/// the same instruction set with the same library, the bytes are equal.
struct WeightForm {
  std::string dtype;   // of its elements: "f32", "bf16", "bfp8_b"
  std::string layout;  // all that decides where they lie: "row major", "panels of 32, pairs of k"
  std::size_t bytes = 0;
};

/// Memory on a 64-byte boundary, and whatever keeps it there.
using ResidentBytes = std::shared_ptr<const std::byte>;

/// Where a backend gets the weights of a program from, one at a time, so that a cold start never holds the
/// model twice.
class WeightSource {
 public:
  /// Writes a weight, given as load() gives it, in some form.
  using MakeForm = std::function<void(const TensorView& weight, std::span<std::byte> out)>;

  virtual ~WeightSource() = default;
  /// The tensor in exactly this dtype and shape, contiguous, on an address aligned for its elements, valid
  /// until release(). Throws Error (kMismatch) when there is no such plan tensor.
  virtual TensorView load(const std::string& name, DType dtype, const Shape& shape) = 0;
  /// The backend has taken what it needs.
  virtual void release(const std::string& name) = 0;
  /// The weight in a form, read-only: one that was kept from before, or one that `make` writes now. Throws as
  /// load() and `make` do. Here: loads, makes, releases.
  virtual ResidentBytes resident(const std::string& name, DType dtype, const Shape& shape,
                                 const WeightForm& form, const MakeForm& make);
};

/// The form of a weight that is used as it is stored.
WeightForm row_major_form(DType dtype, const Shape& shape);
/// Copies a weight as it is: makes row_major_form().
void copy_row_major(const TensorView& weight, std::span<std::byte> out);

}  // namespace sinew

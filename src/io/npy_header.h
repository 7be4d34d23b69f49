// The header of one .npy array (NEP 1: versions 1.0, 2.0 and 3.0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace sinew {

struct NpyHeader {
  DType dtype = DType::kF32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
  std::size_t data_offset = 0;  // from the start of the array's file

  /// Strides in elements for the order.
  Strides strides() const;
};

/// Parses a header. `prefix(n)` returns the first n bytes of the array's file, or all it has; `where` stands
/// for the array in messages. Throws Error: kFormat, kUnsupported (dtypes that would need un-pickling or have
/// no DType), kLimit.
NpyHeader read_npy_header(const std::function<std::vector<std::byte>(std::size_t)>& prefix,
                          const std::string& where);

}  // namespace sinew

// NumPy .npy arrays and .npz archives (zip of .npy, stored or deflated), format versions 1.0 to 3.0.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/checkpoint.h"

namespace sinew {

/// Opens an .npz. Array names come without ".npy". Numeric and bool dtypes of either byte order are read
/// (big-endian ones are swapped), C and Fortran order; object ('O'), void and string dtypes are refused
/// (kUnsupported: they would need un-pickling). What the headers declare must be what the archive holds
/// (kFormat), and deflated or byte-swapped arrays may take `max_bytes` in total (kLimit); both are checked
/// before any memory is taken. Stored little-endian arrays are used in place. CRCs are checked when an array
/// is inflated or swapped, else by Checkpoint::verify().
std::unique_ptr<Checkpoint> open_npz(const std::string& path, std::size_t max_bytes = std::size_t{1} << 30);
/// The same over bytes in memory, which must outlive the result.
std::unique_ptr<Checkpoint> parse_npz(std::span<const std::byte> bytes, const std::string& name,
                                      std::size_t max_bytes = std::size_t{1} << 30);

}  // namespace sinew

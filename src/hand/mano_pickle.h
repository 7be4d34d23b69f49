// MANO's own pickle as plain tensors.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "io/checkpoint.h"

namespace sinew {

/// Reads the published MANO_RIGHT.pkl (spec hamer 5.1; any pickle protocol, Python 2 or 3) without calling
/// anything: NumPy arrays are used in place, `J_regressor` (scipy csc_matrix) is made dense, `shapedirs`
/// (chumpy Select over a Ch) is selected. Only the arrays of the hand model are offered, under their keys;
/// other keys are ignored. Globals outside of NumPy, scipy's csc_matrix, chumpy's Ch and Select, and set are
/// refused. Throws Error: kNotFound, kFormat, kUnsupported, kLimit (above 32 MiB), kMismatch (bs_style other
/// than lbs); it names file, key, what was found and what was expected.
std::unique_ptr<Checkpoint> open_mano_pickle(const std::string& path);
/// The same over bytes in memory, which need not outlive the result.
std::unique_ptr<Checkpoint> parse_mano_pickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace sinew

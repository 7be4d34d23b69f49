// Steps of a chain that move elements or put zeros between them, and the parts of checkpoint tensors that
// chains begin with. All exact.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/chain.h"

namespace sinew::transforms {

/// Rows [first, first + count) of a checkpoint tensor; only these are read. A tensor [.., K] is a matrix
/// [rows, K] and gives [count, K] (HaMeR's position table is [1,193,C]); a vector gives [count]. Throws
/// Error: kUsage here for a negative range, kMismatch later for one beyond the tensor.
Chain source_rows(const std::string& name, std::int64_t first, std::int64_t count);
/// Category `index` of a per-embodiment tensor [categories, ...]: [...] (spec gr00t_n15 4.2, 5.3: `W` is
/// [categories, in, out], `b` [categories, out]). Only that category is read. Throws Error (kUsage): here for
/// a negative index, later for one that the tensor has not.
Chain source_category(const std::string& name, std::int64_t index);
/// Checkpoint tensors under one another: matrices along their first axis (their leading axes count as rows),
/// vectors end to end (spec hamer 7.9, 7.11). Each is widened straight into its place. Throws Error: kUsage
/// here for no names, kMismatch later when their row lengths differ.
Chain stacked(const std::vector<std::string>& names);
/// source_rows() and source_category() of what a chain has made.
Step rows(std::int64_t first, std::int64_t count);
Step category(std::int64_t index);
/// Swaps the last two axes: [a,b] -> [b,a], [categories,a,b] -> [categories,b,a]. Throws Error (kMismatch)
/// below rank 2.
Step transpose();
/// The same elements in the same order. Throws Error (kMismatch) when their number differs.
Step reshape(const Shape& shape);

struct HeadPadding {
  int axis = 0;            // 0 for what makes heads ([heads * dim, K], biases), 1 for what consumes them
  std::int64_t heads = 1;  // also 3 * heads of a fused [Q heads][K heads][V heads] weight
  std::int64_t dim = 0;    // elements of a head
  std::int64_t padded = 0;
};
/// Zeros behind each head: heads * dim elements of an axis become heads * padded (spec hamer 7.4: 80 to 96;
/// tenstorrent 8.8: 48 to 64). Attention with the scale of the unpadded heads is unchanged: scores gain
/// products of zeros, the padded columns of its result are zero, and the output projection, padded on its
/// input axis, multiplies them by zero. Throws Error: kUsage here unless 0 < dim <= padded and heads > 0,
/// kMismatch later when the axis is missing or is not heads * dim long.
Step pad_heads(const HeadPadding& padding);
/// Zeros at the end of an axis up to a multiple of `multiple`, a tile's side at first (spec tenstorrent 1.2).
/// Throws Error: kUsage here unless multiple > 0, kMismatch later when there is no such axis.
Step pad_to_multiple(int axis, std::int64_t multiple);
/// 32x32 tiles of four faces (tensor/tile.h, spec tenstorrent 1.1, 1.2): [.., rows, columns] -> [tiles,1024],
/// ragged edges filled with zeros. Rounded to a dtype that has tiles, its bytes are those of to_tiles().
/// Throws Error (kLimit) as tile_grid() does.
Step tiles();

/// The chains' tensors one behind the other along an axis. Throws Error: kUsage here for no chains, kMismatch
/// later when ranks or another extent differ. Holds parts and whole at once: stacked() does not.
Chain concatenated(std::vector<Chain> parts, int axis);

}  // namespace sinew::transforms

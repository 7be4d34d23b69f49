// The comparison behind `sinew compare`: two checkpoints, tensor by tensor, with the bounds that accuracy is
// stated in.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/compare_metrics.h"

namespace sinew {

/// A tensor passes when every element satisfies |a - b| <= atol + rtol * max|reference|, with the largest
/// magnitude of the whole reference tensor (not of the element, as NumPy's allclose has it: accuracy bars are
/// stated per tensor), and when no pair of elements differs by an infinity or a NaN (see Metrics).
struct CompareOptions {
  double rtol = 0;
  double atol = 0;
  bool strict = false;  // tensors that only one file has fail the comparison
};

struct CompareRow {
  std::string name;    // without "f64." and ".rows"
  std::string a_name;  // as the files have them
  std::string b_name;
  bool reference_is_b = true;  // false when only A holds the twin ("f64.", ".rows") that is the reference
  DType a_dtype = DType::kF32;
  DType b_dtype = DType::kF32;
  Shape a_shape;
  Shape b_shape;
  Metrics metrics;       // zero when the two could not be compared
  double tolerance = 0;  // atol + rtol * max|reference|
  bool passed = false;
  std::string note;  // why it failed; empty when it passed
};

struct CompareReport {
  std::string a_path;
  std::string b_path;
  CompareOptions options;
  std::vector<CompareRow> rows;  // by name
  std::vector<std::string> only_in_a;
  std::vector<std::string> only_in_b;
  bool passed = false;
};

/// Lines the tensors up by name and compares each pair. B is the reference, but for twins that only A holds:
/// - `f64.X` in one file alone is the reference for X of the other; plain X is then not compared again.
/// - `X.rows` [1,R,C] in one file alone holds token rows of X [1,T,C] of the other: those that the metadata
/// `rows` of its
///   file lists ("0,95,191", which is also what R = 3 without metadata means). `f64.X.rows` is both.
/// - A twin that both files have is compared with its like.
/// Shapes that differ by axes of extent 1 are compared; another difference is a failed row. Throws Error:
/// kMismatch when no tensor pairs up, kFormat for a bad `rows`, kUsage for a negative tolerance.
CompareReport compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                  const CompareOptions& options = {});

/// A table with one line per tensor, then what only one side has, then the verdict.
std::string to_text(const CompareReport& report);
/// The report as one JSON object; infinities and NaN are null.
std::string to_json(const CompareReport& report);

}  // namespace sinew

// The summary behind `sinew inspect`: what a checkpoint holds, from its headers alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace sinew {

struct TensorSummary {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t bytes = 0;
  bool strided = false;  // not row-major without gaps: a view into a shared storage
};

struct TensorTotals {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;  // elements, of any dtype
  std::uint64_t bytes = 0;
};

struct InspectReport {
  std::string path;
  std::string format;
  std::string filter;               // empty: everything
  std::size_t tensors_in_file = 0;  // before the filter
  std::map<std::string, std::string> metadata;
  std::vector<TensorSummary> tensors;  // by name, after the filter; the totals are theirs
  std::map<DType, TensorTotals> by_dtype;
  TensorTotals total;
};

/// `filter` is a glob (fnmatch: `*` also crosses dots and slashes) that whole names must match; empty admits
/// all. A filter that nothing matches gives an empty report.
InspectReport inspect_checkpoint(const Checkpoint& checkpoint, const std::string& filter = {});

/// Metadata, a table with one line per tensor, totals.
std::string to_text(const InspectReport& report);
/// The report as one JSON object.
std::string to_json(const InspectReport& report);

}  // namespace sinew

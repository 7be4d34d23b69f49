#include "io/compare_tensors.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "io/printable.h"

namespace sinew {
namespace {

constexpr std::string_view kTwinPrefix = "f64.";
constexpr std::string_view kRowsSuffix = ".rows";
constexpr const char* kRowsKey = "rows";
// What the goldens of a 192-token backbone keep when they do not say: first, middle and last token.
constexpr const char* kDefaultRows = "0,95,191";

using Names = std::set<std::string>;

bool is_twin(std::string_view name) { return name.starts_with(kTwinPrefix); }
bool is_rows(std::string_view name) { return name.ends_with(kRowsSuffix); }
std::string without_prefix(const std::string& name) {
  return is_twin(name) ? name.substr(kTwinPrefix.size()) : name;
}
std::string without_suffix(const std::string& name) {
  return is_rows(name) ? name.substr(0, name.size() - kRowsSuffix.size()) : name;
}
std::string twin_of(const std::string& name) { return std::string(kTwinPrefix) + name; }

/// One comparison: a tensor that acts as reference and what it is the reference for.
struct Pair {
  std::string reference;
  std::string actual;
  bool reference_is_b;
};

/// The tensor of `other` that `name`, which `other` does not have, speaks about.
std::optional<std::string> counterpart(const std::string& name, const Checkpoint& other) {
  for (const std::string& candidate :
       {without_prefix(name), without_suffix(name), without_suffix(without_prefix(name))}) {
    if (candidate != name && other.tensors().contains(candidate)) return candidate;
  }
  return std::nullopt;
}

/// True when `name` of `file` need not be compared because its f64 twin, which `other` lacks, is compared in
/// its place.
bool superseded(const std::string& name, const Checkpoint& file, const Checkpoint& other) {
  if (is_twin(name)) return false;
  const std::string twin = twin_of(name);
  return file.tensors().contains(twin) && !other.tensors().contains(twin) &&
         counterpart(twin, other).has_value();
}

/// All comparisons, and the names on both sides that take part in one (or were superseded).
struct Pairing {
  std::vector<Pair> pairs;
  Names used_a;
  Names used_b;
};

Pairing pair_up(const Checkpoint& a, const Checkpoint& b) {
  Pairing out;
  for (const bool reference_is_b : {true, false}) {
    const Checkpoint& file = reference_is_b ? b : a;
    const Checkpoint& other = reference_is_b ? a : b;
    Names& used = reference_is_b ? out.used_b : out.used_a;
    Names& used_other = reference_is_b ? out.used_a : out.used_b;
    for (const auto& [name, view] : file.tensors()) {
      const bool in_both = other.tensors().contains(name);
      if (superseded(name, file, other)) {
        used.insert(name);
      } else if (in_both && reference_is_b && !superseded(name, other, file)) {
        out.pairs.push_back({name, name, reference_is_b});
        used.insert(name);
        used_other.insert(name);
      } else if (const auto found = in_both ? std::nullopt : counterpart(name, other)) {
        out.pairs.push_back({name, *found, reference_is_b});
        used.insert(name);
        used_other.insert(*found);
      }
    }
  }
  return out;
}

std::vector<std::string> unused(const Checkpoint& file, const Names& used) {
  std::vector<std::string> out;
  for (const auto& [name, view] : file.tensors()) {
    if (!used.contains(name)) out.push_back(name);
  }
  return out;
}

/// "0,95,191"
std::vector<std::int64_t> parse_rows(const std::string& text, const std::string& path) {
  std::vector<std::int64_t> rows;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t row = 0;
    const auto [stop, error] = std::from_chars(at, end, row);
    if (error != std::errc() || row < 0 || (stop != end && *stop != ',')) {
      throw fail(ErrorCode::kFormat,
                 "{}: metadata '{}' is '{}', expected row numbers with commas between them", path, kRowsKey,
                 printable(text));
    }
    rows.push_back(row);
    if (stop == end) return rows;
    at = stop + 1;
  }
}

/// Index `row` of `axis`, with that axis kept at extent 1.
TensorView row_of(const TensorView& view, int axis, std::int64_t row) {
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  std::copy(view.shape.dims().begin(), view.shape.dims().end(), dims.begin());
  dims[axis] = 1;
  const Shape shape(std::span<const std::int64_t>(dims.data(), view.shape.rank()));
  const auto offset = row * view.strides[axis] * static_cast<std::int64_t>(size_of(view.dtype));
  // An empty view may have no data to step over.
  return {view.dtype, shape, view.strides, shape.count() == 0 ? view.data : view.data + offset};
}

/// Compares the token rows of `actual` [..,T,C] that `reference` [..,R,C] holds; what is wrong, or nothing.
std::string add_rows(MetricsAccumulator& metrics, const TensorView& actual, const TensorView& reference,
                     const Checkpoint& file) {
  const int axis = reference.shape.rank() - 2;
  const int actual_axis = actual.shape.rank() - 2;
  if (axis < 0 || actual_axis < 0) return "a tensor of rows and its counterpart need two axes or more";
  const std::int64_t stated = reference.shape[axis];
  const auto found = file.metadata().find(kRowsKey);
  if (found == file.metadata().end() && stated != 3) {
    return fmt::format("{} rows, but {} has no metadata '{}' to say which", stated, file.path(), kRowsKey);
  }
  const auto rows = parse_rows(found == file.metadata().end() ? kDefaultRows : found->second, file.path());
  if (static_cast<std::int64_t>(rows.size()) != stated) {
    return fmt::format("{} rows, but metadata '{}' lists {}", stated, kRowsKey, rows.size());
  }
  const std::int64_t tokens = actual.shape[actual_axis];
  const std::int64_t last = *std::max_element(rows.begin(), rows.end());
  if (last >= tokens) return fmt::format("row {} is not among the {} of the other", last, tokens);
  if (squeezed(row_of(actual, actual_axis, 0)).shape != squeezed(row_of(reference, axis, 0)).shape) {
    return fmt::format("shape mismatch: {} are no rows of {}", to_string(reference.shape),
                       to_string(actual.shape));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    metrics.add(row_of(actual, actual_axis, rows[i]), row_of(reference, axis, static_cast<std::int64_t>(i)));
  }
  return {};
}

std::string add_pair(MetricsAccumulator& metrics, const Pair& pair, const TensorView& actual,
                     const TensorView& reference, const Checkpoint& reference_file) {
  if (is_rows(pair.reference) && !is_rows(pair.actual))
    return add_rows(metrics, actual, reference, reference_file);
  if (squeezed(actual).shape != squeezed(reference).shape) {
    return fmt::format("shape mismatch: {} against {}", to_string(actual.shape), to_string(reference.shape));
  }
  metrics.add(actual, reference);
  return {};
}

CompareRow compare_pair(const Pair& pair, const Checkpoint& a, const Checkpoint& b,
                        const CompareOptions& options) {
  CompareRow row;
  row.reference_is_b = pair.reference_is_b;
  row.a_name = pair.reference_is_b ? pair.actual : pair.reference;
  row.b_name = pair.reference_is_b ? pair.reference : pair.actual;
  // Rows that both files hold keep their suffix: nothing else is called so.
  row.name = without_prefix(is_rows(pair.actual) ? pair.actual : without_suffix(pair.reference));
  const TensorView& view_a = a.tensors().at(row.a_name);
  const TensorView& view_b = b.tensors().at(row.b_name);
  row.a_dtype = view_a.dtype;
  row.b_dtype = view_b.dtype;
  row.a_shape = view_a.shape;
  row.b_shape = view_b.shape;

  MetricsAccumulator metrics;
  row.note = add_pair(metrics, pair, pair.reference_is_b ? view_a : view_b,
                      pair.reference_is_b ? view_b : view_a, pair.reference_is_b ? b : a);
  // Files larger than memory: the pages of this tensor are not read again soon.
  a.release(view_a);
  b.release(view_b);
  if (!row.note.empty()) return row;

  row.metrics = metrics.result();
  row.tolerance = options.atol + options.rtol * row.metrics.max_reference;
  if (row.metrics.nonfinite_differences > 0) {
    row.note = fmt::format("{} elements differ by an infinity or a NaN", row.metrics.nonfinite_differences);
  } else if (!(row.metrics.max_abs_difference <= row.tolerance)) {
    row.note = fmt::format("{:.3g} is above {:.3g}", row.metrics.max_abs_difference, row.tolerance);
  }
  row.passed = row.note.empty();
  return row;
}

}  // namespace

CompareReport compare_checkpoints(const Checkpoint& a, const Checkpoint& b, const CompareOptions& options) {
  if (!(options.rtol >= 0) || !(options.atol >= 0)) {
    throw fail(ErrorCode::kUsage, "tolerances must not be negative: rtol {}, atol {}", options.rtol,
               options.atol);
  }
  const Pairing pairing = pair_up(a, b);
  if (pairing.pairs.empty()) {
    throw fail(ErrorCode::kMismatch, "{} ({} tensors) and {} ({} tensors) have no tensor in common", a.path(),
               a.tensors().size(), b.path(), b.tensors().size());
  }
  CompareReport report{a.path(), b.path(), options, {}, unused(a, pairing.used_a), unused(b, pairing.used_b),
                       false};
  for (const Pair& pair : pairing.pairs) report.rows.push_back(compare_pair(pair, a, b, options));
  std::sort(report.rows.begin(), report.rows.end(), [](const CompareRow& x, const CompareRow& y) {
    return std::tie(x.name, x.a_name, x.b_name) < std::tie(y.name, y.a_name, y.b_name);
  });
  report.passed =
      std::all_of(report.rows.begin(), report.rows.end(), [](const CompareRow& row) { return row.passed; });
  if (options.strict && !(report.only_in_a.empty() && report.only_in_b.empty())) report.passed = false;
  return report;
}

}  // namespace sinew

// CompareReport as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "io/compare_tensors.h"
#include "io/printable.h"
#include "io/text_table.h"

namespace sinew {
namespace {

std::string names_cell(const CompareRow& row) {
  if (row.a_name == row.b_name) return printable(row.a_name);
  return fmt::format("{} ~ {}", printable(row.a_name), printable(row.b_name));
}

std::string dtypes_cell(const CompareRow& row) {
  if (row.a_dtype == row.b_dtype) return std::string(to_string(row.a_dtype));
  return fmt::format("{}~{}", to_string(row.a_dtype), to_string(row.b_dtype));
}

std::vector<std::string> cells_of(const CompareRow& row) {
  const Metrics& m = row.metrics;
  const std::string verdict = row.passed ? "ok" : "FAILED: " + printable(row.note);
  if (m.count == 0 && !row.passed) {  // never compared
    return {names_cell(row), dtypes_cell(row), to_string(row.a_shape), "-", "-", "-", "-", "-", "-", verdict};
  }
  return {names_cell(row),
          dtypes_cell(row),
          to_string(row.a_shape),
          fmt::format("{}", m.count),
          fmt::format("{:.3e}", m.max_abs_difference),
          fmt::format("{:.3e}", m.relative_l2),
          fmt::format("{:.9f}", m.correlation),
          fmt::format("{:.3e}", m.max_reference),
          m.nonfinite_actual == m.nonfinite_reference
              ? fmt::format("{}", m.nonfinite_actual)
              : fmt::format("{}~{}", row.reference_is_b ? m.nonfinite_actual : m.nonfinite_reference,
                            row.reference_is_b ? m.nonfinite_reference : m.nonfinite_actual),
          verdict};
}

void append_names(std::string& out, const std::string& path, const std::vector<std::string>& names) {
  if (names.empty()) return;
  out += fmt::format("only in {} ({}):\n", printable(path), names.size());
  for (const std::string& name : names) out += fmt::format("  {}\n", printable(name));
}

nlohmann::json json_of(const CompareRow& row) {
  const Metrics& m = row.metrics;
  return {{"name", row.name},
          {"a_name", row.a_name},
          {"b_name", row.b_name},
          {"reference", row.reference_is_b ? "b" : "a"},
          {"a_dtype", to_string(row.a_dtype)},
          {"b_dtype", to_string(row.b_dtype)},
          {"a_shape", row.a_shape.dims()},
          {"b_shape", row.b_shape.dims()},
          {"count", m.count},
          {"max_abs_difference", m.max_abs_difference},
          {"relative_l2", m.relative_l2},
          {"correlation", m.correlation},
          {"max_reference", m.max_reference},
          {"nonfinite_a", row.reference_is_b ? m.nonfinite_actual : m.nonfinite_reference},
          {"nonfinite_b", row.reference_is_b ? m.nonfinite_reference : m.nonfinite_actual},
          {"nonfinite_differences", m.nonfinite_differences},
          {"tolerance", row.tolerance},
          {"passed", row.passed},
          {"note", row.note}};
}

}  // namespace

std::string to_text(const CompareReport& report) {
  const std::vector<Column> columns = {
      {"tensor"},       {"dtype"},     {"shape"},          {"count", true},     {"max|a-b|", true},
      {"rel l2", true}, {"pcc", true}, {"max|ref|", true}, {"nonfinite", true}, {"verdict"}};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(report.rows.size());
  for (const CompareRow& row : report.rows) rows.push_back(cells_of(row));
  std::string out =
      fmt::format("a: {}\nb: {}\n", printable(report.a_path, 4096), printable(report.b_path, 4096));
  out += render_table(columns, rows);
  append_names(out, report.a_path, report.only_in_a);
  append_names(out, report.b_path, report.only_in_b);
  const auto passed =
      std::count_if(report.rows.begin(), report.rows.end(), [](const CompareRow& row) { return row.passed; });
  out +=
      fmt::format("{}: {} of {} tensors within atol {} + rtol {} * max|ref|", report.passed ? "ok" : "FAILED",
                  passed, report.rows.size(), report.options.atol, report.options.rtol);
  const std::size_t alone = report.only_in_a.size() + report.only_in_b.size();
  if (alone > 0)
    out += fmt::format("; {} on one side only{}", alone, report.options.strict ? " (strict)" : "");
  return out + '\n';
}

std::string to_json(const CompareReport& report) {
  nlohmann::json out = {{"a", report.a_path},
                        {"b", report.b_path},
                        {"rtol", report.options.rtol},
                        {"atol", report.options.atol},
                        {"strict", report.options.strict},
                        {"passed", report.passed},
                        {"tensors", nlohmann::json::array()},
                        {"only_in_a", report.only_in_a},
                        {"only_in_b", report.only_in_b}};
  for (const CompareRow& row : report.rows) out["tensors"].push_back(json_of(row));
  // Names of torch archives may be any bytes: what is not UTF-8 is replaced rather than thrown about.
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace sinew

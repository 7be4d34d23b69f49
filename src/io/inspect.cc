#include "io/inspect.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <nlohmann/json.hpp>

#include "io/printable.h"
#include "io/text_table.h"

namespace sinew {
namespace {

void add(TensorTotals& totals, const TensorSummary& tensor) {
  ++totals.tensors;
  totals.parameters += tensor.shape.count();
  totals.bytes += tensor.bytes;
}

/// "1.32 GB", with SI prefixes as disks and download pages count.
std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.3g} {}", value, unit);
}

std::string totals_text(const TensorTotals& totals) {
  return fmt::format("{} tensors, {} parameters, {} bytes ({})", totals.tensors, totals.parameters,
                     totals.bytes, human_bytes(totals.bytes));
}

nlohmann::json json_of(const TensorTotals& totals) {
  return {{"tensors", totals.tensors}, {"parameters", totals.parameters}, {"bytes", totals.bytes}};
}

}  // namespace

InspectReport inspect_checkpoint(const Checkpoint& checkpoint, const std::string& filter) {
  InspectReport report;
  report.path = checkpoint.path();
  report.format = checkpoint.format();
  report.filter = filter;
  report.tensors_in_file = checkpoint.tensors().size();
  report.metadata = checkpoint.metadata();
  for (const auto& [name, view] : checkpoint.tensors()) {
    if (!filter.empty() && ::fnmatch(filter.c_str(), name.c_str(), 0) != 0) continue;
    const TensorSummary tensor{name, view.dtype, view.shape, view.bytes(), !view.contiguous()};
    add(report.by_dtype[tensor.dtype], tensor);
    add(report.total, tensor);
    report.tensors.push_back(tensor);
  }
  return report;
}

std::string to_text(const InspectReport& report) {
  std::string out = fmt::format("{}: {}\n", printable(report.path, 4096), report.format);
  for (const auto& [key, value] : report.metadata) {
    out += fmt::format("metadata {}: {}\n", printable(key), printable(value));
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(report.tensors.size());
  for (const TensorSummary& tensor : report.tensors) {
    rows.push_back({printable(tensor.name), std::string(to_string(tensor.dtype)), to_string(tensor.shape),
                    fmt::format("{}", tensor.bytes), tensor.strided ? "strided" : ""});
  }
  out += render_table({{"tensor"}, {"dtype"}, {"shape"}, {"bytes", true}, {""}}, rows);
  for (const auto& [dtype, totals] : report.by_dtype)
    out += fmt::format("{}: {}\n", to_string(dtype), totals_text(totals));
  out += fmt::format("total: {}", totals_text(report.total));
  if (!report.filter.empty()) {
    out += fmt::format(" ({} of {} tensors match '{}')", report.tensors.size(), report.tensors_in_file,
                       printable(report.filter));
  }
  return out + '\n';
}

std::string to_json(const InspectReport& report) {
  nlohmann::json out = {{"path", report.path},
                        {"format", report.format},
                        {"filter", report.filter},
                        {"tensors_in_file", report.tensors_in_file},
                        {"metadata", report.metadata},
                        {"tensors", nlohmann::json::array()},
                        {"by_dtype", nlohmann::json::object()},
                        {"total", json_of(report.total)}};
  for (const TensorSummary& tensor : report.tensors) {
    out["tensors"].push_back({{"name", tensor.name},
                              {"dtype", to_string(tensor.dtype)},
                              {"shape", tensor.shape.dims()},
                              {"bytes", tensor.bytes},
                              {"strided", tensor.strided}});
  }
  for (const auto& [dtype, totals] : report.by_dtype)
    out["by_dtype"][std::string(to_string(dtype))] = json_of(totals);
  // Names of torch archives may be any bytes: what is not UTF-8 is replaced rather than thrown about.
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace sinew

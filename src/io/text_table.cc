#include "io/text_table.h"

#include <algorithm>
#include <cassert>

namespace sinew {
namespace {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string render_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns) lines[0].push_back(column.title);
  lines.insert(lines.end(), rows.begin(), rows.end());
  std::vector<std::size_t> widths(columns.size());
  for (const auto& cells : lines) {
    assert(cells.size() == columns.size());
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  std::string out;
  for (const auto& cells : lines) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - width_of(cells[i]), ' ');
      line += i > 0 ? "  " : "";
      line += columns[i].right ? space + cells[i] : cells[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace sinew

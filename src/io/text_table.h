// Tables for terminals: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace sinew {

struct Column {
  std::string title;
  bool right = false;  // numbers
};

/// One line per row under the line of titles, two spaces between columns, no space at the end of a line.
/// Every row has one cell per column. Widths count UTF-8 code points.
std::string render_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows);

}  // namespace sinew

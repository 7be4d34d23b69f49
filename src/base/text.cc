#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sinew {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.emplace_back(text);
  return parts;
}

std::optional<double> parse_number(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::vector<std::string> nearest_words(const std::vector<std::string>& words, std::string_view word,
                                       std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> ranked;  // distance, place
  ranked.reserve(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) ranked.emplace_back(edit_distance(words[i], word), i);
  std::ranges::sort(ranked);
  ranked.resize(std::min(ranked.size(), count));
  std::vector<std::string> nearest;
  nearest.reserve(ranked.size());
  for (const auto& [distance, place] : ranked) nearest.push_back(words[place]);
  return nearest;
}

}  // namespace sinew

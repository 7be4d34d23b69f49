// Small things about text that several rooms need.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

/// The parts between separators, empty ones too; at least one.
std::vector<std::string> split(std::string_view text, char separator);

/// The number that is the whole text (C locale, no spaces); it may be NaN or infinite when the text says so.
std::optional<double> parse_number(const std::string& text);

/// The `count` of `words` that are spelled most like `word`, nearest first: by the number of letters to
/// insert, delete or replace (Levenshtein 1966), then by their order.
std::vector<std::string> nearest_words(const std::vector<std::string>& words, std::string_view word,
                                       std::size_t count);

}  // namespace sinew

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
std::optional<double> parse_number(std::string_view text);

}  // namespace sinew

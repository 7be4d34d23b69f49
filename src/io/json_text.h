// JSON from outside, bounded before it is built. nlohmann's parser has no limits of its own.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sinew {

/// Throws Error: kLimit (more than `max_bytes`, nested more than 32 deep), kFormat (not JSON); begins with
/// `name`, the file.
nlohmann::json parse_json_text(std::string_view text, const std::string& name, std::size_t max_bytes);

}  // namespace sinew

#include "io/json_text.h"

#include <fmt/format.h>

#include "base/error.h"
#include "io/printable.h"

namespace sinew {
namespace {

/// Refuses nesting that the format has no use for before the parser builds it. Brackets in strings do not
/// count.
void check_nesting(std::string_view text, const std::string& name) {
  constexpr int kMaxNesting = 32;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxNesting) throw fail(ErrorCode::kLimit, "{}: nested more than {} deep", name, kMaxNesting);
  }
}

}  // namespace

nlohmann::json parse_json_text(std::string_view text, const std::string& name, std::size_t max_bytes) {
  if (text.size() > max_bytes)
    throw fail(ErrorCode::kLimit, "{}: {} bytes, at most {}", name, text.size(), max_bytes);
  check_nesting(text, name);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw fail(ErrorCode::kFormat, "{}: not JSON: {}", name, printable(error.what()));
  }
}

}  // namespace sinew

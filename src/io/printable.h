// Names from files, made fit for a message or a terminal.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace sinew {

/// `text` with control bytes as \xNN, so that a hostile name can neither break a line nor drive a terminal,
/// and cut after `limit` bytes.
inline std::string printable(std::string_view text, std::size_t limit = 200) {
  // Never cut in the middle of a UTF-8 sequence, which has at most three continuation bytes.
  std::size_t end = std::min(text.size(), limit);
  for (int i = 0;
       i < 3 && end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U;
       ++i) {
    --end;
  }
  std::string out;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (end < text.size()) out += "...";
  return out;
}

}  // namespace sinew

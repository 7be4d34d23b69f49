// Small helpers for decoders of outside bytes: little-endian loads, text views, names made safe for messages.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

static_assert(std::endian::native == std::endian::little,
              "every format sinew reads in place is little-endian");

/// The T at `offset`, which the caller has checked against the size.
template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  assert(offset <= bytes.size() && sizeof(T) <= bytes.size() - offset);
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `'text'` with every byte outside printable ASCII as \xNN, cut after 120 bytes: names that came from a file
/// can carry anything, and an error message is one line.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 120;
  std::string out = "'";
  for (const char c : text.substr(0, kMost)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > kMost) out += "...";
  return out + "'";
}

}  // namespace sinew

// The textual forms of protocols 0 and 1: escaped strings and decimal integers of any length.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "io/pickle_machine.h"

namespace sinew::pickle {
namespace {

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

/// The number that the first `count` characters of `digits` write in base 16.
std::uint32_t hex(std::string_view digits, std::size_t count) {
  std::uint32_t value = 0;
  if (digits.size() < count) throw Error(ErrorCode::kFormat, "an escape sequence breaks off");
  for (const char c : digits.substr(0, count)) {
    const auto digit = hex_digit(c);
    if (!digit) throw fail(ErrorCode::kFormat, "an escape sequence has the digit {}", quoted({&c, 1}));
    value = value << 4 | *digit;
  }
  return value;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    if (code > 0x10ffff) throw fail(ErrorCode::kFormat, "the character U+{:X} does not exist", code);
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

/// Undoes the escape sequence at the start of `rest` (which begins after the backslash) and returns its
/// length.
std::size_t unescape_one(std::string_view rest, std::string& out) {
  constexpr std::string_view kNames = "\\'\"abfnrtv";
  constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
  if (rest.empty()) throw Error(ErrorCode::kFormat, "an escape sequence breaks off");
  if (const std::size_t at = kNames.find(rest[0]); at != std::string_view::npos) {
    out += kValues[at];
    return 1;
  }
  if (rest[0] == 'x') {
    out += static_cast<char>(hex(rest.substr(1), 2));
    return 3;
  }
  std::size_t size = 0;
  unsigned value = 0;
  for (; size < 3 && size < rest.size() && rest[size] >= '0' && rest[size] <= '7'; ++size) {
    value = value * 8 + static_cast<unsigned>(rest[size] - '0');
  }
  if (size == 0)
    throw fail(ErrorCode::kFormat, "the escape sequence \\{} is unknown", quoted(rest.substr(0, 1)));
  out += static_cast<char>(value);
  return size;
}

}  // namespace

std::string unescape_repr(std::string_view repr) {
  const bool closed =
      repr.size() >= 2 && (repr.front() == '\'' || repr.front() == '"') && repr.front() == repr.back();
  if (!closed) throw Error(ErrorCode::kFormat, "a string without its quotes");
  repr = repr.substr(1, repr.size() - 2);
  std::string out;
  out.reserve(repr.size());
  for (std::size_t at = 0; at < repr.size();) {
    if (repr[at] == '\\') {
      at += 1 + unescape_one(repr.substr(at + 1), out);
    } else {
      out += repr[at++];
    }
  }
  return out;
}

std::string unescape_unicode(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    const std::string_view rest = raw.substr(at);
    // Python writes a backslash itself as \u005c, so every backslash before u or U begins an escape.
    if (rest.size() >= 2 && rest[0] == '\\' && (rest[1] == 'u' || rest[1] == 'U')) {
      const std::size_t digits = rest[1] == 'u' ? 4 : 8;
      append_utf8(out, hex(rest.substr(2), digits));
      at += 2 + digits;
    } else {
      append_utf8(out, static_cast<unsigned char>(rest[0]));
      ++at;
    }
  }
  return out;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
    if (size == 0 || size > text.size() - at) return false;
    for (std::size_t i = 1; i < size; ++i) {
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return false;
    }
    const auto second = size > 1 ? static_cast<unsigned char>(text[at + 1]) : 0U;
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f)) {
      return false;  // overlong, or above 10FFFF
    }
    at += size;
  }
  return true;
}

std::string two_complement(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  const std::string_view digits = decimal.substr(negative ? 1 : 0);
  const bool numeric = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits.empty() || !numeric) throw fail(ErrorCode::kFormat, "{} is not an integer", quoted(decimal));
  // The conversion takes time quadratic in the length: without a bound, a large line would be an attack.
  if (digits.size() > kMaxDigits) {
    throw fail(ErrorCode::kLimit, "an integer of {} digits, at most {} are read", digits.size(), kMaxDigits);
  }
  std::string out;  // the magnitude, little-endian
  for (const char digit : digits) {
    auto carry = static_cast<unsigned>(digit - '0');
    for (char& byte : out) {
      carry += static_cast<unsigned char>(byte) * 10U;
      byte = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
    if (carry != 0) out += static_cast<char>(carry);
  }
  if (negative) {
    unsigned carry = 1;
    for (char& byte : out) {
      carry += static_cast<unsigned char>(~byte);
      byte = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
  }
  // The sign lives in the top bit; -2^(8n-1) alone fits without another byte.
  const bool top = !out.empty() && (out.back() & 0x80) != 0;
  if (!out.empty() && top != negative) out += negative ? '\xff' : '\0';
  return out;
}

}  // namespace sinew::pickle

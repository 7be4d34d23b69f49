// The opcodes that push numbers and text.
#include <bit>
#include <charconv>

#include "io/pickle_machine.h"

namespace sinew::pickle {

// ---------------------------------------------------------------- numbers

// clang-format off: one opcode a line
bool Machine::number(unsigned char opcode) {
  switch (opcode) {
    case 'N': push(none_); return true;
    case 0x88: push_bool(true); return true;                            // NEWTRUE
    case 0x89: push_bool(false); return true;                           // NEWFALSE
    case 'J': push_integer(take<std::int32_t>()); return true;          // BININT
    case 'K': push_integer(take<std::uint8_t>()); return true;          // BININT1
    case 'M': push_integer(take<std::uint16_t>()); return true;         // BININT2
    case 0x8a: push_long(take_text(take<std::uint8_t>())); return true;   // LONG1
    case 0x8b: push_long(take_text(take<std::uint32_t>())); return true;  // LONG4; a negative length is larger than any pickle
    case 'I': push_int_line(take_line()); return true;                  // INT
    case 'L': push_long_line(take_line()); return true;                 // LONG
    case 'F': push_float_line(take_line()); return true;                // FLOAT
    case 'G': push_float(std::bit_cast<double>(__builtin_bswap64(take<std::uint64_t>()))); return true;  // BINFLOAT
    default: return false;
  }
}
// clang-format on

void Machine::push_bool(bool value) { push(value ? true_ : false_); }

void Machine::push_integer(std::int64_t value) {
  Value* node = make(Kind::kInt);
  node->integer = value;
  push(node);
}

void Machine::push_long(std::string_view little_endian) {
  if (little_endian.size() > sizeof(std::int64_t)) {
    Value* node = make(Kind::kBigInt);
    node->text = little_endian;
    return push(node);
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < little_endian.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(little_endian[i])} << (8 * i);
  }
  const bool negative = !little_endian.empty() && (little_endian.back() & 0x80) != 0;
  if (negative && little_endian.size() < sizeof(value))
    value |= ~std::uint64_t{0} << (8 * little_endian.size());
  push_integer(static_cast<std::int64_t>(value));
}

void Machine::push_int_line(std::string_view line) {
  if (line == "00" || line == "01") return push_bool(line == "01");  // bools of protocols 0 and 1
  push_long_line(line);
}

void Machine::push_long_line(std::string_view line) {
  if (line.ends_with('L')) line.remove_suffix(1);
  try {
    push_long(two_complement(line));
  } catch (const Error& e) {
    throw error(e.code(), "{}", e.what());
  }
}

void Machine::push_float(double value) {
  Value* node = make(Kind::kFloat);
  node->real = value;
  push(node);
}

void Machine::push_float_line(std::string_view line) {
  double value = 0;
  const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (status != std::errc() || end != line.data() + line.size()) {
    throw error(ErrorCode::kFormat, "{} is not a number", quoted(line));
  }
  push_float(value);
}

// ---------------------------------------------------------------- text

// clang-format off: one opcode a line
bool Machine::text(unsigned char opcode) {
  switch (opcode) {
    case 'X': push_string(take_text(take<std::uint32_t>())); return true;   // BINUNICODE
    case 0x8c: push_string(take_text(take<std::uint8_t>())); return true;   // SHORT_BINUNICODE
    case 0x8d: push_string(take_text(take<std::uint64_t>())); return true;  // BINUNICODE8
    case 'T': push_bytes(take_text(take<std::uint32_t>())); return true;    // BINSTRING
    case 'U': push_bytes(take_text(take<std::uint8_t>())); return true;     // SHORT_BINSTRING
    case 'B': push_bytes(take_text(take<std::uint32_t>())); return true;    // BINBYTES
    case 'C': push_bytes(take_text(take<std::uint8_t>())); return true;     // SHORT_BINBYTES
    case 0x8e:                                                              // BINBYTES8
    case 0x96: push_bytes(take_text(take<std::uint64_t>())); return true;   // BYTEARRAY8
    case 'S':                                                               // STRING
    case 'V': {                                                             // UNICODE
      const std::string_view line = take_line();
      std::string value;
      try {
        value = opcode == 'S' ? unescape_repr(line) : unescape_unicode(line);
      } catch (const Error& e) {
        throw error(e.code(), "{}", e.what());
      }
      if (opcode == 'S') {
        push_bytes(value);
      } else {
        push_string(value);
      }
      return true;
    }
    default: return false;
  }
}
// clang-format on

void Machine::push_string(std::string_view utf8) {
  if (!is_utf8(utf8)) throw error(ErrorCode::kFormat, "a string of {} bytes is not UTF-8", utf8.size());
  Value* node = make(Kind::kString);
  node->text = utf8;
  push(node);
}

void Machine::push_bytes(std::string_view raw) {
  Value* node = make(Kind::kBytes);
  node->text = raw;
  push(node);
}

}  // namespace sinew::pickle

#include "io/npy_header.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "io/bytes.h"

namespace sinew {
namespace {

// NumPy pads headers to a multiple of 64; eight extents and a dtype fit in 300 bytes.
constexpr std::size_t kMaxHeader = 64 << 10;

/// The Python literal of a dict with the keys descr, fortran_order and shape: nothing else is a .npy header.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  struct Result {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::int64_t> shape;
  };

  Result parse() {
    Result out;
    bool descr = false;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !std::exchange(descr, true)) {
        if (peek() == '[')
          throw fail(ErrorCode::kUnsupported, "{}: a structured dtype is not read here", where_);
        out.descr = string();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        out.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(shape, true)) {
        out.shape = tuple();
      } else {
        damaged(fmt::format("the key {} twice or unexpected", quoted(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (peek() != '\0') damaged("something after its dict");
    if (!descr || !order || !shape) damaged("no descr, fortran_order or shape");
    return out;
  }

 private:
  [[noreturn]] void damaged(std::string_view what) const {
    throw fail(ErrorCode::kFormat, "{}: .npy header has {} (at character {} of {})", where_, what, at_,
               quoted(text_));
  }
  /// The next character that is not blank; NUL at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) damaged(fmt::format("no '{}' where one is due", wanted));
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged("no string where one is due");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged("a string without end");
    const std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    damaged("neither True nor False where one is due");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (status != std::errc() || value < 0) damaged("an extent that is no number >= 0");
      at_ = static_cast<std::size_t>(end - text_.data());
      accept('L');  // Python 2's long
      out.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

/// "<f4" and its kind: byte order, kind, size.
void read_dtype(std::string_view descr, NpyHeader& out, const std::string& where) {
  struct Name {
    std::string_view descr;
    DType dtype;
  };
  static constexpr Name kNames[] = {{"b1", DType::kBool}, {"i1", DType::kI8},  {"i2", DType::kI16},
                                    {"i4", DType::kI32},  {"i8", DType::kI64}, {"u1", DType::kU8},
                                    {"u2", DType::kU16},  {"u4", DType::kU32}, {"u8", DType::kU64},
                                    {"f2", DType::kF16},  {"f4", DType::kF32}, {"f8", DType::kF64}};
  if (!descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos) {
    for (const Name& name : kNames) {
      if (name.descr != descr.substr(1)) continue;
      out.dtype = name.dtype;
      out.big_endian = descr[0] == '>' && size_of(name.dtype) > 1;
      return;
    }
  }
  throw fail(ErrorCode::kUnsupported,
             "{}: dtype {} is not read here, expected a bool, integer or float of 1 to 8 bytes", where,
             quoted(descr));
}

}  // namespace

Strides NpyHeader::strides() const {
  if (!fortran_order) return contiguous_strides(shape);
  Strides out{};
  std::int64_t step = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    out[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return out;
}

NpyHeader read_npy_header(const std::function<std::vector<std::byte>(std::size_t)>& prefix,
                          const std::string& where) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const std::vector<std::byte> start = prefix(12);
  if (start.size() < 12 || !as_text(start).starts_with(kMagic)) {
    throw fail(ErrorCode::kFormat, "{}: does not start as a .npy array", where);
  }
  const auto major = load<std::uint8_t>(start, 6);
  const auto minor = load<std::uint8_t>(start, 7);
  if (major < 1 || major > 3 || minor != 0) {
    throw fail(ErrorCode::kUnsupported, "{}: .npy version {}.{}, expected 1.0, 2.0 or 3.0", where, major,
               minor);
  }
  const std::size_t text_offset = major == 1 ? 10 : 12;
  const std::size_t text_size = major == 1 ? load<std::uint16_t>(start, 8) : load<std::uint32_t>(start, 8);
  if (text_size > kMaxHeader) {
    throw fail(ErrorCode::kLimit, "{}: .npy header of {} bytes, at most {} are read", where, text_size,
               kMaxHeader);
  }
  const std::vector<std::byte> whole = prefix(text_offset + text_size);
  if (whole.size() < text_offset + text_size)
    throw fail(ErrorCode::kFormat, "{}: .npy header breaks off", where);

  const auto fields = HeaderParser(as_text(whole).substr(text_offset), where).parse();
  NpyHeader out;
  read_dtype(fields.descr, out, where);
  out.fortran_order = fields.fortran_order;
  try {
    out.shape = Shape(fields.shape);
  } catch (const Error& e) {
    throw e.prefixed(where + ": ");
  }
  out.data_offset = text_offset + text_size;
  return out;
}

}  // namespace sinew

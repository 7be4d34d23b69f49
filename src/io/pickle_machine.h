// The stack machine behind pickle::Document. Private to pickle*.cc.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/bytes.h"
#include "io/pickle.h"

namespace sinew::pickle {

/// Runs one pickle. Values live in `nodes` and point at each other; nothing here recurses.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& name, GlobalPolicy policy,
          const Limits& limits, std::deque<Value>& nodes);
  /// The value STOP leaves. Throws Error.
  Ref run();

 private:
  // Reading. Each throws when the bytes run out; lengths are compared with what is left before anything is
  // taken.
  template <typename T>
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) throw error(ErrorCode::kFormat, "the pickle breaks off");
    at_ += sizeof(T);
    return load<T>(bytes_, at_ - sizeof(T));
  }
  std::string_view take_text(std::uint64_t size);
  std::string_view take_line();

  // One group of opcodes each; false when the opcode is of another group.
  bool framing(unsigned char opcode);
  bool number(unsigned char opcode);
  bool text(unsigned char opcode);
  bool container(unsigned char opcode);
  bool fill(unsigned char opcode);
  bool memo(unsigned char opcode);
  bool object(unsigned char opcode);

  void push(Value* value) { stack_.push_back(value); }
  Value* make(Kind kind);
  void push_bool(bool value);
  void push_integer(std::int64_t value);
  void push_long(std::string_view little_endian);
  void push_int_line(std::string_view line);
  void push_long_line(std::string_view line);
  void push_float(double value);
  void push_float_line(std::string_view line);
  void push_string(std::string_view utf8);
  void push_bytes(std::string_view raw);
  void push_global(std::string_view module, std::string_view name);
  void push_items(Kind kind, std::span<Value* const> items);

  Value* pop();
  Value* top(std::string_view use);
  /// What was pushed since the last mark; that mark is taken away, and the caller shortens the stack by it.
  std::span<Value* const> since_mark();
  void drop(std::size_t count) { stack_.resize(stack_.size() - count); }
  void count_slots(std::size_t count);
  void append(Value* container, std::span<Value* const> items, std::string_view use);
  void set_items(Value* container, std::span<Value* const> pairs);
  void call(Value* callable, Value* arguments);
  void instance(Value* callable, std::span<Value* const> arguments);
  void build();
  void put(std::uint64_t key);
  void get(std::uint64_t key);
  std::uint64_t take_memo_key_line();

  template <typename... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return {code, fmt::format("{}: pickle byte {}: {}", name_, start_,
                              fmt::format(format, std::forward<Args>(args)...))};
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  GlobalPolicy policy_;
  Limits limits_;
  std::deque<Value>& nodes_;
  std::size_t at_ = 0;     // next byte to read
  std::size_t start_ = 0;  // the opcode being run
  std::size_t slots_ = 0;
  std::vector<Value*> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<Value*> memo_;        // by key, null where unset
  std::size_t memoized_ = 0;        // keys in use: what MEMOIZE counts
  Value* none_;
  Value* true_;
  Value* false_;
};

/// Python 2's repr of a str without its quotes, as STRING carries it, undone. Throws Error (kFormat) without
/// a place.
std::string unescape_repr(std::string_view repr);
/// UNICODE's raw-unicode-escape (\uXXXX, \UXXXXXXXX, other bytes are latin-1) as UTF-8. Throws Error
/// (kFormat) without a place.
std::string unescape_unicode(std::string_view raw);
/// A decimal integer of at most `kMaxDigits` digits as little-endian two's complement, shortest form. Throws
/// Error (kFormat, kLimit).
std::string two_complement(std::string_view decimal);
inline constexpr std::size_t kMaxDigits = 100;

}  // namespace sinew::pickle

#include "io/pickle_machine.h"

#include <fmt/format.h>

#include <charconv>

namespace sinew::pickle {

Machine::Machine(std::span<const std::byte> bytes, const std::string& name, GlobalPolicy policy,
                 const Limits& limits, std::deque<Value>& nodes)
    : bytes_(bytes), name_(name), policy_(policy), limits_(limits), nodes_(nodes) {
  if (bytes.size() > limits.max_bytes) {
    throw error(ErrorCode::kLimit, "{} bytes, the bound is {}", bytes.size(), limits.max_bytes);
  }
  // One node each: a list of a million None costs a million pointers, not a million nodes.
  none_ = make(Kind::kNone);
  false_ = make(Kind::kBool);
  true_ = make(Kind::kBool);
  true_->boolean = true;
}

Ref Machine::run() {
  while (true) {
    start_ = at_;
    const auto opcode = take<unsigned char>();
    if (opcode == '.') break;
    if (memo(opcode) || text(opcode) || number(opcode) || container(opcode) || fill(opcode) ||
        object(opcode) || framing(opcode)) {
      continue;
    }
    throw error(ErrorCode::kUnsupported, "opcode 0x{:02x} is not on the allow-list", opcode);
  }
  if (stack_.size() != 1 || !marks_.empty()) {
    throw error(ErrorCode::kFormat, "ends with {} values and {} marks on the stack, expected one value",
                stack_.size(), marks_.size());
  }
  if (at_ != bytes_.size()) throw error(ErrorCode::kFormat, "{} bytes follow the end", bytes_.size() - at_);
  return stack_.back();
}

// ---------------------------------------------------------------- reading

std::string_view Machine::take_text(std::uint64_t size) {
  if (size > bytes_.size() - at_) {
    throw error(ErrorCode::kFormat, "declares {} bytes, and {} are left", size, bytes_.size() - at_);
  }
  if (size > limits_.max_text)
    throw error(ErrorCode::kLimit, "{} bytes of text, the bound is {}", size, limits_.max_text);
  at_ += size;
  return as_text(bytes_.subspan(at_ - size, size));
}

std::string_view Machine::take_line() {
  const std::string_view rest = as_text(bytes_.subspan(at_));
  const std::size_t size = rest.find('\n');
  if (size == std::string_view::npos) throw error(ErrorCode::kFormat, "a line without end");
  std::string_view line = take_text(size);
  ++at_;
  if (line.ends_with('\r')) line.remove_suffix(1);  // protocol 0 written in text mode on Windows
  return line;
}

// ---------------------------------------------------------------- the stack

Value* Machine::make(Kind kind) {
  count_slots(1);
  Value& value = nodes_.emplace_back();
  value.kind = kind;
  value.index = static_cast<std::uint32_t>(nodes_.size() - 1);
  value.offset = start_;
  return &value;
}

void Machine::count_slots(std::size_t count) {
  slots_ += count;
  if (slots_ > limits_.max_nodes) throw error(ErrorCode::kLimit, "more than {} values", limits_.max_nodes);
}

Value* Machine::pop() {
  Value* value = top("an opcode that takes a value");
  stack_.pop_back();
  return value;
}

Value* Machine::top(std::string_view use) {
  if (stack_.size() == (marks_.empty() ? 0 : marks_.back())) {
    throw error(ErrorCode::kFormat, "{} finds the stack empty", use);
  }
  return stack_.back();
}

std::span<Value* const> Machine::since_mark() {
  if (marks_.empty()) throw error(ErrorCode::kFormat, "no mark on the stack");
  const std::size_t height = marks_.back();
  marks_.pop_back();
  return std::span<Value* const>(stack_).subspan(height);
}

bool Machine::framing(unsigned char opcode) {
  switch (opcode) {
    case 0x80: {  // PROTO
      const unsigned version = take<unsigned char>();
      if (version > 5) throw error(ErrorCode::kUnsupported, "protocol {}, expected 0 to 5", version);
      return true;
    }
    case 0x95: {  // FRAME: a hint for readers of streams
      const auto size = take<std::uint64_t>();
      if (size > bytes_.size() - at_) {
        throw error(ErrorCode::kFormat, "a frame of {} bytes, and {} are left", size, bytes_.size() - at_);
      }
      return true;
    }
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return true;
    case '0':  // POP
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case '1':  // POP_MARK
      drop(since_mark().size());
      return true;
    case '2':  // DUP
      push(top("DUP"));
      return true;
    default:
      return false;
  }
}

// ---------------------------------------------------------------- containers

// clang-format off: one opcode a line
bool Machine::container(unsigned char opcode) {
  const auto from_mark = [this](Kind kind) {
    const auto items = since_mark();
    push_items(kind, items);
    return true;
  };
  const auto from_top = [this](std::size_t count) {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) {
      throw error(ErrorCode::kFormat, "a tuple of {} finds too few values on the stack", count);
    }
    push_items(Kind::kTuple, std::span<Value* const>(stack_).last(count));
    return true;
  };
  switch (opcode) {
    case ']': push(make(Kind::kList)); return true;   // EMPTY_LIST
    case ')': push(make(Kind::kTuple)); return true;  // EMPTY_TUPLE
    case '}': push(make(Kind::kDict)); return true;   // EMPTY_DICT
    case 0x8f: push(make(Kind::kSet)); return true;   // EMPTY_SET
    case 'l': return from_mark(Kind::kList);          // LIST
    case 't': return from_mark(Kind::kTuple);         // TUPLE
    case 0x91: return from_mark(Kind::kSet);          // FROZENSET
    case 0x85: return from_top(1);                    // TUPLE1
    case 0x86: return from_top(2);                    // TUPLE2
    case 0x87: return from_top(3);                    // TUPLE3
    case 'd': {                                       // DICT
      const auto items = since_mark();
      Value* node = make(Kind::kDict);
      set_items(node, items);
      drop(items.size());
      push(node);
      return true;
    }
    default: return false;
  }
}
// clang-format on

/// Replaces `items`, the top of the stack, by one container of them.
void Machine::push_items(Kind kind, std::span<Value* const> items) {
  Value* node = make(kind);
  count_slots(items.size());
  node->items.assign(items.begin(), items.end());
  drop(items.size());
  push(node);
}

bool Machine::fill(unsigned char opcode) {
  switch (opcode) {
    case 'a': {  // APPEND
      Value* const item = pop();
      append(top("APPEND"), {&item, 1}, "APPEND");
      return true;
    }
    case 's': {  // SETITEM
      Value* const value = pop();
      Value* const pair[] = {pop(), value};
      set_items(top("SETITEM"), pair);
      return true;
    }
    case 'e':    // APPENDS
    case 0x90:   // ADDITEMS
    case 'u': {  // SETITEMS
      // A copy: the container lies below the items.
      const auto marked = since_mark();
      const std::vector<Value*> items(marked.begin(), marked.end());
      drop(items.size());
      if (opcode == 'u') {
        set_items(top("SETITEMS"), items);
      } else {
        append(top("APPENDS"), items, opcode == 'e' ? "APPENDS" : "ADDITEMS");
      }
      return true;
    }
    default:
      return false;
  }
}

void Machine::append(Value* container, std::span<Value* const> items, std::string_view use) {
  const Kind wanted = use == "ADDITEMS" ? Kind::kSet : Kind::kList;
  if (container->kind != wanted && container->kind != Kind::kObject) {
    throw error(ErrorCode::kFormat, "{} to a {}", use, to_string(container->kind));
  }
  count_slots(items.size());
  container->items.insert(container->items.end(), items.begin(), items.end());
}

void Machine::set_items(Value* container, std::span<Value* const> pairs) {
  if (container->kind != Kind::kDict && container->kind != Kind::kObject) {
    throw error(ErrorCode::kFormat, "dict items set in a {}", to_string(container->kind));
  }
  if (pairs.size() % 2 != 0)
    throw error(ErrorCode::kFormat, "{} dict keys and values, expected pairs", pairs.size());
  count_slots(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); i += 2) container->entries.emplace_back(pairs[i], pairs[i + 1]);
}

// ---------------------------------------------------------------- memo

// clang-format off: one opcode a line
bool Machine::memo(unsigned char opcode) {
  switch (opcode) {
    case 'q': put(take<std::uint8_t>()); return true;   // BINPUT
    case 'r': put(take<std::uint32_t>()); return true;  // LONG_BINPUT
    case 0x94: put(memoized_); return true;             // MEMOIZE
    case 'h': get(take<std::uint8_t>()); return true;   // BINGET
    case 'j': get(take<std::uint32_t>()); return true;  // LONG_BINGET
    case 'p': put(take_memo_key_line()); return true;   // PUT
    case 'g': get(take_memo_key_line()); return true;   // GET
    default: return false;
  }
}
// clang-format on

std::uint64_t Machine::take_memo_key_line() {
  const std::string_view line = take_line();
  std::uint64_t key = 0;
  const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), key);
  if (status != std::errc() || end != line.data() + line.size()) {
    throw error(ErrorCode::kFormat, "{} is not a memo key", quoted(line));
  }
  return key;
}

void Machine::put(std::uint64_t key) {
  Value* value = top("a memo opcode");
  // Writers count up from 0 or 1, one key for at least one byte: a larger key only asks for memory.
  if (key > limits_.max_memo || key > bytes_.size())
    throw error(ErrorCode::kLimit, "memo key {} is out of bounds", key);
  if (key >= memo_.size()) memo_.resize(key + 1, nullptr);
  if (memo_[key] == nullptr) ++memoized_;
  memo_[key] = value;
}

void Machine::get(std::uint64_t key) {
  if (key >= memo_.size() || memo_[key] == nullptr)
    throw error(ErrorCode::kFormat, "memo key {} was never set", key);
  push(memo_[key]);
}

// ---------------------------------------------------------------- globals and objects

bool Machine::object(unsigned char opcode) {
  switch (opcode) {
    case 'c': {  // GLOBAL
      const std::string_view module = take_line();
      push_global(module, take_line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const Value* name = pop();
      const Value* module = pop();
      if (!name->is_text() || !module->is_text())
        throw error(ErrorCode::kFormat, "a global not named by two strings");
      push_global(module->text, name->text);
      return true;
    }
    case 'R':     // REDUCE
    case 0x81: {  // NEWOBJ
      Value* arguments = pop();
      call(pop(), arguments);
      return true;
    }
    case 'b':
      build();
      return true;  // BUILD
    case 'i': {     // INST: an old-style class instance of Python 2
      const auto items = since_mark();
      const std::vector<Value*> arguments(items.begin(), items.end());
      drop(arguments.size());
      const std::string_view module = take_line();
      push_global(module, take_line());
      instance(pop(), arguments);
      return true;
    }
    case 'o': {  // OBJ: the same, with the class below the arguments
      const auto items = since_mark();
      const std::vector<Value*> arguments(items.begin(), items.end());
      drop(arguments.size());
      if (arguments.empty()) throw error(ErrorCode::kFormat, "an instance without class");
      instance(arguments.front(), std::span(arguments).subspan(1));
      return true;
    }
    case 'P':    // PERSID
    case 'Q': {  // BINPERSID
      if (opcode == 'P') push_string(take_line());
      Value* node = make(Kind::kPersistent);
      count_slots(1);
      node->items.push_back(pop());
      push(node);
      return true;
    }
    default:
      return false;
  }
}

void Machine::push_global(std::string_view module, std::string_view name) {
  if (module.empty() || name.empty()) throw error(ErrorCode::kFormat, "a global without module or name");
  Value* node = make(Kind::kGlobal);
  node->text = fmt::format("{}.{}", module, name);
  if (!policy_(node->text)) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("{}: pickle byte {}: the global {} is refused", name_, start_, quoted(node->text)),
        "nothing was run; do not load this file elsewhere unless you trust its origin");
  }
  push(node);
}

void Machine::call(Value* callable, Value* arguments) {
  if (callable->kind != Kind::kGlobal) {
    throw error(ErrorCode::kUnsupported, "a call of a {}, expected a global", to_string(callable->kind));
  }
  if (arguments->kind != Kind::kTuple) {
    throw error(ErrorCode::kFormat, "a call with a {} for arguments, expected a tuple",
                to_string(arguments->kind));
  }
  Value* node = make(Kind::kObject);
  node->callable = callable;
  node->arguments = arguments;
  push(node);
}

void Machine::instance(Value* callable, std::span<Value* const> arguments) {
  Value* tuple = make(Kind::kTuple);
  count_slots(arguments.size());
  tuple->items.assign(arguments.begin(), arguments.end());
  call(callable, tuple);
}

void Machine::build() {
  Value* state = pop();
  Value* node = top("BUILD");
  if (node->kind != Kind::kObject)
    throw error(ErrorCode::kFormat, "state given to a {}", to_string(node->kind));
  if (node->state != nullptr) throw error(ErrorCode::kFormat, "state given twice to one object");
  node->state = state;
}

}  // namespace sinew::pickle

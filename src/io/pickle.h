// An interpreter for an allow-list of pickle opcodes (protocols 0 to 5) that builds a graph of plain values
// and calls nothing.
//
// What a pickle would call (REDUCE, NEWOBJ, BUILD, ...) is recorded as a kObject node: callable, arguments,
// state. Opcodes that have no place in a checkpoint (extension registry, out-of-band buffers, NEWOBJ_EX) are
// refused, like every unknown byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinew::pickle {

struct Value;
/// Nodes are owned by the Document and shared (memo). As in Python, lists, dicts, sets and objects can come
/// to hold themselves; tuples cannot, except through one of those. A node can also be reached along
/// exponentially many paths (a list that holds one list twice, which holds one list twice, ...). So never
/// walk the graph by plain recursion: look at the few fields you know, or use Document::visit, which sees
/// each node once.
using Ref = const Value*;

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kString,
  kBytes,
  kList,
  kTuple,
  kDict,
  kSet,
  kGlobal,
  kObject,
  kPersistent
};
/// Python's word for it, for messages: "None", "dict", ...
std::string_view to_string(Kind kind);

struct Value {
  Kind kind = Kind::kNone;
  bool boolean = false;
  std::uint32_t index = 0;   // position in the Document
  std::uint64_t offset = 0;  // of the opcode that made it, from the start of the pickle
  std::int64_t integer = 0;  // kInt
  double real = 0;           // kFloat
  // kString: UTF-8. kBytes: raw; also every Python-2 `str`, which holds text and array data alike. kBigInt:
  // little-endian two's complement. kGlobal: "module.name".
  std::string text;
  std::vector<Ref>
      items;  // kList, kTuple, kSet, APPEND(S) of a kObject; kPersistent: one item, the persistent id
  std::vector<std::pair<Ref, Ref>>
      entries;  // kDict, SETITEM(S) of a kObject (dict subclasses); in order, repeated keys included
  // kObject: the result of REDUCE, NEWOBJ, INST or OBJ. Nothing was called: the parts are recorded.
  Ref callable = nullptr;   // kGlobal
  Ref arguments = nullptr;  // kTuple
  Ref state = nullptr;      // BUILD, or null

  /// The value under a text key (kString or kBytes) of a kDict or kObject, or null. The last of repeated keys
  /// counts, as in Python.
  Ref find(std::string_view key) const;
  /// True for a kString or kBytes with this content.
  bool is_text(std::string_view content) const;
  /// True for a kString or kBytes.
  bool is_text() const { return kind == Kind::kString || kind == Kind::kBytes; }
  /// True for a kObject whose callable is this "module.name".
  bool is_call_of(std::string_view global) const;
};

struct Limits {
  std::size_t max_bytes = std::size_t{64} << 20;
  std::size_t max_nodes =
      2'000'000;  // values and container slots; a state_dict of 1000 tensors has about 40,000
  std::size_t max_memo = 2'000'000;
  std::size_t max_text = std::size_t{64} << 20;  // one string or bytes value
  int max_depth = 1000;  // nesting of the finished graph (back references not counted)
};

/// Decides about a global named by the pickle: true to admit it (as an inert name), false to refuse.
/// `module.name`.
using GlobalPolicy = bool (*)(std::string_view global);

/// True for globals that never belong in a checkpoint: modules that run programs, load code or reach files
/// and the network (os, subprocess, importlib, ctypes, ...) and the builtins that evaluate or look up (eval,
/// exec, getattr, __import__, ...). They would do no harm here; a file that names one was made to do harm
/// elsewhere, and is refused whole.
bool is_dangerous_global(std::string_view global);

/// Python's idea of UTF-8: surrogates pass, overlong forms and values above 10FFFF do not.
bool is_utf8(std::string_view text);

class Document {
 public:
  /// Throws Error (kFormat, kLimit, kUnsupported); the text gives the byte offset and, for globals, the name.
  /// Memory is bounded by the limits and by the number of bytes read, never by a declared length.
  static Document parse(std::span<const std::byte> bytes, const std::string& name, GlobalPolicy policy,
                        const Limits& limits = {});
  ~Document();
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  Ref root() const;
  /// Calls `fn` once for every node reachable from `from` (a node of this document), in no particular order.
  void visit(Ref from, const std::function<void(const Value&)>& fn) const;
  /// Throws Error (kUnsupported) with name and byte offset when a global that `policy` refuses is reachable
  /// from `from`; `where` says for the message what that is ("the state_dict").
  void require_globals(Ref from, GlobalPolicy policy, std::string_view where) const;

 private:
  struct State;
  explicit Document(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sinew::pickle

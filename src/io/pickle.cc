#include "io/pickle.h"

#include <algorithm>
#include <array>
#include <deque>

#include "base/error.h"
#include "io/bytes.h"
#include "io/pickle_machine.h"

namespace sinew::pickle {
namespace {

std::size_t child_count(const Value& value) { return 3 + value.items.size() + 2 * value.entries.size(); }

/// Child `i`, or null where the field is empty.
Ref child(const Value& value, std::size_t i) {
  if (i == 0) return value.callable;
  if (i == 1) return value.arguments;
  if (i == 2) return value.state;
  i -= 3;
  if (i < value.items.size()) return value.items[i];
  i -= value.items.size();
  return i % 2 == 0 ? value.entries[i / 2].first : value.entries[i / 2].second;
}

/// Throws when a chain of nodes, each holding the next, is longer than `limit`. A loop counts as often as its
/// nodes.
void check_depth(Ref root, std::size_t nodes, int limit, const std::string& name) {
  constexpr int kNew = 0;
  constexpr int kOpen = -1;  // on the path being followed
  struct Step {
    Ref value;
    std::size_t next;
    int height;  // of the children seen so far
  };
  std::vector<int> heights(nodes, kNew);
  std::vector<Step> path{{root, 0, 0}};
  heights[root->index] = kOpen;
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == child_count(*step.value)) {
      const int height = step.height + 1;
      heights[step.value->index] = height;
      path.pop_back();
      if (!path.empty()) path.back().height = std::max(path.back().height, height);
      if (height <= limit) continue;
    } else {
      const Ref below = child(*step.value, step.next++);
      if (below == nullptr || heights[below->index] == kOpen) continue;
      if (heights[below->index] == kNew) {
        heights[below->index] = kOpen;
        path.push_back({below, 0, 0});
      } else {
        step.height = std::max(step.height, heights[below->index]);
      }
      if (path.size() <= static_cast<std::size_t>(limit)) continue;
    }
    throw fail(ErrorCode::kLimit, "{}: pickle values are nested more than {} deep", name, limit);
  }
}

/// True when `global` is `prefix` or lies below it ("os" and "os.system", not "osgeo.x").
bool is_below(std::string_view global, std::string_view prefix) {
  return global.starts_with(prefix) && (global.size() == prefix.size() || global[prefix.size()] == '.');
}

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::array<std::string_view, 14> kNames = {"None", "bool",   "int",    "int",          "float",
                                                       "str",  "bytes",  "list",   "tuple",        "dict",
                                                       "set",  "global", "object", "persistent id"};
  return kNames[static_cast<std::size_t>(kind)];
}

Ref Value::find(std::string_view key) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->first->is_text(key)) return entry->second;
  }
  return nullptr;
}

bool Value::is_text(std::string_view content) const { return is_text() && text == content; }

bool Value::is_call_of(std::string_view global) const {
  return kind == Kind::kObject && callable != nullptr && callable->text == global;
}

bool is_dangerous_global(std::string_view global) {
  // Modules and functions that run code, load code, or reach the system. Not a fence (nothing is called here)
  // but a smoke detector, so it need not be complete; it must not ring for what people do keep in checkpoints
  // (pathlib.PosixPath, types.SimpleNamespace, functools.partial, io.BytesIO, modules of their own with a
  // plain name).
  // clang-format off
  static constexpr std::string_view kNames[] = {
      "os", "posix", "nt", "posixpath", "ntpath", "sys", "subprocess", "_posixsubprocess", "commands", "popen2", "pty", "shutil",
      "importlib", "imp", "runpy", "pkgutil", "zipimport", "codeop", "pdb", "bdb", "timeit", "cProfile", "pydoc", "doctest",
      "code.interact", "code.InteractiveConsole", "code.InteractiveInterpreter", "profile.run", "profile.runctx",
      "pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle",
      "socket", "_socket", "ssl", "http", "httplib", "urllib", "urllib2", "requests", "ftplib", "smtplib", "telnetlib", "webbrowser",
      "asyncio", "multiprocessing", "threading", "_thread", "signal", "atexit", "ctypes", "_ctypes", "cffi", "gc", "inspect",
      "operator", "_operator", "types.FunctionType", "types.CodeType", "types.MethodType", "types.LambdaType",
      "io.open", "io.open_code", "io.FileIO", "_io.open", "_io.open_code", "_io.FileIO", "_pyio", "tempfile", "glob",
      "ensurepip", "pip", "setuptools", "distutils", "venv", "site",
      "torch.load", "torch.hub", "torch.jit.load", "torch.serialization.load", "torch.utils.cpp_extension",
      "torch.ops.load_library", "torch.classes.load_library", "torch.storage._load_from_bytes",
      "numpy.load", "numpy.testing", "numpy.f2py", "numpy.distutils"};
  static constexpr std::string_view kBuiltins[] = {
      "eval", "exec", "execfile", "compile", "open", "file", "input", "raw_input", "__import__", "reload", "getattr", "setattr",
      "delattr", "globals", "locals", "vars", "breakpoint", "apply", "map", "filter", "memoryview", "help"};
  // clang-format on
  const auto is_listed = [](std::string_view name, auto& list) {
    return std::any_of(std::begin(list), std::end(list),
                       [&](std::string_view entry) { return is_below(name, entry); });
  };
  for (const std::string_view builtins : {"builtins.", "__builtin__."}) {
    if (global.starts_with(builtins)) return is_listed(global.substr(builtins.size()), kBuiltins);
  }
  return is_listed(global, kNames);
}

struct Document::State {
  std::string name;
  std::deque<Value> nodes;  // addresses stay; freed in a row, whatever points where
  Ref root = nullptr;
};

Document::Document(std::unique_ptr<State> state) : state_(std::move(state)) {}
Document::~Document() = default;
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Ref Document::root() const { return state_->root; }

Document Document::parse(std::span<const std::byte> bytes, const std::string& name, GlobalPolicy policy,
                         const Limits& limits) {
  auto state = std::make_unique<State>();
  state->name = name;
  state->root = Machine(bytes, name, policy, limits, state->nodes).run();
  check_depth(state->root, state->nodes.size(), limits.max_depth, name);
  return Document(std::move(state));
}

void Document::visit(Ref from, const std::function<void(const Value&)>& fn) const {
  std::vector<bool> seen(state_->nodes.size());
  std::vector<Ref> open{from};
  seen[from->index] = true;
  while (!open.empty()) {
    const Value& value = *open.back();
    open.pop_back();
    fn(value);
    for (std::size_t i = 0; i < child_count(value); ++i) {
      const Ref below = child(value, i);
      if (below == nullptr || seen[below->index]) continue;
      seen[below->index] = true;
      open.push_back(below);
    }
  }
}

void Document::require_globals(Ref from, GlobalPolicy policy, std::string_view where) const {
  visit(from, [&](const Value& value) {
    if (value.kind != Kind::kGlobal || policy(value.text)) return;
    throw fail(ErrorCode::kUnsupported, "{}: pickle byte {}: the global {} is not on the allow-list of {}",
               state_->name, value.offset, quoted(value.text), where);
  });
}

}  // namespace sinew::pickle

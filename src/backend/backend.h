// The seam between programs and the machines that run them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>

#include "base/error.h"
#include "program/arena.h"
#include "program/program.h"
#include "program/weight_source.h"
#include "tensor/tensor.h"

namespace sinew {

/// A Program compiled by a Backend over resident weights, with its memory. May outlive the Backend; sessions
/// of one Backend share its threads, so only one of them runs at a time.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Program& program() const { return program_; }
  /// The memory of an input, to be written before run(); contents persist. Throws Error (kUsage) for an
  /// unknown name or a value that is not an input.
  std::span<std::byte> input(std::string_view name);
  /// The value of an output after run(). Throws like input().
  TensorView output(std::string_view name) const;
  /// Runs the program once. Cannot fail.
  virtual void run() noexcept = 0;

  /// Bytes of the arena (all values that a run writes, inputs included).
  std::size_t arena_bytes() const { return arena_.size(); }
  /// Bytes of the resident weights, as packed.
  virtual std::size_t weight_bytes() const = 0;

 protected:
  explicit Session(Program program);
  /// Start of a non-weight value's memory.
  std::byte* memory(ValueId id) { return arena_.data() + plan_.offset[static_cast<std::size_t>(id.index)]; }

 private:
  ValueId require(std::string_view name, Role role) const;

  Program program_;
  ArenaPlan plan_;
  AlignedBuffer arena_;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// "reference", "cpu"
  virtual std::string_view name() const = 0;
  /// What it runs on: "cpu: avx512-bf16, 2 threads, own products".
  virtual std::string describe() const = 0;
  /// The operands of its fastest products that lose nothing (f64: an oracle) or little (docs/NUMERICS.md).
  virtual DType preferred_operand() const = 0;
  /// Everything besides a weight and the name of a form that decides the form's bytes: backend, instruction
  /// set, library and its version. Empty: this backend makes no forms worth keeping.
  virtual std::map<std::string, std::string> weight_identity() const { return {}; }
  /// Packs the weights and plans the memory. The session runs on the backend's threads: it must not outlive
  /// it. Throws Error: kUnsupported (an op, dtype or policy that this backend or this machine cannot honour),
  /// or what `weights` throws.
  virtual std::unique_ptr<Session> compile(Program program, WeightSource& weights) = 0;
};

/// A backend's forms of the ops, found by the op's C++ type. `Form` is a function pointer type that takes
/// `const Op&` first.
template <typename Form>
class OpTable {
 public:
  template <typename T>
  void add(Form form) {
    forms_[std::type_index(typeid(T))] = form;
  }
  /// Throws Error (kUnsupported) when the backend has no form of this op.
  Form find(const Op& op, std::string_view backend) const {
    const auto found = forms_.find(std::type_index(typeid(op)));
    if (found == forms_.end())
      throw fail(ErrorCode::kUnsupported, "backend {} cannot run {}", backend, op.name());
    return found->second;
  }

 private:
  std::unordered_map<std::type_index, Form> forms_;
};

}  // namespace sinew

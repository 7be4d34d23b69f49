// Program: what runs. A straight list of ops on values of fixed shape, built once, checked op by op.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/weight_storage.h"

namespace sinew {

/// Names a value of one Program.
struct ValueId {
  std::int32_t index = -1;
  /// False for an absent optional operand.
  explicit operator bool() const { return index >= 0; }
  bool operator==(const ValueId&) const = default;
};

enum class Role : std::uint8_t {
  kInput,   // written by the caller before run(); keeps its contents
  kWeight,  // a plan tensor, resident
  kLocal,   // written by one op, its memory reused after the last reader
  kOutput,  // a local whose memory is kept until the next run()
};

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  Role role = Role::kLocal;
  WeightStorage storage = WeightStorage::kPlain;  // of a weight
};

/// What an op costs, for counting and estimates.
struct Cost {
  double flops = 0;  // multiply and add count as two
};

class Program;

/// One operation. A family of ops is stated in program/<family>.h, its rules are in program/<family>.cc, its
/// meaning in backend/reference/<family>.cc and its fast form in backend/cpu/<family>.cc. Backends find their
/// form by the op's C++ type.
class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view name() const = 0;
  /// Values read, absent optionals left out.
  virtual std::vector<ValueId> inputs() const = 0;
  /// Values written; each value has exactly one writer.
  virtual std::vector<ValueId> outputs() const = 0;
  /// Throws Error (kMismatch) naming op, value and rule when shapes or dtypes break the op's rules.
  virtual void check(const Program& program) const = 0;
  virtual Cost cost(const Program& program) const = 0;
  /// "gelu, eps=1e-06": what a printed program shows beside the operands; empty when there is nothing.
  virtual std::string attributes() const { return {}; }
};

class Program {
 public:
  const std::string& name() const { return name_; }
  std::span<const Value> values() const { return values_; }
  const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id.index)]; }
  const std::vector<std::unique_ptr<const Op>>& ops() const { return ops_; }
  /// The value of this name, or an absent id.
  ValueId find(std::string_view name) const;
  std::vector<ValueId> with_role(Role role) const;
  /// The sum over all ops.
  double flops() const;
  /// One line per op: outputs, name, operands, attributes.
  std::string to_string() const;

 private:
  friend class ProgramBuilder;
  std::string name_;
  std::vector<Value> values_;
  std::unordered_map<std::string, std::int32_t> by_name_;
  std::vector<std::unique_ptr<const Op>> ops_;
};

/// Builds a Program; every call throws Error (kMismatch) that names the op or value at fault.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name);
  ValueId input(const std::string& name, DType dtype, const Shape& shape);
  ValueId weight(const std::string& name, DType dtype, const Shape& shape,
                 WeightStorage storage = WeightStorage::kPlain);
  /// The weight of this name when it was declared before, else a new one; all of it must agree.
  ValueId shared_weight(const std::string& name, DType dtype, const Shape& shape,
                        WeightStorage storage = WeightStorage::kPlain);
  ValueId local(const std::string& name, DType dtype, const Shape& shape);
  ValueId output(const std::string& name, DType dtype, const Shape& shape);
  /// Turns a local into an output.
  void keep(ValueId id);
  const Value& value(ValueId id) const { return program_.value(id); }

  /// Appends an op after checking its rules, that its operands are defined and that its outputs had no
  /// writer.
  template <typename T>
  void add(T op) {
    static_assert(std::is_base_of_v<Op, T>);
    append(std::make_unique<T>(std::move(op)));
  }

  /// Checks that every local and output is written and every local and weight read; then the builder is
  /// spent.
  Program finish();

 private:
  ValueId declare(const std::string& name, DType dtype, const Shape& shape, Role role);
  void append(std::unique_ptr<const Op> op);

  Program program_;
  std::vector<bool> defined_;  // by value: may be read
  std::vector<bool> read_;     // by value: has a reader
};

}  // namespace sinew

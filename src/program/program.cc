#include "program/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace sinew {

ValueId Program::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? ValueId{} : ValueId{found->second};
}

std::vector<ValueId> Program::with_role(Role role) const {
  std::vector<ValueId> ids;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(values_.size()); ++i) {
    if (values_[static_cast<std::size_t>(i)].role == role) ids.push_back({i});
  }
  return ids;
}

double Program::flops() const {
  double total = 0;
  for (const auto& op : ops_) total += op->cost(*this).flops;
  return total;
}

std::string Program::to_string() const {
  std::string text = fmt::format("program {}\n", name_);
  const auto describe = [&](ValueId id) {
    const Value& v = value(id);
    return fmt::format("{}:{}{}", v.name, sinew::to_string(v.dtype), sinew::to_string(v.shape));
  };
  for (const auto& op : ops_) {
    std::vector<std::string> outputs;
    std::vector<std::string> operands;
    for (const ValueId id : op->outputs()) outputs.push_back(describe(id));
    for (const ValueId id : op->inputs()) operands.push_back(value(id).name);
    const std::string attributes = op->attributes();
    text += fmt::format("  {} = {}({}){}{}\n", fmt::join(outputs, ", "), op->name(),
                        fmt::join(operands, ", "), attributes.empty() ? "" : "  # ", attributes);
  }
  return text;
}

ProgramBuilder::ProgramBuilder(std::string name) { program_.name_ = std::move(name); }

ValueId ProgramBuilder::declare(const std::string& name, DType dtype, const Shape& shape, Role role) {
  const auto index = static_cast<std::int32_t>(program_.values_.size());
  if (!program_.by_name_.emplace(name, index).second) {
    throw fail(ErrorCode::kMismatch, "program {}: two values are named {}", program_.name_, name);
  }
  if (shape.count() == 0)
    throw fail(ErrorCode::kMismatch, "program {}: value {} is empty", program_.name_, name);
  program_.values_.push_back({name, dtype, shape, role, WeightStorage::kPlain});
  defined_.push_back(role == Role::kInput || role == Role::kWeight);
  read_.push_back(false);
  return {index};
}

ValueId ProgramBuilder::input(const std::string& name, DType dtype, const Shape& shape) {
  return declare(name, dtype, shape, Role::kInput);
}

ValueId ProgramBuilder::weight(const std::string& name, DType dtype, const Shape& shape,
                               WeightStorage storage) {
  const ValueId id = declare(name, dtype, shape, Role::kWeight);
  program_.values_.back().storage = storage;
  return id;
}

ValueId ProgramBuilder::shared_weight(const std::string& name, DType dtype, const Shape& shape,
                                      WeightStorage storage) {
  const ValueId found = program_.find(name);
  if (!found) return weight(name, dtype, shape, storage);
  const Value& value = program_.value(found);
  if (value.role != Role::kWeight || value.dtype != dtype || !(value.shape == shape) ||
      value.storage != storage) {
    throw fail(ErrorCode::kMismatch,
               "program {}: weight {} is declared twice with different dtype, shape or storage",
               program_.name_, name);
  }
  return found;
}

ValueId ProgramBuilder::local(const std::string& name, DType dtype, const Shape& shape) {
  return declare(name, dtype, shape, Role::kLocal);
}

ValueId ProgramBuilder::output(const std::string& name, DType dtype, const Shape& shape) {
  return declare(name, dtype, shape, Role::kOutput);
}

void ProgramBuilder::keep(ValueId id) {
  Value& value = program_.values_[static_cast<std::size_t>(id.index)];
  if (value.role == Role::kLocal) value.role = Role::kOutput;
}

void ProgramBuilder::append(std::unique_ptr<const Op> op) {
  for (const ValueId id : op->inputs()) {
    if (!id) throw fail(ErrorCode::kMismatch, "program {}: {} lacks an operand", program_.name_, op->name());
    if (!defined_[static_cast<std::size_t>(id.index)]) {
      throw fail(ErrorCode::kMismatch, "program {}: {} reads {} before it is written", program_.name_,
                 op->name(), program_.value(id).name);
    }
    read_[static_cast<std::size_t>(id.index)] = true;
  }
  for (const ValueId id : op->outputs()) {
    if (!id) throw fail(ErrorCode::kMismatch, "program {}: {} lacks an output", program_.name_, op->name());
    if (defined_[static_cast<std::size_t>(id.index)]) {
      throw fail(ErrorCode::kMismatch, "program {}: {} writes {}, which already has a value", program_.name_,
                 op->name(), program_.value(id).name);
    }
  }
  op->check(program_);
  for (const ValueId id : op->outputs()) defined_[static_cast<std::size_t>(id.index)] = true;
  program_.ops_.push_back(std::move(op));
}

Program ProgramBuilder::finish() {
  for (std::size_t i = 0; i < program_.values_.size(); ++i) {
    const Value& value = program_.values_[i];
    if (!defined_[i]) {
      throw fail(ErrorCode::kMismatch, "program {}: {} is never written", program_.name_, value.name);
    }
    if (!read_[i] && (value.role == Role::kLocal || value.role == Role::kWeight)) {
      throw fail(ErrorCode::kMismatch, "program {}: {} is never read", program_.name_, value.name);
    }
  }
  return std::move(program_);
}

}  // namespace sinew

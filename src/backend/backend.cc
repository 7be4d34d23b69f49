#include "backend/backend.h"

#include <utility>

namespace sinew {

Session::Session(Program program)
    : program_(std::move(program)), plan_(plan_arena(program_)), arena_(plan_.bytes) {}

ValueId Session::require(std::string_view name, Role role) const {
  const ValueId id = program_.find(name);
  if (!id || program_.value(id).role != role) {
    throw fail(ErrorCode::kUsage, "program {} has no {} named {}", program_.name(),
               role == Role::kInput ? "input" : "output", name);
  }
  return id;
}

std::span<std::byte> Session::input(std::string_view name) {
  const ValueId id = require(name, Role::kInput);
  const Value& value = program_.value(id);
  return {memory(id), static_cast<std::size_t>(value.shape.count()) * size_of(value.dtype)};
}

TensorView Session::output(std::string_view name) const {
  const ValueId id = require(name, Role::kOutput);
  const Value& value = program_.value(id);
  return {value.dtype, value.shape, arena_.data() + plan_.offset[static_cast<std::size_t>(id.index)]};
}

}  // namespace sinew

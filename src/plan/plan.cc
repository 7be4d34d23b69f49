#include "plan/plan.h"

#include <cstdint>

#include "base/error.h"

namespace sinew {

void Plan::add(PlanEntry entry) {
  std::string name = entry.name;
  entries_.emplace(std::move(name), std::move(entry));
}

std::size_t Plan::bytes() const {
  std::size_t total = 0;
  for (const auto& [name, entry] : entries_) {
    total += entry.bytes();
  }
  return total;
}

Tensor PlanWeights::make(const PlanEntry& entry) const {
  if (!entry.transform) return convert(sources_.get(entry.sources.at(0)), entry.dtype);
  const Tensor exact = entry.transform(sources_);
  if (!(exact.shape() == entry.shape)) {
    throw fail(ErrorCode::kMismatch, "plan tensor {}: the transform made {}, the plan says {}", entry.name,
               to_string(exact.shape()), to_string(entry.shape));
  }
  return convert(exact, entry.dtype);
}

bool PlanWeights::is_stored(const PlanEntry& entry) const {
  if (entry.transform) return false;
  const TensorView& source = sources_.get(entry.sources.at(0));
  const bool aligned = reinterpret_cast<std::uintptr_t>(source.data) % size_of(entry.dtype) == 0;
  return source.dtype == entry.dtype && source.contiguous() && aligned;
}

TensorView PlanWeights::load(const std::string& name, DType dtype, const Shape& shape) {
  const auto found = plan_.entries().find(name);
  if (found == plan_.entries().end()) throw fail(ErrorCode::kMismatch, "the plan has no tensor {}", name);
  const PlanEntry& entry = found->second;
  if (entry.dtype != dtype || !(entry.shape == shape)) {
    throw fail(ErrorCode::kMismatch, "plan tensor {} is {}{}, the program wants {}{}", name,
               to_string(entry.dtype), to_string(entry.shape), to_string(dtype), to_string(shape));
  }
  if (is_stored(entry)) return reshaped(sources_.get(entry.sources.at(0)), shape);
  const auto [at, inserted] = made_.try_emplace(name);
  if (inserted) at->second = make(entry);
  return reshaped(at->second, shape);
}

void PlanWeights::release(const std::string& name) {
  made_.erase(name);
  const auto found = plan_.entries().find(name);
  if (found == plan_.entries().end()) return;
  for (const std::string& source : found->second.sources) sources_.release(source);
}

}  // namespace sinew

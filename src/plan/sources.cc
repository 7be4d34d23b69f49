#include "plan/sources.h"

#include "base/error.h"

namespace sinew {

void Sources::add_all(const std::shared_ptr<const Checkpoint>& checkpoint) {
  for (const auto& [name, view] : checkpoint->tensors()) entries_.emplace(name, Entry{view, checkpoint});
}

void Sources::add(const std::string& name, const TensorView& view,
                  const std::shared_ptr<const Checkpoint>& owner) {
  entries_.emplace(name, Entry{view, owner});
}

const TensorView* Sources::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.view;
}

const TensorView& Sources::get(const std::string& name) const {
  const TensorView* view = find(name);
  if (view == nullptr) throw fail(ErrorCode::kMismatch, "the checkpoint has no tensor {}", name);
  return *view;
}

Tensor Sources::f64(const std::string& name) const { return convert(get(name), DType::kF64); }

void Sources::release(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) found->second.owner->release(found->second.view);
}

}  // namespace sinew

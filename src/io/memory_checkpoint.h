// A Checkpoint for tests whose tensors live in memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"

namespace sinew {

class MemoryCheckpoint final : public Checkpoint {
 public:
  explicit MemoryCheckpoint(std::string name) : Checkpoint(std::move(name)) {}
  std::string_view format() const override { return "memory"; }
  void release(const TensorView&) const override {}

  MemoryCheckpoint& add(const std::string& name, Tensor tensor) {
    owned_.push_back(std::move(tensor));
    tensors_[name] = owned_.back();
    return *this;
  }
  /// A tensor of doubles, stored as `dtype`.
  MemoryCheckpoint& add(const std::string& name, const Shape& shape, const std::vector<double>& values,
                        DType dtype = DType::kF32) {
    return add(name, convert(TensorView(DType::kF64, shape, values.data()), dtype));
  }
  MemoryCheckpoint& add_view(const std::string& name, const TensorView& view) {
    tensors_[name] = view;
    return *this;
  }
  MemoryCheckpoint& set(const std::string& key, const std::string& value) {
    metadata_[key] = value;
    return *this;
  }

 private:
  std::vector<Tensor> owned_;
};

}  // namespace sinew

// The tensors that plans are made from: one name space over one or more checkpoints.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "io/checkpoint.h"
#include "tensor/tensor.h"

namespace sinew {

class Sources {
 public:
  /// Every tensor of a checkpoint under its own name.
  void add_all(const std::shared_ptr<const Checkpoint>& checkpoint);
  /// One view into a checkpoint under a name of its own; an existing name wins.
  void add(const std::string& name, const TensorView& view, const std::shared_ptr<const Checkpoint>& owner);

  struct Entry {
    TensorView view;
    std::shared_ptr<const Checkpoint> owner;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  /// Null when there is no such tensor.
  const TensorView* find(const std::string& name) const;
  /// Throws Error (kMismatch) for an unknown name.
  const TensorView& get(const std::string& name) const;
  /// A contiguous copy in double.
  Tensor f64(const std::string& name) const;
  /// Lets a tensor's mapped pages go.
  void release(const std::string& name) const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace sinew

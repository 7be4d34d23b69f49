// Checkpoint: named tensors on disk as published, read-only and memory-mapped.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace sinew {

/// Names and tensors of one file. Views stay valid as long as the Checkpoint lives. Strides may be arbitrary
/// (torch archives store views of shared storages).
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  /// The file, for messages.
  const std::string& path() const { return path_; }
  /// "safetensors", "torch archive", "npz", "tflite"
  virtual std::string_view format() const = 0;
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  /// Null when there is no such tensor.
  const TensorView* find(const std::string& name) const;
  /// Throws Error (kMismatch) naming file and tensor when it is missing.
  const TensorView& get(const std::string& name) const;
  /// Free-form string metadata (safetensors `__metadata__`); empty elsewhere.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Lets the pages under a tensor go after it has been used (see MappedFile::release).
  virtual void release(const TensorView& view) const = 0;
  /// Reads every byte that has a checksum in the file (torch archives, npz; safetensors has none) and throws
  /// Error (kFormat) that names the part that is damaged. Opening alone checks headers only.
  virtual void verify() const {}

 protected:
  explicit Checkpoint(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Opens a safetensors file, a torch zip archive (.ckpt, .pt, .pth), an npz or a TFLite file (its constants),
/// told apart by content and not by name. Throws Error: kNotFound, kFormat (neither), or what the format's
/// reader throws.
std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace sinew

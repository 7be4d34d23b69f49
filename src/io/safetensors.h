// safetensors: 8-byte little-endian header length, JSON header, raw row-major little-endian data.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace sinew {

/// Opens a safetensors file. Every rule of the format is enforced: header at most 100 MB, an object of
/// objects with exactly dtype, shape and data_offsets; no duplicate key; sizes without overflow; data that
/// covers the rest of the file without hole or overlap. Each breach is an Error (kFormat) that names the file
/// and the tensor.
std::unique_ptr<Checkpoint> open_safetensors(const std::string& path);

/// The same over bytes in memory (which must outlive the result); `name` stands for the path in messages.
std::unique_ptr<Checkpoint> parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

/// Streams tensors into a safetensors file that appears atomically. Declare all, then write each in the order
/// of declaration, then commit. Data starts on a 64-byte boundary of the file.
class SafetensorsWriter {
 public:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
  };
  /// Throws Error: kFormat on a duplicate or reserved name, kIo when the file cannot be made.
  SafetensorsWriter(const std::string& path, const std::vector<Entry>& entries,
                    const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();
  /// Appends the next bytes of data; a tensor may come in several pieces.
  void write(std::span<const std::byte> bytes);
  /// Throws Error (kFormat) unless exactly the declared number of bytes was written.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One call for tensors that are all in memory (strided views are written row-major).
void write_safetensors(const std::string& path, const std::map<std::string, TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace sinew

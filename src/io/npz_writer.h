// Writes .npz archives: a stored (not compressed) zip of .npy arrays.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"
#include "tensor/tensor.h"

namespace sinew {

/// Arrays go to the file as they are added; it appears with commit(). Equal arrays give equal files. Data
/// lies on 64-byte boundaries, so that readers can use it where it is mapped. Throws Error: kIo from every
/// call.
class NpzWriter {
 public:
  explicit NpzWriter(const std::string& path);
  /// `name` without ".npy"; `array` contiguous, of any dtype but bf16 (kUnsupported: NumPy has none). Throws
  /// Error: kUsage (an empty name, one with a slash or a byte outside printable ASCII, a name used before),
  /// kLimit (4 GB or 65535 arrays, where a plain zip ends).
  void add(const std::string& name, const TensorView& array);
  void commit();

 private:
  struct Member {
    std::string name;
    std::uint32_t size, crc, offset;
  };
  void check_name(const std::string& name);
  void put(std::string_view bytes);

  std::string path_;
  AtomicFile file_;
  std::uint64_t position_ = 0;
  std::vector<Member> members_;
  std::set<std::string> names_;
};

}  // namespace sinew

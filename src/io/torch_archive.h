// torch zip archives (.ckpt, .pt, .pth): state_dicts and Lightning checkpoints, read without torch and
// without calling anything.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace sinew {

/// Opens a torch zip archive. The tensors are those of the root dict's `state_dict` entry when there is one,
/// else of the root dict itself (values at that level that are not tensors are passed over). Stored storages
/// are mapped, not copied, and their CRCs are left to Checkpoint::verify(); deflated ones are read into
/// memory, 1 GiB in all. Offsets and strides are honoured and bounded by the storage.
///
/// Nothing is ever imported or called (spec hamer 2.1). What the state_dict reaches may only name globals of
/// an allow-list (tensor rebuilding, storages, dtypes, OrderedDict, set); anything else is an Error
/// (kUnsupported) with byte offset and name. The other parts of a Lightning checkpoint (optimizer,
/// hyper_parameters) may name unknown classes, which stay opaque, but no global of
/// pickle::is_dangerous_global. Legacy files (tar, or a bare pickle) are an Error (kUnsupported) that says
/// how to re-save them.
std::unique_ptr<Checkpoint> open_torch_archive(const std::string& path);
/// The same over bytes in memory, which must outlive the result.
std::unique_ptr<Checkpoint> parse_torch_archive(std::span<const std::byte> bytes, const std::string& name);
/// True for files that torch.save wrote before 1.6 or with `_use_new_zipfile_serialization=False`:
/// open_torch_archive() throws for them, with advice.
bool is_legacy_torch_file(std::span<const std::byte> bytes);

/// Writes a state_dict as torch.save would: `archive/data.pkl` (protocol 2), `archive/data/N` stored and
/// 64-byte aligned, `archive/version`; zip64 where needed; atomically. Tensors are declared first and then
/// streamed, like SafetensorsWriter. The folder inside the archive is always "archive", so that equal
/// contents give equal files.
class TorchArchiveWriter {
 public:
  struct Entry {
    std::string name;
    DType dtype;
    Shape shape;
  };
  /// Throws Error: kFormat on a repeated or empty name or one that is not UTF-8, kUnsupported on a dtype
  /// torch has no storage class for (u16, u32, u64), kIo when the file cannot be made.
  TorchArchiveWriter(const std::string& path, const std::vector<Entry>& entries);
  ~TorchArchiveWriter();
  /// Appends the next bytes of data, in the order of declaration; a tensor may come in several pieces.
  void write(std::span<const std::byte> bytes);
  /// Throws Error (kFormat) unless exactly the declared number of bytes was written.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinew

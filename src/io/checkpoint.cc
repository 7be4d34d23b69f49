#include "io/checkpoint.h"

#include "base/error.h"
#include "io/bytes.h"
#include "io/mapped_file.h"
#include "io/npz.h"
#include "io/safetensors.h"
#include "io/tflite.h"
#include "io/torch_archive.h"
#include "io/zip_archive.h"

namespace sinew {
namespace {

enum class Format { kSafetensors, kTorch, kNpz, kTflite };

Format sniff(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file.bytes();
  if (is_legacy_torch_file(bytes)) return Format::kTorch;  // whose reader says what to do about it
  if (as_text(bytes).starts_with("PK")) {
    const ZipArchive zip(bytes, path);
    for (const ZipArchive::Entry& entry : zip.entries()) {
      if (entry.name == "data.pkl" || entry.name.ends_with("/data.pkl")) return Format::kTorch;
    }
    return Format::kNpz;
  }
  if (is_tflite(bytes)) return Format::kTflite;
  // safetensors has no magic number: a header length, and a JSON object.
  if (bytes.size() > 8 && as_text(bytes)[8] == '{') return Format::kSafetensors;
  if (as_text(bytes).starts_with('\x80')) {
    throw Error(ErrorCode::kFormat, fmt::format("{}: is a bare pickle, not a checkpoint", path),
                "save it with torch.save (1.6 or later) or as safetensors");
  }
  throw fail(
      ErrorCode::kFormat,
      "{}: is neither safetensors nor a torch zip archive nor npz nor tflite ({} bytes, starting with {})",
      path, bytes.size(), quoted(as_text(bytes).substr(0, 8)));
}

}  // namespace

const TensorView* Checkpoint::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& Checkpoint::get(const std::string& name) const {
  const TensorView* view = find(name);
  if (view == nullptr) {
    throw fail(ErrorCode::kMismatch, "{}: no tensor {} among its {}", path_, quoted(name), tensors_.size());
  }
  return *view;
}

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  switch (sniff(path)) {
    case Format::kTorch:
      return open_torch_archive(path);
    case Format::kNpz:
      return open_npz(path);
    case Format::kTflite:
      return open_tflite_checkpoint(path);
    case Format::kSafetensors:
      break;
  }
  return open_safetensors(path);
}

}  // namespace sinew

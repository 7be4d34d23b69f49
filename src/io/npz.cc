#include "io/npz.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "io/bytes.h"
#include "io/mapped_file.h"
#include "io/npy_header.h"
#include "io/zip_archive.h"

namespace sinew {
namespace {

class Npz final : public Checkpoint {
 public:
  Npz(MappedFile file, std::span<const std::byte> bytes, const std::string& name, std::size_t max_bytes)
      : Checkpoint(name), file_(std::move(file)), zip_(bytes, name), budget_(max_bytes) {
    for (const ZipArchive::Entry& entry : zip_.entries()) add(entry);
  }

  std::string_view format() const override { return "npz"; }
  void release(const TensorView& view) const override { file_.release(view.data, view.bytes()); }
  void verify() const override {
    for (const ZipArchive::Entry& entry : zip_.entries()) zip_.check_crc(entry);
  }

 private:
  void add(const ZipArchive::Entry& entry);

  MappedFile file_;  // empty when the bytes are the caller's
  ZipArchive zip_;
  std::vector<std::vector<std::byte>>
      held_;  // inflated or swapped arrays; moving a vector leaves its bytes in place
  std::uint64_t budget_;
};

void reverse_items(std::span<std::byte> bytes, std::size_t item) {
  for (std::size_t at = 0; at + item <= bytes.size(); at += item) {
    std::reverse(bytes.data() + at, bytes.data() + at + item);
  }
}

void Npz::add(const ZipArchive::Entry& entry) {
  const std::string where = fmt::format("{}: {}", path_, quoted(entry.name));
  constexpr std::string_view kSuffix = ".npy";
  if (!entry.name.ends_with(kSuffix))
    throw fail(ErrorCode::kFormat, "{}: expected only .npy arrays in an npz", where);
  const NpyHeader header =
      read_npy_header([&](std::size_t count) { return zip_.read_prefix(entry, count); }, where);
  const auto data = checked_mul<std::uint64_t>(header.shape.count(), size_of(header.dtype));
  const auto total = data ? checked_add<std::uint64_t>(*data, header.data_offset) : std::nullopt;
  if (!total || *total != entry.size) {
    throw fail(ErrorCode::kFormat, "{}: holds {} bytes, and its header declares {} of {} elements", where,
               entry.size, to_string(header.dtype), to_string(header.shape));
  }
  std::span<const std::byte> bytes;
  if (entry.method == 0 && !header.big_endian) {
    bytes = zip_.stored(entry);
  } else {
    if (entry.size > budget_) {
      throw fail(ErrorCode::kLimit, "{}: {} bytes to inflate or swap, {} are left of the bound", where,
                 entry.size, budget_);
    }
    budget_ -= entry.size;
    std::vector<std::byte>& held = held_.emplace_back(zip_.read(entry, entry.size));
    if (header.big_endian) reverse_items(std::span(held).subspan(header.data_offset), size_of(header.dtype));
    bytes = held;
  }
  const TensorView view(header.dtype, header.shape, header.strides(), bytes.data() + header.data_offset);
  tensors_.emplace(entry.name.substr(0, entry.name.size() - kSuffix.size()), view);
}

}  // namespace

std::unique_ptr<Checkpoint> open_npz(const std::string& path, std::size_t max_bytes) {
  MappedFile file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file.bytes();
  return std::make_unique<Npz>(std::move(file), bytes, path, max_bytes);
}

std::unique_ptr<Checkpoint> parse_npz(std::span<const std::byte> bytes, const std::string& name,
                                      std::size_t max_bytes) {
  return std::make_unique<Npz>(MappedFile(), bytes, name, max_bytes);
}

}  // namespace sinew

#include "io/npz_writer.h"

#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/bytes.h"

namespace sinew {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kMostBytes = 0xffffffff;  // of a zip without zip64
constexpr std::size_t kMostMembers = 0xffff - 1;
constexpr std::uint16_t kVersion = 20;      // stored members need no more
constexpr std::uint16_t kDate = 0x21;       // 1980-01-01, the zip epoch: equal contents give equal files
constexpr std::uint16_t kPadding = 0x4246;  // the id of torch's padding field, which zip readers skip

/// Little-endian integers and text, one after another.
class Record {
 public:
  Record& u16(std::uint64_t value) { return put(value, 2); }
  Record& u32(std::uint64_t value) { return put(value, 4); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  std::string bytes_;
};

std::string_view descr(DType dtype, const std::string& name) {
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kU8:
      return "|u1";
    case DType::kI8:
      return "|i1";
    case DType::kU16:
      return "<u2";
    case DType::kI16:
      return "<i2";
    case DType::kF16:
      return "<f2";
    case DType::kU32:
      return "<u4";
    case DType::kI32:
      return "<i4";
    case DType::kF32:
      return "<f4";
    case DType::kU64:
      return "<u8";
    case DType::kI64:
      return "<i8";
    case DType::kF64:
      return "<f8";
    case DType::kBF16:
      break;
  }
  throw fail(ErrorCode::kUnsupported, "array {}: npz cannot hold {}", quoted(name), to_string(dtype));
}

/// The head of a .npy file of version 1.0, 64 bytes or a multiple.
std::string npy_head(const TensorView& array, const std::string& name) {
  std::string shape;
  for (const std::int64_t extent : array.shape.dims()) shape += fmt::format("{}, ", extent);
  // (3,) for one axis, (3, 4) for more: as NumPy writes them.
  if (array.shape.rank() == 1) shape.pop_back();
  if (array.shape.rank() > 1) shape.resize(shape.size() - 2);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 descr(array.dtype, name), shape);
  constexpr std::size_t kBefore = 10;  // magic, version, length
  const std::size_t whole = round_up<std::size_t>(kBefore + text.size() + 1, kAlignment);
  text.resize(whole - kBefore - 1, ' ');
  text += '\n';
  return Record().text("\x93NUMPY").u16(1).u16(text.size()).text(text).bytes();
}

std::uint32_t crc_of(std::string_view a, std::string_view b) {
  uLong crc = ::crc32_z(0, reinterpret_cast<const Bytef*>(a.data()), a.size());
  crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(b.data()), b.size());
  return static_cast<std::uint32_t>(crc);
}

}  // namespace

NpzWriter::NpzWriter(const std::string& path) : path_(path), file_(path) {}

void NpzWriter::put(std::string_view bytes) {
  file_.write(bytes);
  position_ += bytes.size();
}

void NpzWriter::check_name(const std::string& name) {
  const bool plain =
      std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != '\\'; });
  if (name.empty() || !plain || name.size() > 255) {
    throw fail(ErrorCode::kUsage, "{}: {} is no name for an array", path_, quoted(name));
  }
  if (!names_.insert(name).second) {
    throw fail(ErrorCode::kUsage, "{}: array {} is added twice", path_, quoted(name));
  }
}

void NpzWriter::add(const std::string& name, const TensorView& array) {
  check_name(name);
  assert(array.contiguous());
  const std::string head = npy_head(array, name);
  const std::string_view data(reinterpret_cast<const char*>(array.data), array.bytes());
  const std::string file_name = name + ".npy";
  const std::uint64_t unpadded = position_ + 30 + file_name.size() + 4;
  const std::uint64_t padding = round_up(unpadded, kAlignment) - unpadded;
  const auto size = checked_add<std::uint64_t>(head.size(), data.size());
  const auto end = size ? checked_add<std::uint64_t>(*size, unpadded + padding) : std::nullopt;
  if (!end || *end > kMostBytes || members_.size() >= kMostMembers) {
    throw fail(ErrorCode::kLimit, "{}: array {} makes the archive larger than 4 GB or {} arrays", path_,
               quoted(name), kMostMembers);
  }
  const Member member = {file_name, static_cast<std::uint32_t>(*size), crc_of(head, data),
                         static_cast<std::uint32_t>(position_)};
  Record local;
  local.u32(0x04034b50).u16(kVersion).u16(0).u16(0).u16(0).u16(kDate);  // flags, method, time, date
  local.u32(member.crc).u32(member.size).u32(member.size);
  local.u16(file_name.size()).u16(padding + 4).text(file_name);
  local.u16(kPadding).u16(padding).text(std::string(padding, '\0'));
  put(local.bytes());
  put(head);
  put(data);
  members_.push_back(member);
}

void NpzWriter::commit() {
  Record directory;
  for (const Member& member : members_) {
    directory.u32(0x02014b50).u16(kVersion).u16(kVersion).u16(0).u16(0).u16(0).u16(kDate);
    directory.u32(member.crc).u32(member.size).u32(member.size).u16(member.name.size());
    // No extra field, comment, disk, attributes.
    directory.u16(0).u16(0).u16(0).u16(0).u32(0).u32(member.offset).text(member.name);
  }
  const std::uint64_t start = position_;
  const std::uint64_t size = directory.bytes().size();
  if (start + size > kMostBytes) throw fail(ErrorCode::kLimit, "{}: larger than 4 GB", path_);
  put(directory.bytes());
  put(Record()
          .u32(0x06054b50)
          .u16(0)
          .u16(0)
          .u16(members_.size())
          .u16(members_.size())
          .u32(size)
          .u32(start)
          .u16(0)
          .bytes());
  file_.commit();
}

}  // namespace sinew

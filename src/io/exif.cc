#include "io/exif.h"

#include <cstdint>
#include <optional>

namespace sinew {
namespace {

constexpr std::uint16_t kTiffMagic = 42;
constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kTypeShort = 3;
constexpr std::uint16_t kTypeLong = 4;
constexpr std::size_t kEntryBytes = 12;  // tag u16, type u16, count u32, value or its offset u32

/// Integers of either byte order; nothing when they would lie outside the block.
class TiffBytes {
 public:
  explicit TiffBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void set_big_endian(bool big_endian) { big_endian_ = big_endian; }

  std::optional<std::uint16_t> u16(std::size_t at) const {
    const auto value = integer(at, 2);
    if (!value) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  }
  std::optional<std::uint32_t> u32(std::size_t at) const { return integer(at, 4); }

 private:
  std::optional<std::uint32_t> integer(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = at + (big_endian_ ? i : size - 1 - i);
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[from]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  bool big_endian_ = false;
};

}  // namespace

int exif_orientation(std::span<const std::byte> tiff) {
  constexpr int kUpright = 1;
  TiffBytes bytes(tiff);
  const auto order = bytes.u16(0);  // "II" or "MM", the same in either order
  if (!order || (*order != 0x4949 && *order != 0x4D4D)) return kUpright;
  bytes.set_big_endian(*order == 0x4D4D);
  const auto magic = bytes.u16(2);
  const auto directory = bytes.u32(4);
  if (!magic || *magic != kTiffMagic || !directory) return kUpright;
  const auto entries = bytes.u16(*directory);
  if (!entries) return kUpright;
  for (std::size_t i = 0; i < *entries; ++i) {
    const std::size_t at = std::size_t{*directory} + 2 + i * kEntryBytes;
    const auto tag = bytes.u16(at);
    if (!tag) return kUpright;
    if (*tag != kOrientationTag) continue;
    const auto type = bytes.u16(at + 2);
    std::optional<std::uint32_t> value;
    if (type == kTypeShort) value = bytes.u16(at + 8);
    if (type == kTypeLong) value = bytes.u32(at + 8);
    return value && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : kUpright;
  }
  return kUpright;
}

}  // namespace sinew

// Builds zip archives for tests, with every field open to lies.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinew {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// What one entry writes into its headers. Unset fields tell the truth.
struct TestZipEntry {
  std::string name;
  std::string contents;
  bool deflate = false;
  std::uint16_t flags = 0;
  bool zip64 = false;                 // sizes and offset through the zip64 extra field
  bool true_compressed_size = false;  // lies about the size leave the compressed size alone
  std::optional<std::string> local_name;
  std::optional<std::uint16_t> local_method, local_flags, central_method;
  std::optional<std::uint32_t> local_crc, central_crc;
  std::optional<std::uint64_t> local_size, central_size, central_offset;
};

class TestZip {
 public:
  TestZip& add(std::string name, std::string contents, bool deflate = false) {
    TestZipEntry entry;
    entry.name = std::move(name);
    entry.contents = std::move(contents);
    entry.deflate = deflate;
    return add(std::move(entry));
  }
  TestZip& add(TestZipEntry entry) {
    entries_.push_back(std::move(entry));
    return *this;
  }

  std::optional<std::uint64_t> count, directory_size, directory_offset;  // lies for the end record
  std::uint16_t disk = 0;
  bool zip64 = false;  // with zip64 end record and locator
  std::string comment;

  std::string build() const {
    std::string out, directory;
    for (const TestZipEntry& entry : entries_) append_entry(entry, out, directory);
    const std::uint64_t where = directory_offset.value_or(out.size());
    const std::uint64_t size = directory_size.value_or(directory.size());
    const std::uint64_t entries = count.value_or(entries_.size());
    out += directory;
    if (zip64) {
      const std::uint64_t at = out.size();
      put<std::uint32_t>(out, 0x06064b50);
      put<std::uint64_t>(out, 44);
      put<std::uint32_t>(out, 0);
      put<std::uint32_t>(out, disk);
      put<std::uint32_t>(out, disk);
      put<std::uint64_t>(out, entries);
      put<std::uint64_t>(out, entries);
      put<std::uint64_t>(out, size);
      put<std::uint64_t>(out, where);
      put<std::uint32_t>(out, 0x07064b50);
      put<std::uint32_t>(out, disk);
      put<std::uint64_t>(out, at);
      put<std::uint32_t>(out, disk + 1U);
    }
    put<std::uint32_t>(out, 0x06054b50);
    put<std::uint16_t>(out, disk);
    put<std::uint16_t>(out, disk);
    put<std::uint16_t>(out, zip64 ? 0xffff : entries);
    put<std::uint16_t>(out, zip64 ? 0xffff : entries);
    put<std::uint32_t>(out, zip64 ? 0xffffffff : size);
    put<std::uint32_t>(out, zip64 ? 0xffffffff : where);
    put<std::uint16_t>(out, comment.size());
    return out + comment;
  }

  static std::string deflated(std::string_view contents) {
    z_stream stream{};
    if (::deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::runtime_error("zlib");
    std::string out(::deflateBound(&stream, contents.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
    stream.avail_in = static_cast<uInt>(contents.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = ::deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    ::deflateEnd(&stream);
    if (status != Z_STREAM_END) throw std::runtime_error("zlib");
    return out;
  }

 private:
  template <typename T>
  static void put(std::string& out, std::uint64_t value) {
    const auto exact = static_cast<T>(value);
    out.append(reinterpret_cast<const char*>(&exact), sizeof(T));
  }

  static void append_entry(const TestZipEntry& entry, std::string& out, std::string& directory) {
    const std::string data = entry.deflate ? deflated(entry.contents) : entry.contents;
    const std::uint16_t method = entry.deflate ? 8 : 0;
    const auto crc = static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(entry.contents.data()), entry.contents.size()));
    const std::uint64_t offset = out.size();
    const std::uint64_t local_size = entry.local_size.value_or(entry.contents.size());
    const std::uint64_t central_size = entry.central_size.value_or(entry.contents.size());
    const auto compressed = [&](std::uint64_t size) {
      return entry.true_compressed_size ? data.size() : size - entry.contents.size() + data.size();
    };

    const std::string local_name = entry.local_name.value_or(entry.name);
    put<std::uint32_t>(out, 0x04034b50);
    put<std::uint16_t>(out, 45);
    put<std::uint16_t>(out, entry.local_flags.value_or(entry.flags));
    put<std::uint16_t>(out, entry.local_method.value_or(method));
    put<std::uint32_t>(out, 0);
    put<std::uint32_t>(out, entry.local_crc.value_or(crc));
    put_sizes(out, entry.zip64, local_size, local_size == 0 ? 0 : compressed(local_size));
    put<std::uint16_t>(out, local_name.size());
    put<std::uint16_t>(out, entry.zip64 ? 20 : 0);
    out += local_name;
    if (entry.zip64) {
      put<std::uint32_t>(out, 0x00100001);
      put<std::uint64_t>(out, local_size);
      put<std::uint64_t>(out, compressed(local_size));
    }
    out += data;

    put<std::uint32_t>(directory, 0x02014b50);
    put<std::uint16_t>(directory, 45);
    put<std::uint16_t>(directory, 45);
    put<std::uint16_t>(directory, entry.flags);
    put<std::uint16_t>(directory, entry.central_method.value_or(method));
    put<std::uint32_t>(directory, 0);
    put<std::uint32_t>(directory, entry.central_crc.value_or(crc));
    put_sizes(directory, entry.zip64, central_size, compressed(central_size));
    put<std::uint16_t>(directory, entry.name.size());
    put<std::uint16_t>(directory, entry.zip64 ? 28 : 0);
    put<std::uint16_t>(directory, 0);
    put<std::uint32_t>(directory, 0);
    put<std::uint32_t>(directory, 0);
    const std::uint64_t told_offset = entry.central_offset.value_or(offset);
    put<std::uint32_t>(directory, entry.zip64 ? 0xffffffff : told_offset);
    directory += entry.name;
    if (entry.zip64) {
      put<std::uint32_t>(directory, 0x00180001);
      put<std::uint64_t>(directory, central_size);
      put<std::uint64_t>(directory, compressed(central_size));
      put<std::uint64_t>(directory, told_offset);
    }
  }
  static void put_sizes(std::string& out, bool wide, std::uint64_t size, std::uint64_t compressed) {
    put<std::uint32_t>(out, wide ? 0xffffffff : compressed);
    put<std::uint32_t>(out, wide ? 0xffffffff : size);
  }

  std::vector<TestZipEntry> entries_;
};

}  // namespace sinew

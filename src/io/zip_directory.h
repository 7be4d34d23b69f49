// The records of a zip archive. Private to zip_archive.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/zip_archive.h"

namespace sinew {

struct ZipDirectoryEntry {
  ZipArchive::Entry entry;
  std::uint16_t flags = 0;
  std::uint64_t local_offset = 0;
};

/// The entries in the order of the central directory, each checked against the file, its local header and the
/// others (but for repeated names). Throws Error.
std::vector<ZipDirectoryEntry> read_zip_directory(std::span<const std::byte> bytes, const std::string& file);

}  // namespace sinew

// ZipArchive: directory, local headers, inflation. Any sinew::Error is fine.
#include "base/error.h"
#include "io/zip_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const sinew::ZipArchive zip(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& entry : zip.entries()) {
      if (zip.find(entry.name) != &entry) __builtin_trap();
      try {
        zip.read_prefix(entry, 64);
        if (zip.read(entry, 1 << 20).size() != entry.size) __builtin_trap();
      } catch (const sinew::Error&) {
        continue;
      }
    }
  } catch (const sinew::Error&) {
    return 0;
  }
  return 0;
}

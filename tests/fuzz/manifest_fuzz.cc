// The JSON files of the plan cache: a tier's manifest, and remembered digests. Any sinew::Error is fine; what
// is accepted is written back as it came, names only files of its own folder, and has sizes that hold.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/manifest.h"
#include "plan/remembered_digests.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <typename Parse>
void parse_or_refuse(const Parse& parse) {
  try {
    parse();
  } catch (const sinew::Error& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_or_refuse([&] {
    const sinew::Manifest manifest = sinew::parse_manifest(text, "fuzz");
    require(sinew::to_text(manifest) == text);
    for (const auto& [key, file] : manifest.files) {
      require(file.data_bytes() <= file.file_bytes && (file.file_bytes - file.data_bytes()) % 64 == 0);
      const std::string name = sinew::file_name(key);
      require(name.find('/') == std::string::npos && !name.starts_with('.') && name.size() < 256);
    }
  });
  parse_or_refuse([&] { require(sinew::to_text(sinew::parse_remembered_digests(text, "fuzz")) == text); });
  // Text that comes from names: whatever is written must be taken back.
  const std::string name(text.substr(0, 300));
  require(sinew::decode_text(sinew::encode_text(name)) == name);
  sinew::decode_text(text);
  return 0;
}

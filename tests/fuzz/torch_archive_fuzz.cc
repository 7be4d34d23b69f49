// The torch archive reader, down to the elements of its tensors. Any sinew::Error is fine.
#include <algorithm>
#include <string>

#include "base/error.h"
#include "io/test_zip.h"
#include "io/torch_archive.h"

namespace {

void read(std::span<const std::byte> bytes) {
  try {
    const auto checkpoint = sinew::parse_torch_archive(bytes, "fuzz");
    for (const auto& [name, view] : checkpoint->tensors()) {
      const std::int64_t count = view.shape.count();
      for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 64); ++i) {
        sinew::element(view, i);
        sinew::element(view, count - 1 - i);
      }
      checkpoint->release(view);
    }
    checkpoint->verify();
  } catch (const sinew::Error&) {
    return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(std::as_bytes(std::span(data, size)));
  // The CRC keeps changed pickles out, so the input also serves as the pickle of a sound archive with two
  // storages.
  const std::string pickle(reinterpret_cast<const char*>(data), size);
  const std::string archive = sinew::TestZip()
                                  .add("r/data.pkl", pickle)
                                  .add("r/data/0", std::string(24, '\1'))
                                  .add("r/data/1", "")
                                  .build();
  read(sinew::bytes_of(archive));
  return 0;
}

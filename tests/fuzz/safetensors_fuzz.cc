// Any bytes either load, with every tensor inside the bytes and the data covered exactly, or are a
// sinew::Error.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/safetensors.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check(std::span<const std::byte> bytes) {
  const auto checkpoint = sinew::parse_safetensors(bytes, "fuzz");
  std::size_t covered = 0;
  unsigned sum = 0;
  for (const auto& [name, view] : checkpoint->tensors()) {
    require(view.contiguous() && view.data >= bytes.data());
    require(view.bytes() <= static_cast<std::size_t>(bytes.data() + bytes.size() - view.data));
    covered += view.bytes();
    for (std::size_t i = 0; i < view.bytes(); ++i) sum += std::to_integer<unsigned>(view.data[i]);
    if (view.shape.count() > 0) sum += sinew::element(view, view.shape.count() - 1) > 0 ? 1 : 0;
  }
  [[maybe_unused]] static volatile unsigned sink;
  sink = sum;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  require(covered == bytes.size() - sizeof(length) - length);
}

bool loads(std::span<const std::byte> bytes) {
  try {
    check(bytes);
    return true;
  } catch (const sinew::Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The length field in front is the fuzzer's biggest obstacle: besides the bytes as they are, try the input
  // as a header whose length is right, up to its first newline, with data behind it.
  loads({reinterpret_cast<const std::byte*>(data), size});
  const auto* end = data;
  while (end != data + size && *end != '\n') ++end;
  const auto length = static_cast<std::uint64_t>(end - data);
  std::vector<std::byte> file(8);
  for (int i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(length >> (8 * i));
  const auto* first = reinterpret_cast<const std::byte*>(data);
  file.insert(file.end(), first, first + length);
  if (length < size) file.insert(file.end(), first + length + 1, first + size);
  loads(file);
  return 0;
}

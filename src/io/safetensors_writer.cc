// The writer of safetensors: the header is known before the first byte of data, so tensors stream through.
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/atomic_file.h"
#include "io/printable.h"
#include "io/safetensors.h"
#include "io/safetensors_format.h"

namespace sinew {
namespace {

// One cache line and one AVX-512 register: with it, mapped tensors whose sizes are multiples of 64 stay
// aligned.
constexpr std::size_t kDataAlignment = 64;
// Small tensors come by the hundred; one system call per 1 MiB instead of one per tensor.
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::string quoted(const std::string& path, std::string_view what, std::string_view text) {
  if (!safetensors::valid_utf8(text)) {
    throw fail(ErrorCode::kFormat, "{}: the {} '{}' is not UTF-8", path, what, printable(text));
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::uint64_t bytes_of(const std::string& path, const SafetensorsWriter::Entry& entry) {
  const auto bytes =
      checked_mul<std::uint64_t>(static_cast<std::uint64_t>(entry.shape.count()), size_of(entry.dtype));
  if (!bytes) {
    throw fail(ErrorCode::kLimit, "{}: tensor '{}': shape {} of {} overflows", path, printable(entry.name),
               to_string(entry.shape), to_string(entry.dtype));
  }
  return *bytes;
}

std::string metadata_text(const std::string& path, const std::map<std::string, std::string>& metadata) {
  std::string out = fmt::format("\"{}\":{{", safetensors::kMetadataKey);
  std::string_view comma;
  for (const auto& [key, value] : metadata) {
    out += fmt::format("{}{}:{}", std::exchange(comma, ","), quoted(path, "metadata key", key),
                       quoted(path, "metadata value", value));
  }
  return out + '}';
}

/// Length field and header, padded so that the data starts on a boundary; `total` becomes the size of the
/// data.
std::string make_header(const std::string& path, const std::vector<SafetensorsWriter::Entry>& entries,
                        const std::map<std::string, std::string>& metadata, std::uint64_t& total) {
  std::string text = "{";
  std::string_view comma;
  if (!metadata.empty()) {
    text += metadata_text(path, metadata);
    comma = ",";
  }
  std::set<std::string_view> names;
  total = 0;
  for (const auto& entry : entries) {
    if (entry.name == safetensors::kMetadataKey) {
      throw fail(ErrorCode::kFormat, "{}: '{}' is reserved and cannot name a tensor", path, entry.name);
    }
    if (!names.insert(entry.name).second) {
      throw fail(ErrorCode::kFormat, "{}: tensor '{}' is declared twice", path, printable(entry.name));
    }
    const auto end = checked_add(total, bytes_of(path, entry));
    if (!end) throw fail(ErrorCode::kLimit, "{}: the sizes of the tensors overflow", path);
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        std::exchange(comma, ","), quoted(path, "name", entry.name),
                        safetensors::code_of(entry.dtype), to_string(entry.shape), total, *end);
    total = *end;
  }
  text += '}';
  const std::size_t size =
      round_up(safetensors::kLengthBytes + text.size(), kDataAlignment) - safetensors::kLengthBytes;
  if (size > safetensors::kMaxHeaderBytes) {
    throw fail(ErrorCode::kLimit, "{}: the header would take {} bytes, above the format's bound of {}", path,
               size, safetensors::kMaxHeaderBytes);
  }
  text.resize(size, ' ');
  std::string out(safetensors::kLengthBytes, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(size >> (8 * i) & 0xffU);
  return out + text;
}

}  // namespace

struct SafetensorsWriter::State {
  std::string path;
  AtomicFile file;
  std::vector<std::byte> buffer;
  std::uint64_t expected = 0;
  std::uint64_t written = 0;

  explicit State(const std::string& target) : path(target), file(target) { buffer.reserve(kBufferBytes); }
  void flush() {
    file.write(buffer);
    buffer.clear();
  }
};

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<Entry>& entries,
                                     const std::map<std::string, std::string>& metadata) {
  std::uint64_t total = 0;
  const std::string header = make_header(path, entries, metadata, total);
  state_ = std::make_unique<State>(path);
  state_->expected = total;
  state_->file.write(header);
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  State& s = *state_;
  if (bytes.size() > s.expected - s.written) {
    throw fail(ErrorCode::kFormat, "{}: {} bytes of tensor data were declared, but {} are written", s.path,
               s.expected, s.written + bytes.size());
  }
  if (s.buffer.size() + bytes.size() > kBufferBytes) s.flush();
  if (bytes.size() >= kBufferBytes) {
    s.file.write(bytes);
  } else {
    s.buffer.insert(s.buffer.end(), bytes.begin(), bytes.end());
  }
  s.written += bytes.size();
}

void SafetensorsWriter::commit() {
  State& s = *state_;
  if (s.written != s.expected) {
    throw fail(ErrorCode::kFormat, "{}: {} bytes of tensor data were declared, but {} were written", s.path,
               s.expected, s.written);
  }
  s.flush();
  s.file.commit();
}

void write_safetensors(const std::string& path, const std::map<std::string, TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsWriter::Entry> entries;
  entries.reserve(tensors.size());
  for (const auto& [name, view] : tensors) entries.push_back({name, view.dtype, view.shape});
  SafetensorsWriter writer(path, entries, metadata);
  for (const auto& [name, view] : tensors) {
    if (view.contiguous()) {
      writer.write({view.data, view.bytes()});
    } else {
      const Tensor row_major = convert(view, view.dtype);
      writer.write({row_major.data(), row_major.view().bytes()});
    }
  }
  writer.commit();
}

}  // namespace sinew

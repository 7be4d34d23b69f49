#include "plan/manifest.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "io/json_text.h"
#include "io/printable.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

// One cache line and one AVX-512 register: the data of a mapped file may be used in place.
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLengthBytes = 8;

bool plain_in_text(char c) { return c >= 0x20 && c < 0x7f && c != '%'; }
bool plain_in_file_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

template <typename Plain>
std::string percent_encode(std::string_view text, const Plain& plain) {
  std::string out;
  for (const char c : text) {
    if (plain(c)) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

/// Takes a manifest apart; errors begin with the file and name the tensor.
class Reader {
 public:
  explicit Reader(const std::string& name) : where_(name) {}

  Manifest read(const Json& root) {
    if (!root.is_object()) throw breach("expected an object");
    if (text(root, "format") != kTierFormat)
      throw breach("format is '{}', expected '{}'", printable(text(root, "format")), kTierFormat);
    Manifest out;
    const Json& identity = field(root, "identity");
    if (!identity.is_object()) throw breach("identity must be an object");
    for (const auto& [key, value] : identity.items()) {
      if (!value.is_string()) throw breach("identity '{}' must be text", printable(key));
      out.identity.emplace(decoded(key), decoded(value.get_ref<const std::string&>()));
    }
    const Json& files = field(root, "files");
    if (!files.is_array()) throw breach("files must be a list");
    for (const Json& file : files) read_file(file, out);
    return out;
  }

 private:
  template <typename... Args>
  Error breach(fmt::format_string<Args...> format, Args&&... args) const {
    return {ErrorCode::kFormat, where_ + ": " + fmt::format(format, std::forward<Args>(args)...)};
  }

  const Json& field(const Json& object, const char* key) const {
    const auto at = object.find(key);
    if (at == object.end()) throw breach("has no {}", key);
    return *at;
  }
  const std::string& text(const Json& object, const char* key) const {
    const Json& value = field(object, key);
    if (!value.is_string()) throw breach("{} must be text", key);
    return value.get_ref<const std::string&>();
  }
  std::string decoded(const std::string& text) const {
    auto out = decode_text(text);
    if (!out) throw breach("'{}' is not percent-encoded", printable(text));
    return *std::move(out);
  }

  void read_file(const Json& file, Manifest& out) {
    if (!file.is_object()) throw breach("files must be a list of objects");
    const TierKey key{decoded(text(file, "name")), decoded(text(file, "variant"))};
    const std::string outer = where_;
    where_ += fmt::format(": tensor '{}'", printable(encode_text(to_string(key))));
    TierFile entry;
    const auto dtype = parse_dtype(text(file, "dtype"));
    if (!dtype) throw breach("dtype '{}' is unknown", printable(text(file, "dtype")));
    entry.dtype = *dtype;
    entry.shape = shape(field(file, "shape"));
    const auto data =
        checked_mul<std::uint64_t>(static_cast<std::uint64_t>(entry.shape.count()), size_of(entry.dtype));
    const Json& size = field(file, "file_bytes");
    if (!data || !size.is_number_unsigned() || size.get<std::uint64_t>() < *data ||
        (size.get<std::uint64_t>() - *data) % kAlignment != 0) {
      throw breach("file_bytes does not fit shape {} of {}", to_string(entry.shape), to_string(entry.dtype));
    }
    entry.file_bytes = size.get<std::uint64_t>();
    const auto digest = Digest::parse(text(file, "digest"));
    if (!digest) throw breach("digest must be 32 hexadecimal digits");
    entry.digest = *digest;
    if (text(file, "file") != file_name(key))
      throw breach("file is '{}', expected '{}'", printable(text(file, "file")), file_name(key));
    if (!out.files.emplace(key, entry).second) throw breach("appears twice");
    where_ = outer;
  }

  Shape shape(const Json& value) const {
    if (!value.is_array() || value.size() > Shape::kMaxRank)
      throw breach("shape must be a list of {} numbers at most", Shape::kMaxRank);
    std::vector<std::int64_t> dims;
    for (const Json& dim : value) {
      if (!dim.is_number_unsigned() ||
          dim.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw breach("shape must hold whole numbers below 2^63");
      }
      dims.push_back(dim.get<std::int64_t>());
    }
    try {
      return Shape(dims);
    } catch (const Error& error) {
      throw error.prefixed(where_ + ": ");
    }
  }

  std::string where_;
};

}  // namespace

std::string to_string(const TierKey& key) {
  return key.variant.empty() ? key.name : fmt::format("{} ({})", key.name, key.variant);
}

std::uint64_t TierFile::data_bytes() const {
  return static_cast<std::uint64_t>(shape.count()) * size_of(dtype);
}

std::string to_text(const Manifest& manifest) {
  Json identity = Json::object();
  for (const auto& [key, value] : manifest.identity) identity[encode_text(key)] = encode_text(value);
  Json files = Json::array();
  std::uint64_t bytes = 0;
  for (const auto& [key, file] : manifest.files) {
    const auto dims = file.shape.dims();
    files.push_back({{"name", encode_text(key.name)},
                     {"variant", encode_text(key.variant)},
                     {"file", file_name(key)},
                     {"dtype", to_string(file.dtype)},
                     {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                     {"file_bytes", file.file_bytes},
                     {"digest", file.digest.hex()}});
    bytes += file.file_bytes;
  }
  const Json root = {{"format", kTierFormat},
                     {"identity", std::move(identity)},
                     {"files", std::move(files)},
                     {"file_bytes", bytes}};
  return root.dump(1) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  Manifest out = Reader(name).read(parse_json_text(text, name, kMaxManifestBytes));
  // Repeated keys, other spellings of a number, extra fields: nothing that sinew wrote.
  if (to_text(out) != text) throw fail(ErrorCode::kFormat, "{}: is not as sinew writes it", name);
  return out;
}

std::string marker_text(const Digest& manifest) {
  return fmt::format("{} {}\n", kTierFormat, manifest.hex());
}

std::string difference(const Identity& found, const Identity& expected) {
  for (const auto& [key, value] : expected) {
    const auto at = found.find(key);
    if (at == found.end()) return fmt::format("has no {}, expected '{}'", key, value);
    if (at->second != value)
      return fmt::format("{} is '{}', expected '{}'", key, printable(at->second), value);
  }
  for (const auto& [key, value] : found) {
    if (!expected.contains(key))
      return fmt::format("{} is '{}', expected none", printable(key), printable(value));
  }
  return {};
}

Digest digest_of(const Identity& identity) {
  Digester digester;
  for (const auto& [key, value] : identity) {
    // Lengths, so that no two identities give one text.
    digester.update(fmt::format("{} {} ", key.size(), value.size()));
    digester.update(key);
    digester.update(value);
  }
  return digester.digest();
}

std::string encode_text(std::string_view text) { return percent_encode(text, plain_in_text); }

std::optional<std::string> decode_text(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto high = kDigits.find(text[i + 1]);
    const auto low = kDigits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out += static_cast<char>(high << 4U | low);
    i += 2;
  }
  return out;
}

std::string file_name(const TierKey& key) {
  // With the temporary's ending the name stays below the 255 bytes that file systems take.
  constexpr std::size_t kLongest = 180;
  constexpr std::size_t kKept = 120;
  std::string stem = percent_encode(key.name, plain_in_file_name);
  if (stem.starts_with('.')) stem.replace(0, 1, "%2E");  // hidden files are the tier's own
  if (!key.variant.empty()) stem += '@' + percent_encode(key.variant, plain_in_file_name);
  if (stem.empty() || stem.size() > kLongest) {
    const Digest digest = digest_of(Identity{{key.name, key.variant}});
    stem = fmt::format("{}~{}", stem.substr(0, kKept), digest.hex());
  }
  return stem + ".safetensors";
}

std::string tensor_header(const TierKey& key, DType dtype, const Shape& shape, const Digest& data) {
  const auto quoted = [](std::string_view text) {
    std::string out = "\"";
    for (const char c : encode_text(text)) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + '"';
  };
  // The one name the format keeps for itself; '%' never stands before 5F in encoded text otherwise.
  const std::string name = key.name == "__metadata__" ? "\"%5F_metadata__\"" : quoted(key.name);
  std::string text = fmt::format(
      R"({{"__metadata__":{{"format":"{}","variant":{},"xxh3_128":"{}"}},{}:{{"dtype":"{}","shape":{},"data_offsets":[0,{}]}}}})",
      kTierFormat, quoted(key.variant), data.hex(), name, upper(to_string(dtype)), to_string(shape),
      static_cast<std::uint64_t>(shape.count()) * size_of(dtype));
  text.resize(round_up(kLengthBytes + text.size(), kAlignment) - kLengthBytes, ' ');
  std::string out(kLengthBytes, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(text.size() >> (8 * i) & 0xffU);
  return out + text;
}

}  // namespace sinew

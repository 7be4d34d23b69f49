// What a tier's manifest says, and how its files are named.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "plan/digest.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace sinew {

/// Everything that decides a tier's bytes: format and transform versions, checkpoint digest, policy, options,
/// embodiment, backend, instruction set, library version. Two tiers with one identity hold the same bytes.
using Identity = std::map<std::string, std::string>;

/// A file of a tier. Tensors of the host tier have no variant; on a device a plan tensor may have several
/// forms, each u8 [bytes] under the name its backend gives it.
struct TierKey {
  std::string name;
  std::string variant;
  auto operator<=>(const TierKey&) const = default;
};
/// "name" or "name (variant)", fit for a message.
std::string to_string(const TierKey& key);

struct TierFile {
  DType dtype = DType::kU8;
  Shape shape;
  std::uint64_t file_bytes = 0;  // header and data
  Digest digest;                 // of the whole file
  bool operator==(const TierFile&) const = default;
  /// Of the data, which is the end of the file.
  std::uint64_t data_bytes() const;
};

struct Manifest {
  Identity identity;
  std::map<TierKey, TierFile> files;
};

/// Bumped when the manifest, the marker or the layout of files changes; older tiers are cold.
inline constexpr std::string_view kTierFormat = "sinew-tier-1";
inline constexpr std::size_t kMaxManifestBytes = std::size_t{64} << 20;  // some 200,000 tensors

/// JSON, sorted; the same manifest gives the same bytes everywhere.
std::string to_text(const Manifest& manifest);
/// Takes what to_text() wrote and nothing else. Throws Error (kLimit, kFormat) that begins with `name`, the
/// file.
Manifest parse_manifest(std::string_view text, const std::string& name);
/// The text of the marker that declares a manifest complete.
std::string marker_text(const Digest& manifest);

/// Why a tier of one identity is not one of the other: the first key that differs, with both values; empty
/// when they are equal.
std::string difference(const Identity& found, const Identity& expected);
Digest digest_of(const Identity& identity);

/// Percent-encoding of all but printable ASCII, and of '%': what goes into JSON.
std::string encode_text(std::string_view text);
/// The inverse of encode_text(); nothing for what it never writes.
std::optional<std::string> decode_text(std::string_view text);
/// The name of a key's file: safe on every file system, another for every key, 200 bytes at most.
std::string file_name(const TierKey& key);
/// The head of a key's safetensors file with one tensor, a multiple of 64 bytes long; `data` is the digest of
/// the tensor's bytes. Names are as encode_text() gives them.
std::string tensor_header(const TierKey& key, DType dtype, const Shape& shape, const Digest& data);

}  // namespace sinew

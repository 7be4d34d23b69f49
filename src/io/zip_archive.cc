#include "io/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "io/bytes.h"
#include "io/zip_directory.h"

namespace sinew {
namespace {

using Bytes = std::span<const std::byte>;

// Deflate codes at best 258 bytes in 2 bits: a declared size above 1032 times the compressed one is a lie.
constexpr std::uint64_t kMaxRatio = 1032;

std::uint32_t update_crc(std::uint32_t crc, Bytes bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// A raw deflate stream over bytes that outlive it.
class Inflater {
 public:
  explicit Inflater(Bytes in) : in_(in) {
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw fail(ErrorCode::kLimit, "no memory to inflate");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `out` as far as the stream goes and returns how many bytes that were: fewer at its end or at
  /// damage.
  std::size_t fill(std::span<std::byte> out) {
    constexpr std::size_t kStep = std::size_t{1} << 30;  // zlib counts in 32 bits
    std::size_t written = 0;
    while (written < out.size() && !ended_) {
      const std::size_t give = std::min(kStep, in_.size() - consumed_);
      const std::size_t room = std::min(kStep, out.size() - written);
      stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in_.data() + consumed_));
      stream_.avail_in = static_cast<uInt>(give);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + written);
      stream_.avail_out = static_cast<uInt>(room);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      consumed_ += give - stream_.avail_in;
      written += room - stream_.avail_out;
      ended_ = status == Z_STREAM_END;
      const bool stuck = stream_.avail_in == give && stream_.avail_out == room;
      if (status != Z_OK || stuck) break;
    }
    return written;
  }
  /// The stream reached its own end, and that is also the end of its bytes.
  bool complete() const { return ended_ && consumed_ == in_.size(); }

 private:
  Bytes in_;
  std::size_t consumed_ = 0;
  bool ended_ = false;
  z_stream stream_{};
};

}  // namespace

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  for (ZipDirectoryEntry& found : read_zip_directory(bytes_, name_))
    entries_.push_back(std::move(found.entry));
  index_names();
}

void ZipArchive::index_names() {
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return entries_[a].name < entries_[b].name; });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const std::string& name = entries_[by_name_[i]].name;
    if (name == entries_[by_name_[i - 1]].name) {
      throw fail(ErrorCode::kFormat, "{}: zip entry {} appears twice", name_, quoted(name));
    }
  }
}

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::uint32_t i, std::string_view key) { return entries_[i].name < key; });
  if (at == by_name_.end() || entries_[*at].name != name) return nullptr;
  return &entries_[*at];
}

std::span<const std::byte> ZipArchive::stored(const Entry& entry) const {
  if (entry.method != 0) {
    throw fail(ErrorCode::kUnsupported, "{}: zip entry {} is deflated and cannot be used in place", name_,
               quoted(entry.name));
  }
  return bytes_.subspan(entry.data_offset, entry.size);
}

void ZipArchive::check_ratio(const Entry& entry) const {
  if (entry.method == 0 || entry.size / kMaxRatio <= entry.compressed_size) return;
  throw fail(ErrorCode::kFormat, "{}: zip entry {}: {} compressed bytes cannot inflate to the declared {}",
             name_, quoted(entry.name), entry.compressed_size, entry.size);
}

void ZipArchive::compare_crc(const Entry& entry, std::uint32_t found) const {
  if (found == entry.crc32) return;
  throw Error(ErrorCode::kFormat,
              fmt::format("{}: zip entry {}: CRC of the contents is {:08x}, recorded is {:08x}", name_,
                          quoted(entry.name), found, entry.crc32),
              "the file is damaged: copy or download it again");
}

std::vector<std::byte> ZipArchive::read_prefix(const Entry& entry, std::uint64_t count) const {
  const Bytes data = bytes_.subspan(entry.data_offset, entry.compressed_size);
  count = std::min(count, entry.size);
  if (entry.method == 0) return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count)};
  check_ratio(entry);
  std::vector<std::byte> out(count);
  out.resize(Inflater(data).fill(out));
  return out;
}

std::vector<std::byte> ZipArchive::read(const Entry& entry, std::uint64_t limit) const {
  if (entry.size > limit) {
    throw fail(ErrorCode::kLimit, "{}: zip entry {} holds {} bytes, the bound here is {}", name_,
               quoted(entry.name), entry.size, limit);
  }
  check_ratio(entry);
  std::vector<std::byte> out(entry.size);
  std::span<std::byte> rest(out);
  visit_contents(entry, [&](Bytes piece) {
    std::copy(piece.begin(), piece.end(), rest.begin());
    rest = rest.subspan(piece.size());
  });
  return out;
}

void ZipArchive::check_crc(const Entry& entry) const {
  visit_contents(entry, [](Bytes) {});
}

/// Hands out the contents in pieces that never exceed entry.size together; throws at the end when they are
/// not what the entry declares.
void ZipArchive::visit_contents(const Entry& entry, const std::function<void(Bytes)>& visit) const {
  const Bytes data = bytes_.subspan(entry.data_offset, entry.compressed_size);
  if (entry.method == 0) {
    visit(data);
    return compare_crc(entry, update_crc(0, data));
  }
  Inflater inflater(data);
  std::vector<std::byte> buffer(std::size_t{64} << 10);
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  while (const std::size_t got = inflater.fill(buffer)) {
    const Bytes piece(buffer.data(), got);
    size += got;
    if (size > entry.size) break;
    crc = update_crc(crc, piece);
    visit(piece);
  }
  if (!inflater.complete() || size != entry.size) {
    throw fail(ErrorCode::kFormat,
               "{}: zip entry {}: the deflate stream is damaged or does not hold {} bytes", name_,
               quoted(entry.name), entry.size);
  }
  compare_crc(entry, crc);
}

}  // namespace sinew

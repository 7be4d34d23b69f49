#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/atomic_file.h"
#include "io/bytes.h"
#include "io/pickle.h"
#include "io/torch_archive.h"

namespace sinew {
namespace {

// Storages start on a cache line, as torch's own do, so that they can be used where they are mapped.
constexpr std::uint64_t kAlignment = 64;
constexpr std::uint32_t kSee64 = 0xffffffff;  // "the real value is in the zip64 record"
constexpr std::uint16_t kZip64Version = 45;
constexpr std::uint16_t kPlainVersion = 20;
constexpr std::uint16_t kDate = 0x21;  // 1980-01-01, the zip epoch: equal contents give equal files
constexpr std::size_t kCrcInLocalHeader = 14;

std::string_view storage_class(DType dtype, const std::string& tensor) {
  switch (dtype) {
    case DType::kF32:
      return "FloatStorage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kBF16:
      return "BFloat16Storage";
    case DType::kF64:
      return "DoubleStorage";
    case DType::kI64:
      return "LongStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI16:
      return "ShortStorage";
    case DType::kI8:
      return "CharStorage";
    case DType::kU8:
      return "ByteStorage";
    case DType::kBool:
      return "BoolStorage";
    default:
      break;
  }
  throw fail(ErrorCode::kUnsupported, "tensor {}: torch archives cannot hold {}", quoted(tensor),
             to_string(dtype));
}

/// Appends little-endian integers.
class Record {
 public:
  template <typename T>
  Record& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

/// The protocol-2 pickle of an OrderedDict of tensors.
class StateDictPickle {
 public:
  explicit StateDictPickle(const std::vector<TorchArchiveWriter::Entry>& entries) {
    out_.text("\x80\x02");
    ordered_dict();
    out_.text("(");
    for (std::size_t i = 0; i < entries.size(); ++i) tensor(entries[i], i);
    out_.text("u.");
  }
  const std::string& bytes() const { return out_.bytes(); }

 private:
  /// A global, by memo key from its second use on.
  void global(std::string_view module, std::string_view name) {
    const std::string line = fmt::format("c{}\n{}\n", module, name);
    const auto [known, fresh] = globals_.emplace(line, static_cast<std::uint8_t>(globals_.size()));
    if (fresh) {
      out_.text(line).text("q").put(known->second);
    } else {
      out_.text("h").put(known->second);
    }
  }
  void ordered_dict() {
    global("collections", "OrderedDict");
    out_.text(")R");
  }
  void string(std::string_view text) {
    out_.text("X").put(static_cast<std::uint32_t>(text.size())).text(text);
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value < 0x100) {
      out_.text("K").put(static_cast<std::uint8_t>(value));
    } else if (value >= 0 && value < 0x10000) {
      out_.text("M").put(static_cast<std::uint16_t>(value));
    } else if (value >= 0 && value < 0x80000000) {
      out_.text("J").put(static_cast<std::int32_t>(value));
    } else {
      out_.text("\x8a\x08").put(value);
    }
  }
  void integers(std::span<const std::int64_t> values) {
    out_.text("(");
    for (const std::int64_t value : values) integer(value);
    out_.text("t");
  }
  void tensor(const TorchArchiveWriter::Entry& entry, std::size_t index) {
    string(entry.name);
    global("torch._utils", "_rebuild_tensor_v2");
    out_.text("((");
    string("storage");
    global("torch", storage_class(entry.dtype, entry.name));
    string(std::to_string(index));
    string("cpu");
    integer(entry.shape.count());
    out_.text("tQ");
    integer(0);  // storage offset
    integers(entry.shape.dims());
    const Strides strides = contiguous_strides(entry.shape);
    integers(std::span(strides).first(static_cast<std::size_t>(entry.shape.rank())));
    out_.text("\x89");  // requires_grad
    ordered_dict();     // backward hooks
    out_.text("tR");
  }

  Record out_;
  std::map<std::string, std::uint8_t> globals_;  // at most two and the ten storage classes
};

}  // namespace

struct TorchArchiveWriter::State {
  struct Member {
    std::string name;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // of the local header
    std::uint32_t crc = 0;
  };

  State(const std::string& target, const std::vector<Entry>& tensors) : path(target), file(target) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto bytes = checked_mul<std::uint64_t>(tensors[i].shape.count(), size_of(tensors[i].dtype));
      if (!bytes) throw fail(ErrorCode::kLimit, "{}: tensor {} is too large", path, quoted(tensors[i].name));
      storages.push_back({fmt::format("archive/data/{}", i), *bytes});
    }
  }

  void put(std::span<const std::byte> bytes) {
    file.write(bytes);
    position += bytes.size();
  }
  void begin(Member member);
  void append(std::span<const std::byte> bytes);
  void end();
  void write_whole(const std::string& name, std::string_view contents);
  void finish_full_storages();
  void write_directory();

  std::string path;
  AtomicFile file;
  std::uint64_t position = 0;
  std::vector<Member> storages;
  std::size_t next = 0;         // the storage being written, or the next one
  bool open = false;            // members.back() is being written
  std::uint64_t remaining = 0;  // of the open member
  std::vector<Member> members;  // in the order of the file
};

/// Writes the local header. The CRC is not known yet and is filled in by end().
void TorchArchiveWriter::State::begin(Member member) {
  member.offset = position;
  const bool wide = member.size >= kSee64;
  Record extra;
  if (wide) extra.put<std::uint16_t>(1).put<std::uint16_t>(16).put(member.size).put(member.size);
  const std::uint64_t unpadded = position + 30 + member.name.size() + extra.bytes().size() + 4;
  const std::uint64_t padding = round_up(unpadded, kAlignment) - unpadded;
  extra.text("FB")
      .put(static_cast<std::uint16_t>(padding))
      .text(std::string(padding, 'Z'));  // torch's own padding field
  const std::uint32_t size = wide ? kSee64 : static_cast<std::uint32_t>(member.size);
  Record header;
  header.put<std::uint32_t>(0x04034b50).put(wide ? kZip64Version : kPlainVersion);
  header.put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint16_t>(0).put(
      kDate);  // flags, method, time, date
  header.put<std::uint32_t>(0).put(size).put(size);
  header.put(static_cast<std::uint16_t>(member.name.size()))
      .put(static_cast<std::uint16_t>(extra.bytes().size()));
  header.text(member.name).text(extra.bytes());
  put(header.span());
  assert(position % kAlignment == 0);
  remaining = member.size;
  open = true;
  members.push_back(std::move(member));
}

void TorchArchiveWriter::State::append(std::span<const std::byte> bytes) {
  assert(open && bytes.size() <= remaining);
  std::uint32_t& crc = members.back().crc;
  crc =
      static_cast<std::uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  put(bytes);
  remaining -= bytes.size();
}

void TorchArchiveWriter::State::end() {
  assert(open && remaining == 0);
  const Member& member = members.back();
  file.write_at(member.offset + kCrcInLocalHeader, std::as_bytes(std::span(&member.crc, 1)));
  open = false;
}

void TorchArchiveWriter::State::write_whole(const std::string& name, std::string_view contents) {
  begin({name, contents.size()});
  append(std::as_bytes(std::span(contents)));
  end();
}

/// Moves on to the next storage that still wants bytes; empty tensors want none.
void TorchArchiveWriter::State::finish_full_storages() {
  while (true) {
    if (open && remaining == 0) {
      end();
      ++next;
    }
    if (open || next == storages.size()) return;
    begin(storages[next]);
  }
}

void TorchArchiveWriter::State::write_directory() {
  const std::uint64_t start = position;
  for (const Member& member : members) {
    Record extra;
    if (member.size >= kSee64) extra.put(member.size).put(member.size);
    if (member.offset >= kSee64) extra.put(member.offset);
    const auto extra_size = static_cast<std::uint16_t>(extra.bytes().size());
    const auto narrow = [](std::uint64_t value) {
      return value >= kSee64 ? kSee64 : static_cast<std::uint32_t>(value);
    };
    Record entry;
    entry.put<std::uint32_t>(0x02014b50)
        .put(kZip64Version)
        .put(extra_size == 0 ? kPlainVersion : kZip64Version);
    entry.put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint16_t>(0).put(kDate);
    entry.put(member.crc).put(narrow(member.size)).put(narrow(member.size));
    entry.put(static_cast<std::uint16_t>(member.name.size()));
    entry.put(static_cast<std::uint16_t>(extra_size == 0 ? 0 : extra_size + 4));
    entry.put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint16_t>(0).put<std::uint32_t>(0);
    entry.put(narrow(member.offset)).text(member.name);
    if (extra_size != 0) entry.put<std::uint16_t>(1).put(extra_size).text(extra.bytes());
    put(entry.span());
  }
  const std::uint64_t size = position - start;
  // Always zip64, as torch does: one form for every size, and readers of it are tested by every small file.
  Record end;
  const std::uint64_t end64 = position;
  end.put<std::uint32_t>(0x06064b50).put<std::uint64_t>(44).put(kZip64Version).put(kZip64Version);
  end.put<std::uint32_t>(0).put<std::uint32_t>(0);
  end.put<std::uint64_t>(members.size()).put<std::uint64_t>(members.size()).put(size).put(start);
  end.put<std::uint32_t>(0x07064b50).put<std::uint32_t>(0).put(end64).put<std::uint32_t>(1);
  const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(members.size(), 0xffff));
  end.put<std::uint32_t>(0x06054b50).put<std::uint16_t>(0).put<std::uint16_t>(0).put(count).put(count);
  end.put(static_cast<std::uint32_t>(std::min<std::uint64_t>(size, kSee64)));
  end.put(static_cast<std::uint32_t>(std::min<std::uint64_t>(start, kSee64))).put<std::uint16_t>(0);
  put(end.span());
}

TorchArchiveWriter::TorchArchiveWriter(const std::string& path, const std::vector<Entry>& entries) {
  std::set<std::string_view> names;
  for (const Entry& entry : entries) {
    const bool good = !entry.name.empty() && pickle::is_utf8(entry.name);
    if (!good) throw fail(ErrorCode::kFormat, "{}: {} is no tensor name", path, quoted(entry.name));
    if (!names.insert(entry.name).second) {
      throw fail(ErrorCode::kFormat, "{}: tensor {} is declared twice", path, quoted(entry.name));
    }
  }
  const StateDictPickle pickled(entries);  // before the file is made: it refuses dtypes
  state_ = std::make_unique<State>(path, entries);
  state_->write_whole("archive/data.pkl", pickled.bytes());
  state_->finish_full_storages();
}

TorchArchiveWriter::~TorchArchiveWriter() = default;

void TorchArchiveWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!state_->open) {
      throw fail(ErrorCode::kFormat, "{}: {} bytes more than the declared tensors hold", state_->path,
                 bytes.size());
    }
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), state_->remaining);
    state_->append(bytes.first(size));
    state_->finish_full_storages();
    bytes = bytes.subspan(size);
  }
}

void TorchArchiveWriter::commit() {
  if (state_->open) {
    throw fail(ErrorCode::kFormat, "{}: storage {} still lacks {} bytes", state_->path, state_->next,
               state_->remaining);
  }
  state_->write_whole("archive/version", "3\n");
  state_->write_directory();
  state_->file.commit();
}

}  // namespace sinew

#include "io/torch_archive.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/bytes.h"
#include "io/mapped_file.h"
#include "io/pickle.h"
#include "io/zip_archive.h"

namespace sinew {
namespace {

using pickle::Kind;
using pickle::Ref;

// Deflated storages have to be held in memory; torch never deflates, so only re-packed archives pay.
constexpr std::uint64_t kMaxInflated = std::uint64_t{1} << 30;

struct TypeName {
  std::string_view name;
  DType dtype;
};
// torch's storage classes and dtype objects.
constexpr TypeName kStorages[] = {
    {"torch.FloatStorage", DType::kF32},     {"torch.HalfStorage", DType::kF16},
    {"torch.BFloat16Storage", DType::kBF16}, {"torch.DoubleStorage", DType::kF64},
    {"torch.LongStorage", DType::kI64},      {"torch.IntStorage", DType::kI32},
    {"torch.ShortStorage", DType::kI16},     {"torch.CharStorage", DType::kI8},
    {"torch.ByteStorage", DType::kU8},       {"torch.BoolStorage", DType::kBool}};
constexpr TypeName kDTypes[] = {
    {"torch.float32", DType::kF32}, {"torch.float16", DType::kF16}, {"torch.bfloat16", DType::kBF16},
    {"torch.float64", DType::kF64}, {"torch.int64", DType::kI64},   {"torch.int32", DType::kI32},
    {"torch.int16", DType::kI16},   {"torch.int8", DType::kI8},     {"torch.uint8", DType::kU8},
    {"torch.bool", DType::kBool},   {"torch.uint16", DType::kU16},  {"torch.uint32", DType::kU32},
    {"torch.uint64", DType::kU64}};
constexpr std::string_view kUntypedStorages[] = {"torch.storage.UntypedStorage", "torch.UntypedStorage"};
constexpr std::string_view kRebuildV2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildV3 =
    "torch._utils._rebuild_tensor_v3";  // dtypes that have no storage class
constexpr std::string_view kParameters[] = {"torch._utils._rebuild_parameter",
                                            "torch._utils._rebuild_parameter_with_state"};
constexpr std::string_view kOthers[] = {
    "collections.OrderedDict",
    "torch.Size",
    "torch.device",
    "builtins.set",
    "__builtin__.set",
    "builtins.frozenset",
    "__builtin__.frozenset",
    "_codecs.encode"};  // the last is how Python 3 writes bytes for protocol 2

std::optional<DType> dtype_of(std::string_view name, std::span<const TypeName> types) {
  for (const TypeName& type : types) {
    if (type.name == name) return type.dtype;
  }
  return std::nullopt;
}

template <typename List>
bool contains(const List& list, std::string_view name) {
  for (const std::string_view entry : list) {
    if (entry == name) return true;
  }
  return false;
}

/// What a state_dict may name. Storages of other types (complex, quantised) are let through here, so that the
/// error can name the tensor.
bool is_state_dict_global(std::string_view name) {
  const bool storage =
      name.starts_with("torch.") && name.ends_with("Storage") && name.find('.', 6) == std::string_view::npos;
  return storage || name == kRebuildV2 || name == kRebuildV3 || contains(kParameters, name) ||
         contains(kOthers, name) || contains(kUntypedStorages, name) || dtype_of(name, kDTypes).has_value();
}

bool is_harmless(std::string_view name) { return !pickle::is_dangerous_global(name); }

bool is_dict(Ref value) { return value->kind == Kind::kDict || value->is_call_of("collections.OrderedDict"); }

/// Key and value of every item, also of an OrderedDict that Python 2 wrote as a call on a list of pairs.
std::vector<std::pair<Ref, Ref>> items_of(Ref dict) {
  auto out = dict->entries;
  if (dict->kind != Kind::kObject || dict->arguments->items.size() != 1) return out;
  for (const Ref pair : dict->arguments->items[0]->items) {
    if (pair->items.size() == 2) out.emplace_back(pair->items[0], pair->items[1]);
  }
  return out;
}

/// The call that rebuilds a tensor, out of its Parameter if it is in one, or null when `value` is no tensor.
Ref tensor_call(Ref value) {
  if (value->kind == Kind::kObject && contains(kParameters, value->callable->text)) {
    if (value->arguments->items.empty()) return nullptr;
    value = value->arguments->items[0];
  }
  return value->is_call_of(kRebuildV2) || value->is_call_of(kRebuildV3) ? value : nullptr;
}

/// One past the last element that a tensor touches, counted in its storage; nothing on overflow. The last
/// element's position bounds all others, since no stride is negative.
std::optional<std::int64_t> end_of(const Shape& shape, std::span<const std::int64_t> strides,
                                   std::int64_t offset) {
  if (shape.count() == 0) return offset;
  std::optional<std::int64_t> end = checked_add<std::int64_t>(offset, 1);
  for (int i = 0; end && i < shape.rank(); ++i) {
    const auto reach = checked_mul(shape[i] - 1, strides[i]);
    end = reach ? checked_add(*end, *reach) : std::nullopt;
  }
  return end;
}

class TorchArchive final : public Checkpoint {
 public:
  TorchArchive(MappedFile file, std::span<const std::byte> bytes, const std::string& name)
      : Checkpoint(name), file_(std::move(file)), zip_(bytes, name) {
    const ZipArchive::Entry& pickled = find_pickle();
    root_ = pickled.name.substr(0, pickled.name.size() - std::string_view("data.pkl").size());
    check_byte_order();
    const pickle::Limits limits;
    const auto contents = zip_.read(pickled, limits.max_bytes);
    const auto document =
        pickle::Document::parse(contents, fmt::format("{}: {}", path_, pickled.name), is_harmless, limits);
    read_root(document);
  }

  std::string_view format() const override { return "torch archive"; }

  void release(const TensorView& view) const override {
    const std::int64_t reach = end_of(view.shape, view.strides, 0).value_or(0);
    file_.release(view.data, static_cast<std::size_t>(reach) * size_of(view.dtype));
  }

  void verify() const override {
    for (const ZipArchive::Entry& entry : zip_.entries()) zip_.check_crc(entry);
  }

 private:
  struct Storage {
    std::span<const std::byte> bytes;
    std::optional<DType> dtype;  // nothing for an untyped one
    std::string key;
  };

  const ZipArchive::Entry& find_pickle() const;
  void check_byte_order() const;
  void read_root(const pickle::Document& document);
  TensorView read_tensor(const std::string& name, Ref call);
  Storage read_storage(const std::string& name, Ref value);
  std::span<const std::byte> storage_bytes(const std::string& name, const ZipArchive::Entry& entry);
  std::vector<std::int64_t> integers(const std::string& name, std::string_view field, Ref value) const;
  std::int64_t integer(const std::string& name, std::string_view field, Ref value) const;

  template <typename... Args>
  Error error(ErrorCode code, const std::string& tensor, fmt::format_string<Args...> format,
              Args&&... args) const {
    return {code, fmt::format("{}: tensor {}: {}", path_, quoted(tensor),
                              fmt::format(format, std::forward<Args>(args)...))};
  }

  MappedFile file_;  // empty when the bytes are the caller's
  ZipArchive zip_;
  std::string root_;                                        // the folder inside the archive, with its slash
  std::map<std::string, std::vector<std::byte>> inflated_;  // by entry name
  std::uint64_t inflated_bytes_ = 0;
};

const ZipArchive::Entry& TorchArchive::find_pickle() const {
  const ZipArchive::Entry* found = nullptr;
  for (const ZipArchive::Entry& entry : zip_.entries()) {
    if (entry.name != "data.pkl" && !entry.name.ends_with("/data.pkl")) continue;
    if (found != nullptr) {
      throw fail(ErrorCode::kFormat, "{}: two pickles, {} and {}, expected one data.pkl", path_,
                 quoted(found->name), quoted(entry.name));
    }
    found = &entry;
  }
  if (found == nullptr)
    throw fail(ErrorCode::kFormat, "{}: a zip archive without data.pkl is no torch file", path_);
  return *found;
}

void TorchArchive::check_byte_order() const {
  const ZipArchive::Entry* entry = zip_.find(root_ + "byteorder");
  if (entry == nullptr) return;  // written since torch 2.1 only
  const auto contents = zip_.read(*entry, 16);
  const std::string_view order = as_text(contents);
  if (order == "little") return;
  if (order == "big")
    throw fail(ErrorCode::kUnsupported, "{}: storages are big-endian, expected little", path_);
  throw fail(ErrorCode::kFormat, "{}: byteorder is {}, expected 'little'", path_, quoted(order));
}

void TorchArchive::read_root(const pickle::Document& document) {
  const Ref root = document.root();
  if (!is_dict(root)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: holds a {}{}, expected a dict of tensors", path_, to_string(root->kind),
                            root->kind == Kind::kObject ? " of " + quoted(root->callable->text) : ""),
                "save the state_dict: torch.save(model.state_dict(), path)");
  }
  Ref tensors = root;
  for (const auto& [key, value] : items_of(root)) {
    if (key->is_text("state_dict")) tensors = value;
  }
  if (!is_dict(tensors)) {
    throw fail(ErrorCode::kFormat, "{}: 'state_dict' is a {}, expected a dict", path_,
               to_string(tensors->kind));
  }
  document.require_globals(tensors, is_state_dict_global,
                           tensors == root ? "a plain state_dict" : "the state_dict");

  std::vector<std::string> passed_over;
  for (const auto& [key, value] : items_of(tensors)) {
    const Ref call = tensor_call(value);
    if (call == nullptr || !key->is_text()) {
      if (passed_over.size() < 8) passed_over.push_back(key->is_text() ? quoted(key->text) : "?");
      continue;
    }
    const TensorView view = read_tensor(key->text, call);
    if (!tensors_.emplace(key->text, view).second)
      throw error(ErrorCode::kFormat, key->text, "appears twice");
  }
  if (tensors_.empty() && !passed_over.empty()) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{}: no tensor at the top level, which has the keys {}", path_,
                            fmt::join(passed_over, ", ")),
                "the state_dict may lie deeper: save it on its own");
  }
}

TensorView TorchArchive::read_tensor(const std::string& name, Ref call) {
  const bool v3 = call->is_call_of(kRebuildV3);
  const auto& arguments = call->arguments->items;
  const std::size_t least = v3 ? 7 : 6;
  if (arguments.size() < least) {
    throw error(ErrorCode::kFormat, name, "rebuilt from {} arguments, expected {} or more", arguments.size(),
                least);
  }
  const Storage storage = read_storage(name, arguments[0]);
  const std::int64_t offset = integer(name, "storage offset", arguments[1]);
  const auto extents = integers(name, "size", arguments[2]);
  const auto steps = integers(name, "stride", arguments[3]);
  if (extents.size() != steps.size()) {
    throw error(ErrorCode::kFormat, name, "{} extents and {} strides", extents.size(), steps.size());
  }

  std::optional<DType> dtype = storage.dtype;
  if (v3 && arguments[6]->kind == Kind::kGlobal) dtype = dtype_of(arguments[6]->text, kDTypes);
  if (!dtype || v3 == storage.dtype.has_value())
    throw error(ErrorCode::kUnsupported, name, "of a dtype that is not read here");

  Shape shape;
  try {
    shape = Shape(extents);
  } catch (const Error& e) {
    throw error(e.code(), name, "{}", e.what());
  }
  const auto held = static_cast<std::int64_t>(storage.bytes.size() / size_of(*dtype));
  const auto end = end_of(shape, steps, offset);
  if (!end || *end > held) {
    throw error(ErrorCode::kFormat, name,
                "size {} with strides [{}] from element {} reaches outside its storage {} of {} elements",
                to_string(shape), fmt::join(steps, ","), offset, storage.key, held);
  }
  Strides strides{};
  std::copy(steps.begin(), steps.end(), strides.begin());
  return {*dtype, shape, strides, storage.bytes.data() + static_cast<std::size_t>(offset) * size_of(*dtype)};
}

/// A storage: the persistent id ('storage', class, key, device, number of elements). The device is where the
/// tensor lived when it was saved, and of no interest here.
TorchArchive::Storage TorchArchive::read_storage(const std::string& name, Ref value) {
  if (value->kind != Kind::kPersistent || value->items[0]->kind != Kind::kTuple ||
      value->items[0]->items.size() < 5) {
    throw error(ErrorCode::kFormat, name, "its storage is a {}, expected a persistent id of five parts",
                to_string(value->kind));
  }
  const auto& id = value->items[0]->items;
  if (!id[0]->is_text("storage") || id[1]->kind != Kind::kGlobal || !id[2]->is_text()) {
    throw error(ErrorCode::kFormat, name, "its persistent id is not ('storage', class, key, device, count)");
  }
  Storage out;
  out.key = quoted(id[2]->text);
  out.dtype = dtype_of(id[1]->text, kStorages);
  const bool untyped = contains(kUntypedStorages, id[1]->text);
  if (!out.dtype && !untyped) {
    throw error(ErrorCode::kUnsupported, name, "its storage class {} is not read here", quoted(id[1]->text));
  }
  const std::int64_t count = integer(name, "storage element count", id[4]);
  const auto bytes =
      checked_mul<std::int64_t>(count, untyped ? 1 : static_cast<std::int64_t>(size_of(*out.dtype)));
  const ZipArchive::Entry* entry = zip_.find(fmt::format("{}data/{}", root_, id[2]->text));
  if (entry == nullptr) throw error(ErrorCode::kFormat, name, "the archive has no storage {}", out.key);
  if (!bytes || static_cast<std::uint64_t>(*bytes) != entry->size) {
    throw error(ErrorCode::kFormat, name, "its storage {} of {} elements has {} bytes in the archive",
                out.key, count, entry->size);
  }
  out.bytes = storage_bytes(name, *entry);
  return out;
}

std::span<const std::byte> TorchArchive::storage_bytes(const std::string& name,
                                                       const ZipArchive::Entry& entry) {
  if (entry.method == 0) return zip_.stored(entry);
  const auto known = inflated_.find(entry.name);
  if (known != inflated_.end()) return known->second;
  if (entry.size > kMaxInflated - inflated_bytes_) {
    throw error(ErrorCode::kLimit, name, "its deflated storage of {} bytes brings the total above {}",
                entry.size, kMaxInflated);
  }
  inflated_bytes_ += entry.size;
  return inflated_.emplace(entry.name, zip_.read(entry, entry.size)).first->second;
}

/// A tuple of non-negative integers, or a torch.Size of one.
std::vector<std::int64_t> TorchArchive::integers(const std::string& name, std::string_view field,
                                                 Ref value) const {
  if (value->is_call_of("torch.Size") && value->arguments->items.size() == 1)
    value = value->arguments->items[0];
  if (value->kind != Kind::kTuple && value->kind != Kind::kList) {
    throw error(ErrorCode::kFormat, name, "its {} is a {}, expected a tuple", field, to_string(value->kind));
  }
  if (value->items.size() > static_cast<std::size_t>(Shape::kMaxRank)) {
    throw error(ErrorCode::kLimit, name, "has {} dimensions, at most {} are read", value->items.size(),
                Shape::kMaxRank);
  }
  std::vector<std::int64_t> out;
  out.reserve(value->items.size());
  for (const Ref item : value->items) out.push_back(integer(name, field, item));
  return out;
}

std::int64_t TorchArchive::integer(const std::string& name, std::string_view field, Ref value) const {
  if (value->kind != Kind::kInt) {
    throw error(ErrorCode::kFormat, name, "its {} is a {}, expected an int", field, to_string(value->kind));
  }
  if (value->integer < 0)
    throw error(ErrorCode::kFormat, name, "its {} is {}, expected >= 0", field, value->integer);
  return value->integer;
}

void refuse_legacy(std::span<const std::byte> bytes, const std::string& name) {
  if (!is_legacy_torch_file(bytes)) return;
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: is in torch's legacy format (before 1.6), expected a zip archive", name),
      "re-save it with torch 1.6 or later: torch.save(torch.load(path, map_location='cpu'), new_path)");
}

}  // namespace

bool is_legacy_torch_file(std::span<const std::byte> bytes) {
  // PROTO 2, LONG1 of ten bytes: torch.serialization.MAGIC_NUMBER 0x1950a86a20f9469cfc6c.
  constexpr std::string_view kMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  const std::string_view text = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 512)));
  return text.starts_with(kMagic) || (text.size() == 512 && text.substr(257, 5) == "ustar");
}

std::unique_ptr<Checkpoint> open_torch_archive(const std::string& path) {
  MappedFile file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file.bytes();
  refuse_legacy(bytes, path);
  return std::make_unique<TorchArchive>(std::move(file), bytes, path);
}

std::unique_ptr<Checkpoint> parse_torch_archive(std::span<const std::byte> bytes, const std::string& name) {
  refuse_legacy(bytes, name);
  return std::make_unique<TorchArchive>(MappedFile(), bytes, name);
}

}  // namespace sinew

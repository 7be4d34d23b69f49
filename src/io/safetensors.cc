// The reader of safetensors. The header is hostile: it is parsed on demand (no tree, nothing recursive,
// memory bounded by the header's own size), every value is visited and checked, and nothing is allocated from
// a number that it states.
#include "io/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/mapped_file.h"
#include "io/printable.h"
#include "io/safetensors_format.h"

namespace sinew {
namespace safetensors {

bool valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

namespace {

namespace ondemand = simdjson::ondemand;
static_assert(std::endian::native == std::endian::little, "tensor data is used in place");

constexpr std::string_view kJsonSpace = " \t\n\r";

/// One tensor as the header states it; offsets are relative to the data section.
struct Stated {
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class HeaderParser {
 public:
  HeaderParser(const std::string& file, std::string_view header, std::uint64_t data_size)
      : file_(file), header_(header), data_size_(data_size) {}

  void parse();
  const std::map<std::string, Stated>& tensors() const { return tensors_; }
  std::map<std::string, std::string>& metadata() { return metadata_; }

 private:
  void parse_tensor(ondemand::value value);
  void parse_metadata(ondemand::value value);
  DType parse_dtype_code(ondemand::value value);
  Shape parse_shape(ondemand::value value);
  void parse_offsets(ondemand::value value, Stated& stated);
  std::uint64_t parse_integer(ondemand::value value, std::string_view field);
  void check_size(const Stated& stated) const;
  void check_coverage() const;

  /// An error that names the file and the tensor at hand.
  template <typename... Args>
  Error breach(fmt::format_string<Args...> format, Args&&... args) const {
    return {ErrorCode::kFormat, where() + fmt::format(format, std::forward<Args>(args)...)};
  }
  std::string where() const {
    if (tensor_.empty()) return fmt::format("{}: header: ", file_);
    return fmt::format("{}: tensor '{}': ", file_, printable(tensor_));
  }
  /// The value of a simdjson result; `what` must be `wanted`.
  template <typename T>
  T take(simdjson::simdjson_result<T> result, std::string_view what, std::string_view wanted) const {
    T value;
    const simdjson::error_code error = std::move(result).get(value);
    if (error == simdjson::INCORRECT_TYPE) throw breach("{} must be {}", what, wanted);
    if (error != simdjson::SUCCESS) throw breach("{}: {}", what, simdjson::error_message(error));
    return value;
  }
  /// The unescaped key of a member of `what`.
  std::string key_of(ondemand::field& field, std::string_view what) const {
    std::string key(take(field.unescaped_key(), what, "an object with string keys"));
    // simdjson 3.0 lets some unpaired surrogates through as bytes that are not UTF-8.
    if (!valid_utf8(key)) throw breach("{} has the key '{}', which is not UTF-8", what, printable(key));
    return key;
  }

  const std::string& file_;
  std::string_view header_;
  std::uint64_t data_size_;
  std::string tensor_;  // the one being parsed, for messages
  std::map<std::string, Stated> tensors_;
  std::map<std::string, std::string> metadata_;
};

void HeaderParser::parse() {
  if (header_.empty() || header_.front() != '{') throw breach("does not start with '{{'");
  header_ = header_.substr(0, header_.find_last_not_of(' ') + 1);
  if (header_.back() != '}') throw breach("does not end with '}}' and spaces");
  // A copy, because simdjson reads up to 32 bytes beyond the text, which may be the end of the mapping.
  const simdjson::padded_string text(header_);
  ondemand::parser parser;
  auto document = take(parser.iterate(text), "the text", "JSON");
  auto root = take(document.get_object(), "the root", "an object");
  bool has_metadata = false;
  for (auto member : root) {
    auto field = take(std::move(member), "the root object", "an object");
    std::string key = key_of(field, "the root object");
    if (key == kMetadataKey) {
      if (has_metadata) throw breach("the key '{}' appears twice", kMetadataKey);
      has_metadata = true;
      parse_metadata(field.value());
    } else {
      // An empty name is legal; only messages have trouble with it.
      tensor_ = std::move(key);
      parse_tensor(field.value());
      tensor_.clear();
    }
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    throw breach("has more text after the end of its object");
  }
  check_coverage();
}

void HeaderParser::parse_metadata(ondemand::value value) {
  for (auto member : take(value.get_object(), kMetadataKey, "an object")) {
    auto field = take(std::move(member), kMetadataKey, "an object");
    std::string key = key_of(field, kMetadataKey);
    const auto text =
        take(field.value().get_string(), fmt::format("{} '{}'", kMetadataKey, printable(key)), "a string");
    if (!valid_utf8(text)) throw breach("{} '{}' is not UTF-8", kMetadataKey, printable(key));
    if (!metadata_.emplace(key, text).second)
      throw breach("{} has the key '{}' twice", kMetadataKey, printable(key));
  }
}

void HeaderParser::parse_tensor(ondemand::value value) {
  if (tensors_.contains(tensor_)) throw breach("the name appears twice");
  Stated stated;
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
  const auto once = [&](bool& seen, std::string_view key) {
    if (std::exchange(seen, true)) throw breach("the key '{}' appears twice", key);
  };
  for (auto member : take(value.get_object(), "its entry", "an object")) {
    auto field = take(std::move(member), "its entry", "an object");
    const std::string key = key_of(field, "its entry");
    if (key == "dtype") {
      once(has_dtype, key);
      stated.dtype = parse_dtype_code(field.value());
    } else if (key == "shape") {
      once(has_shape, key);
      stated.shape = parse_shape(field.value());
    } else if (key == "data_offsets") {
      once(has_offsets, key);
      parse_offsets(field.value(), stated);
    } else {
      throw breach("has the key '{}'; dtype, shape and data_offsets are the only ones", printable(key));
    }
  }
  if (!has_dtype) throw breach("has no dtype");
  if (!has_shape) throw breach("has no shape");
  if (!has_offsets) throw breach("has no data_offsets");
  check_size(stated);
  tensors_.emplace(tensor_, stated);
}

DType HeaderParser::parse_dtype_code(ondemand::value value) {
  const auto code = take(value.get_string(), "dtype", "a string");
  if (const auto dtype = dtype_of(code)) return *dtype;
  if (known_but_unsupported(code)) {
    throw Error(ErrorCode::kUnsupported, where() + fmt::format("dtype {} is not supported", printable(code)));
  }
  throw breach("dtype '{}' is not one of the format's", printable(code));
}

Shape HeaderParser::parse_shape(ondemand::value value) {
  std::vector<std::int64_t> dims;
  std::int64_t product = 1;
  for (auto element : take(value.get_array(), "shape", "an array")) {
    const auto dim = parse_integer(take(element, "shape", "an array of integers"), "shape");
    if (dims.size() == Shape::kMaxRank) throw breach("shape has more than {} dimensions", Shape::kMaxRank);
    if (dim > std::numeric_limits<std::int64_t>::max()) throw breach("shape has the dimension {}", dim);
    dims.push_back(static_cast<std::int64_t>(dim));
    // As Shape does: zeros aside, so that strides never overflow either.
    const auto next = checked_mul(product, std::max<std::int64_t>(dims.back(), 1));
    if (!next) throw breach("the product of shape [{}] does not fit in 63 bits", fmt::join(dims, ","));
    product = *next;
  }
  return Shape(dims);
}

void HeaderParser::parse_offsets(ondemand::value value, Stated& stated) {
  std::array<std::uint64_t, 2> offsets{};
  std::size_t count = 0;
  for (auto element : take(value.get_array(), "data_offsets", "an array")) {
    if (count == offsets.size()) throw breach("data_offsets has more than two values");
    offsets[count++] = parse_integer(take(element, "data_offsets", "two integers"), "data_offsets");
  }
  if (count != offsets.size()) throw breach("data_offsets has {} values, expected two", count);
  stated.begin = offsets[0];
  stated.end = offsets[1];
}

/// Stricter than a JSON number: digits only, so that 1e3, 1.0, -0 and 007 mean the same in every reader: an
/// error.
std::uint64_t HeaderParser::parse_integer(ondemand::value value, std::string_view field) {
  std::string_view token = value.raw_json_token();
  token = token.substr(0, token.find_last_not_of(kJsonSpace) + 1);
  std::uint64_t number = 0;
  const char* const end = token.data() + token.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` is the size information
  const auto [stop, error] = std::from_chars(token.data(), end, number);
  if (error != std::errc() || stop != end || (token.size() > 1 && token.front() == '0')) {
    throw breach("{} holds '{}', expected a non-negative integer", field, printable(token, 40));
  }
  return number;
}

void HeaderParser::check_size(const Stated& stated) const {
  const auto [dtype, shape, begin, end] = stated;
  if (begin > end) throw breach("data_offsets [{},{}] run backwards", begin, end);
  if (end > data_size_) {
    throw breach("data_offsets [{},{}] leave the data section, which has {} bytes (is the file truncated?)",
                 begin, end, data_size_);
  }
  const auto wanted = checked_mul<std::uint64_t>(static_cast<std::uint64_t>(shape.count()), size_of(dtype));
  if (!wanted) throw breach("shape {} of {} overflows", to_string(shape), code_of(dtype));
  if (end - begin != *wanted) {
    throw breach("data_offsets [{},{}] hold {} bytes, but shape {} of {} takes {}", begin, end, end - begin,
                 to_string(shape), code_of(dtype), *wanted);
  }
}

/// The tensors, in order of their bytes, must follow each other without hole or overlap up to the end of the
/// file.
void HeaderParser::check_coverage() const {
  using Item = std::pair<const std::string, Stated>;
  std::vector<const Item*> order;
  order.reserve(tensors_.size());
  for (const Item& item : tensors_) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t position = 0;
  const Item* previous = nullptr;
  for (const Item* item : order) {
    const auto& [name, stated] = *item;
    if (stated.begin > position) {
      throw fail(ErrorCode::kFormat,
                 "{}: tensor '{}': a hole lies before it: data bytes {} to {} belong to no tensor", file_,
                 printable(name), position, stated.begin);
    }
    if (stated.begin < position) {
      throw fail(ErrorCode::kFormat, "{}: tensor '{}': data_offsets [{},{}] overlap tensor '{}'", file_,
                 printable(name), stated.begin, stated.end, printable(previous->first));
    }
    position = stated.end;
    previous = item;
  }
  if (position != data_size_) {
    throw fail(ErrorCode::kFormat, "{}: the data section has {} bytes, but its tensors end at {}", file_,
               data_size_, position);
  }
}

class SafetensorsFile final : public Checkpoint {
 public:
  explicit SafetensorsFile(MappedFile file) : Checkpoint(file.path()), file_(std::move(file)) {
    read(file_.bytes());
  }
  SafetensorsFile(std::span<const std::byte> bytes, const std::string& name) : Checkpoint(name) {
    read(bytes);
  }

  std::string_view format() const override { return "safetensors"; }
  void release(const TensorView& view) const override {
    if (!file_.bytes().empty()) file_.release(view.data, view.bytes());
  }

 private:
  void read(std::span<const std::byte> bytes);
  MappedFile file_;  // empty when the bytes are the caller's
};

void SafetensorsFile::read(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    throw fail(ErrorCode::kFormat,
               "{}: {} bytes are too few for a safetensors file, which starts with {} bytes of length", path_,
               bytes.size(), kLengthBytes);
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeaderBytes) {
    throw fail(ErrorCode::kFormat, "{}: header length {} is above the format's bound of {} bytes", path_,
               length, kMaxHeaderBytes);
  }
  const auto rest = bytes.subspan(kLengthBytes);
  if (length > rest.size()) {
    throw fail(ErrorCode::kFormat, "{}: header length {} goes beyond the end of the file, which has {} bytes",
               path_, length, bytes.size());
  }
  const std::string_view header(reinterpret_cast<const char*>(rest.data()), length);
  const auto data = rest.subspan(length);
  HeaderParser parser(path_, header, data.size());
  parser.parse();
  metadata_ = std::move(parser.metadata());
  for (const auto& [name, stated] : parser.tensors()) {
    tensors_.emplace_hint(tensors_.end(), name,
                          TensorView(stated.dtype, stated.shape, data.data() + stated.begin));
  }
}

}  // namespace
}  // namespace safetensors

std::unique_ptr<Checkpoint> open_safetensors(const std::string& path) {
  return std::make_unique<safetensors::SafetensorsFile>(MappedFile::open(path));
}

std::unique_ptr<Checkpoint> parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  return std::make_unique<safetensors::SafetensorsFile>(bytes, name);
}

}  // namespace sinew

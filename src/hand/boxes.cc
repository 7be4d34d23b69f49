#include "hand/boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/mapped_file.h"
#include "io/printable.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // a million boxes
constexpr std::size_t kMaxHands = 1000;                   // in one picture

int read_side(const Json& value, const std::string& where) {
  if (!value.is_number_integer() || value < 1 || value > 1'000'000) {
    throw fail(ErrorCode::kFormat, "{}: size must be two positive whole numbers", where);
  }
  return value.get<int>();
}

HandBox read_hand(const Json& hand, const std::string& where) {
  const bool shaped = hand.is_array() && (hand.size() == 4 || hand.size() == 5);
  if (!shaped) throw fail(ErrorCode::kFormat, "{} must be [x1,y1,x2,y2,is_right]", where);
  std::array<double, 5> numbers = {0, 0, 0, 0, 1};
  for (std::size_t i = 0; i < hand.size(); ++i) {
    if (hand[i].is_boolean() && i == 4) {
      numbers[i] = hand[i].get<bool>() ? 1 : 0;
    } else if (hand[i].is_number()) {
      numbers[i] = hand[i].get<double>();
    } else {
      throw fail(ErrorCode::kFormat, "{}: entry {} is no number", where, i);
    }
    if (!std::isfinite(numbers[i])) throw fail(ErrorCode::kFormat, "{}: entry {} is not finite", where, i);
  }
  if (numbers[4] != 0 && numbers[4] != 1) {
    throw fail(ErrorCode::kFormat, "{}: is_right is {}, expected 0 or 1", where, numbers[4]);
  }
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] == 1};
}

ImageBoxes read_image(const Json& image, const std::string& where) {
  ImageBoxes boxes;
  if (const auto size = image.find("size"); size != image.end()) {
    if (!size->is_array() || size->size() != 2) {
      throw fail(ErrorCode::kFormat, "{}: size must be two positive whole numbers", where);
    }
    boxes.width = read_side((*size)[0], where);
    boxes.height = read_side((*size)[1], where);
  }
  const auto hands = image.find("hands");
  if (hands == image.end() || !hands->is_array())
    throw fail(ErrorCode::kFormat, "{}: hands must be a list", where);
  if (hands->size() > kMaxHands)
    throw fail(ErrorCode::kLimit, "{}: {} hands, at most {}", where, hands->size(), kMaxHands);
  for (std::size_t i = 0; i < hands->size(); ++i) {
    boxes.hands.push_back(read_hand((*hands)[i], fmt::format("{}, hand {}", where, i)));
  }
  return boxes;
}

/// Refuses nesting that the format has no use for before the parser builds it. Brackets in strings do not
/// count.
void check_nesting(std::string_view text, const std::string& name) {
  constexpr int kMaxNesting = 32;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxNesting) throw fail(ErrorCode::kLimit, "{}: nested more than {} deep", name, kMaxNesting);
  }
}

}  // namespace

std::map<std::string, ImageBoxes> parse_boxes(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBytes)
    throw fail(ErrorCode::kLimit, "{}: {} bytes, at most {}", name, text.size(), kMaxBytes);
  check_nesting(text, name);
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::exception& error) {
    throw fail(ErrorCode::kFormat, "{}: not JSON: {}", name, printable(error.what()));
  }
  const auto images = root.is_object() ? root.find("images") : root.end();
  if (!root.is_object() || images == root.end() || !images->is_array()) {
    throw fail(ErrorCode::kFormat, "{}: expected an object with a list named images", name);
  }
  std::map<std::string, ImageBoxes> result;
  for (std::size_t i = 0; i < images->size(); ++i) {
    const Json& image = (*images)[i];
    const std::string where = fmt::format("{}: images[{}]", name, i);
    const auto file = image.is_object() ? image.find("file") : image.end();
    if (!image.is_object() || file == image.end() || !file->is_string()) {
      throw fail(ErrorCode::kFormat, "{}: file must be a string", where);
    }
    const auto [at, inserted] = result.emplace(file->get<std::string>(), read_image(image, where));
    if (!inserted) throw fail(ErrorCode::kFormat, "{}: {} appears twice", where, printable(at->first));
  }
  return result;
}

std::map<std::string, ImageBoxes> read_boxes(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_boxes({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

HandBox parse_box(const std::string& text) {
  const auto wrong = [&] {
    return Error(
        ErrorCode::kUsage,
        fmt::format("--box {}: expected x1,y1,x2,y2 or x1,y1,x2,y2,left or ...,right", printable(text)));
  };
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  if (parts.size() != 4 && parts.size() != 5) throw wrong();
  std::array<double, 4> numbers{};
  for (std::size_t i = 0; i < 4; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto [stop, error] = std::from_chars(parts[i].data(), end, numbers[i]);
    if (error != std::errc{} || stop != end) throw wrong();
  }
  HandBox box{numbers[0], numbers[1], numbers[2], numbers[3], true};
  if (parts.size() == 5) {
    if (parts[4] != "left" && parts[4] != "right") throw wrong();
    box.is_right = parts[4] == "right";
  }
  return box;
}

}  // namespace sinew

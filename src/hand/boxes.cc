#include "hand/boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "io/json_text.h"
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

}  // namespace

std::map<std::string, ImageBoxes> parse_boxes(std::string_view text, const std::string& name) {
  const Json root = parse_json_text(text, name, kMaxBytes);
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

double box_overlap(const HandBox& a, const HandBox& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (!(width > 0) || !(height > 0)) return 0;
  const auto area = [](const HandBox& box) { return (box.x2 - box.x1) * (box.y2 - box.y1); };
  const double both = width * height;
  return both / (area(a) + area(b) - both);
}

HandBox parse_box(const std::string& text) {
  const auto wrong = [&] {
    return Error(
        ErrorCode::kUsage,
        fmt::format("--box {}: expected x1,y1,x2,y2 or x1,y1,x2,y2,left or ...,right", printable(text)));
  };
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != 4 && parts.size() != 5) throw wrong();
  std::array<double, 4> numbers{};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto number = parse_number(parts[i]);
    if (!number) throw wrong();
    numbers[i] = *number;
  }
  HandBox box{numbers[0], numbers[1], numbers[2], numbers[3], true};
  if (parts.size() == 5) {
    if (parts[4] != "left" && parts[4] != "right") throw wrong();
    box.is_right = parts[4] == "right";
  }
  return box;
}

}  // namespace sinew

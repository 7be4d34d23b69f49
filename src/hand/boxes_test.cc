#include "hand/boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/atomic_file.h"
#include "io/test_damage.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

using namespace std::string_literals;

using testing::HasSubstr;

constexpr const char* kGood =
    R"({"note": {"by": ["eye"]}, "images": [)"
    R"({"file": "a.jpg", "size": [100, 80], "hands": [[3, 9, 78.5, 63, 1], [1, 2, 3, 4, 0]]},)"
    R"({"file": "b [[[.png", "hands": [[-5, -6, 7, 8], [1, 2, 3, 4, true], [1, 2, 3, 4, false]]},)"
    R"({"file": "none.jpg", "size": [1, 1], "hands": []}]})";

Error refused(const std::string& text) {
  try {
    parse_boxes(text, "boxes.json");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("boxes.json"));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 500U);
    return error;
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 200);
  return {ErrorCode::kIo, ""};
}

/// One image whose only hand is `hand`.
std::string with_hand(const std::string& hand) {
  return fmt::format(R"({{"images": [{{"file": "a.jpg", "hands": [{}]}}]}})", hand);
}

TEST(Boxes, ReadsImagesSizesAndHands) {
  const auto images = parse_boxes(kGood, "boxes.json");
  ASSERT_EQ(images.size(), 3U);
  const ImageBoxes& a = images.at("a.jpg");
  EXPECT_EQ(a.width, 100);
  EXPECT_EQ(a.height, 80);
  ASSERT_EQ(a.hands.size(), 2U);
  EXPECT_EQ(a.hands[0].x1, 3);
  EXPECT_EQ(a.hands[0].y1, 9);
  EXPECT_EQ(a.hands[0].x2, 78.5);
  EXPECT_EQ(a.hands[0].y2, 63);
  EXPECT_TRUE(a.hands[0].is_right);
  EXPECT_FALSE(a.hands[1].is_right);
  const ImageBoxes& b = images.at("b [[[.png");
  EXPECT_EQ(b.width, 0) << "unstated";
  ASSERT_EQ(b.hands.size(), 3U);
  EXPECT_EQ(b.hands[0].x1, -5) << "a hand may reach over the edge";
  EXPECT_TRUE(b.hands[0].is_right) << "four numbers: a right hand";
  EXPECT_TRUE(b.hands[1].is_right);
  EXPECT_FALSE(b.hands[2].is_right);
  EXPECT_TRUE(images.at("none.jpg").hands.empty());
}

TEST(Boxes, ReadsTheSharedPhotosBoxes) {
  const auto path = shared_file("data/hands/boxes.json");
  if (!path) GTEST_SKIP() << kNoShared;
  const auto images = read_boxes(*path);
  EXPECT_GE(images.size(), 10U);
  std::size_t hands = 0;
  for (const auto& [file, boxes] : images) {
    EXPECT_TRUE(shared_file("data/hands/" + file)) << file;
    EXPECT_GT(boxes.width, 0) << file;
    EXPECT_GT(boxes.height, 0) << file;
    for (const HandBox& box : boxes.hands) EXPECT_NO_THROW(check_box(box, boxes.width, boxes.height)) << file;
    hands += boxes.hands.size();
  }
  EXPECT_GE(hands, images.size() / 2);
  EXPECT_EQ(images.at("sld_0_IMG_5276.jpg").hands.at(0).x2, 78);
}

TEST(Boxes, ReadsAFile) {
  const TestFolder folder;
  write_file_atomically(folder.file("boxes.json"), kGood);
  EXPECT_EQ(read_boxes(folder.file("boxes.json")).size(), 3U);
  EXPECT_THROW(read_boxes(folder.file("missing.json")), Error);
  write_file_atomically(folder.file("empty.json"), "");
  EXPECT_THROW(read_boxes(folder.file("empty.json")), Error);
}

TEST(Boxes, NamesTheMalformedField) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "not JSON"},
      {"[]", "expected an object"},
      {"3", "expected an object"},
      {"{}", "list named images"},
      {R"({"images": {}})", "list named images"},
      {R"({"images": [7]})", "images[0]: file must be a string"},
      {R"({"images": [{}]})", "images[0]: file must be a string"},
      {R"({"images": [{"file": 3, "hands": []}]})", "images[0]: file must be a string"},
      {R"({"images": [{"file": "a", "hands": []}, {"file": "b"}]})", "images[1]: hands must be a list"},
      {R"({"images": [{"file": "a", "hands": {}}]})", "images[0]: hands must be a list"},
      {R"({"images": [{"file": "a", "hands": [], "size": 3}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [1]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [1, 2, 3]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [0, 2]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [10, -2]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [10, 2.5]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": ["10", 2]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [4294967297, 2]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": [], "size": [18446744073709551615, 2]}]})", "images[0]: size"},
      {R"({"images": [{"file": "a", "hands": []}, {"file": "a", "hands": []}]})",
       "images[1]: a appears twice"},
      {R"({"images": [{"file": "a\nb", "hands": []}, {"file": "a\nb", "hands": []}]})",
       "a\\x0ab appears twice"},
  };
  for (const auto& c : cases) EXPECT_THAT(refused(c.text).what(), HasSubstr(c.message)) << c.text;
}

TEST(Boxes, NamesTheMalformedHand) {
  const struct {
    const char* hand;
    const char* message;
  } cases[] = {
      {"3", "hand 0 must be [x1,y1,x2,y2,is_right]"},
      {"[]", "hand 0 must be"},
      {"[1,2,3]", "hand 0 must be"},
      {"[1,2,3,4,1,1]", "hand 0 must be"},
      {"[[1],2,3,4,1]", "hand 0: entry 0 is no number"},
      {"[1,null,3,4,1]", "hand 0: entry 1 is no number"},
      {"[1,2,\"3\",4,1]", "hand 0: entry 2 is no number"},
      {"[1,2,3,true,1]", "hand 0: entry 3 is no number"},
      {"[1,2,3,4,\"right\"]", "hand 0: entry 4 is no number"},
      {"[1,2,3,4,2]", "hand 0: is_right is 2, expected 0 or 1"},
      {"[1,2,3,4,-1]", "is_right is -1"},
      {"[1,2,3,4,0.5]", "is_right is 0.5"},
      {"[1,2,3,4,9007199254740993]", "is_right is"},
      {"[1,2,3,4,1], [1,2,3]", "hand 1 must be"},
      // Hostile numbers (hostile_inputs row 12); JSON has no NaN, and 1e309 is no double.
      {"[NaN,2,3,4,1]", "not JSON"},
      {"[1,2,Infinity,4,1]", "not JSON"},
      {"[1,2,1e309,4,1]", "not JSON"},
  };
  for (const auto& c : cases) EXPECT_THAT(refused(with_hand(c.hand)).what(), HasSubstr(c.message)) << c.hand;
}

/// Numbers that are numbers pass here, and check_box or crop_geometry then refuses them with the frame at
/// hand.
TEST(Boxes, ExtremeNumbersKeepTheirValue) {
  const auto hand = [](const char* text) {
    return parse_boxes(with_hand(text), "x").at("a.jpg").hands.at(0);
  };
  EXPECT_EQ(hand("[-1e308,-0.0,1e308,9007199254740993,1]").x2, 1e308);
  EXPECT_TRUE(std::signbit(hand("[1,-0.0,3,4,1]").y1));
  EXPECT_EQ(hand("[0,0,1,9007199254740993,1]").y2, 9007199254740992.0) << "2^53 + 1 rounds to even";
  EXPECT_THROW(check_box(hand("[-10,-10,-5,-5,1]"), 100, 100), Error);
  EXPECT_NO_THROW(check_box(hand("[-1e308,0,1e308,10,1]"), 100, 100));
  EXPECT_THROW(crop_geometry(hand("[-1e308,0,1e308,10,1]"), 2.0), Error);
}

TEST(Boxes, BoundsNestingCountAndSize) {
  // One nesting level a byte, a million deep (hostile_inputs row 7); closed or not, behind a string or not.
  const std::string open(1'000'000, '[');
  EXPECT_EQ(refused(open).code(), ErrorCode::kLimit);
  EXPECT_EQ(refused(with_hand(open + std::string(1'000'000, ']'))).code(), ErrorCode::kLimit);
  EXPECT_EQ(refused(R"({"a": ")" + std::string(1'000'000, ']') + R"(", "b": )" + open + "}").code(),
            ErrorCode::kLimit)
      << "brackets in a string do not count, neither up nor down";
  EXPECT_EQ(refused(R"({"a": "\"", "b": )" + open + "}").code(), ErrorCode::kLimit)
      << "an escaped quote ends no string";
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a":)";
  EXPECT_EQ(refused(objects).code(), ErrorCode::kLimit);
  std::string many = "[1,2,3,4,1]";
  for (int i = 0; i < 1000; ++i) many += ",[1,2,3,4,1]";
  EXPECT_EQ(refused(with_hand(many)).code(), ErrorCode::kLimit);
}

TEST(Boxes, GarbageGivesOneShortLine) {
  refused("{\"images\": [\"\0\n\r\x1b[2J"s);
  refused("{\"images\": \"" + std::string(100'000, 'x'));
  refused("\xff\xfe{}");
  refused(R"({"images": [{"file": "\ud800", "hands": []}]})");
}

TEST(Boxes, SurvivesDamage) {
  const auto parse = [](std::span<const std::byte> bytes) {
    parse_boxes({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "damaged");
  };
  expect_truncations_refused(kGood, parse);
  survive_flips(kGood, parse, 2000);
}

TEST(ParseBox, ReadsFourNumbersAndASide) {
  const HandBox plain = parse_box("1,2.5,-3,4e2");
  EXPECT_EQ(plain.x1, 1);
  EXPECT_EQ(plain.y1, 2.5);
  EXPECT_EQ(plain.x2, -3);
  EXPECT_EQ(plain.y2, 400);
  EXPECT_TRUE(plain.is_right);
  EXPECT_TRUE(parse_box("1,2,3,4,right").is_right);
  EXPECT_FALSE(parse_box("1,2,3,4,left").is_right);
  EXPECT_TRUE(std::isnan(parse_box("nan,2,3,4").x1)) << "a number to the parser; check_box refuses it";
}

TEST(ParseBox, RefusesEverythingElse) {
  for (const char* text :
       {"", ",", "1,2,3", "1,2,3,4,5", "1,2,3,4,Left", "1,2,3,4,", ",1,2,3,4", "1,2,3,4,left,", "a,2,3,4",
        "1,2,3,4px", "1 ,2,3,4", "1,2,3, 4", "0x10,2,3,4", "1;2;3;4", "1,,3,4", "1,2,3,4\n", "1,2,3,1e999"}) {
    try {
      parse_box(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << text;
      EXPECT_THAT(error.what(), HasSubstr("expected x1,y1,x2,y2")) << text;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(BoxOverlap, IsIntersectionOverUnion) {
  const HandBox box = {10, 20, 30, 60, true};
  EXPECT_DOUBLE_EQ(box_overlap(box, box), 1);
  EXPECT_DOUBLE_EQ(box_overlap(box, {20, 20, 40, 60, false}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(box_overlap({20, 20, 40, 60, false}, box), 1.0 / 3);
  EXPECT_EQ(box_overlap(box, {30, 20, 50, 60, true}), 0) << "they only touch";
  EXPECT_EQ(box_overlap(box, {0, 0, 5, 5, true}), 0);
}

}  // namespace
}  // namespace sinew

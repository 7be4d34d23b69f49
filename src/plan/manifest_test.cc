#include "plan/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "base/error.h"
#include "io/safetensors.h"
#include "io/test_damage.h"

namespace sinew {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Manifest example() {
  Manifest out;
  out.identity = {{"policy", "bf16"}, {"options", "{\"a\":1}\n50 %"}};
  out.files[{"a", ""}] = {DType::kBF16, Shape({2, 3}), 128 + 12, {1, 2}};
  out.files[{"a", "panel"}] = {DType::kU8, Shape({0, 3}), 192, {3, 4}};
  out.files[{"scalar \xc3\xa9\xff\"", ""}] = {DType::kF64, Shape(), 136, {5, 6}};
  return out;
}

std::string error_of(const std::string& text) {
  try {
    parse_manifest(text, "manifest.json");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("manifest.json: "));
    return error.what();
  }
  return "nothing was thrown";
}

std::string replaced(const std::string& what, const std::string& by) {
  std::string text = to_text(example());
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(Manifest, ComesBack) {
  const std::string text = to_text(example());
  const Manifest out = parse_manifest(text, "manifest.json");
  EXPECT_EQ(out.identity, example().identity);
  EXPECT_EQ(out.files, example().files);
  EXPECT_EQ(to_text(out), text);
  EXPECT_EQ(out.files.at({"a", ""}).data_bytes(), 12U);
  EXPECT_EQ(out.files.at({"a", "panel"}).data_bytes(), 0U);
  EXPECT_EQ(to_text(parse_manifest(to_text(Manifest{}), "empty")), to_text(Manifest{}));
}

TEST(Manifest, RefusesEverythingElse) {
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(replaced("sinew-tier-1", "sinew-tier-2")),
              HasSubstr("format is 'sinew-tier-2', expected 'sinew-tier-1'"));
  EXPECT_THAT(error_of(replaced("\"policy\": \"bf16\"", "\"policy\": 16")),
              HasSubstr("identity 'policy' must be text"));
  EXPECT_THAT(error_of(replaced("\"identity\"", "\"identities\"")), HasSubstr("has no identity"));
  EXPECT_THAT(error_of(replaced("\"bf16\",\n   \"file\"", "\"bf17\",\n   \"file\"")),
              HasSubstr("dtype 'bf17' is unknown"));
  EXPECT_THAT(error_of(replaced("\"file_bytes\": 140", "\"file_bytes\": 139")),
              HasSubstr("file_bytes does not fit"));
  EXPECT_THAT(error_of(replaced("\"file_bytes\": 140", "\"file_bytes\": -140")),
              HasSubstr("file_bytes does not fit"));
  EXPECT_THAT(error_of(replaced("\"file_bytes\": 140", "\"file_bytes\": 1e3")),
              HasSubstr("file_bytes does not fit"));
  EXPECT_THAT(error_of(replaced("\"a.safetensors\"", "\"../a.safetensors\"")),
              HasSubstr("file is '../a.safetensors', expected 'a.safetensors'"));
  EXPECT_THAT(error_of(replaced("0000000000000001", "000000000000000X")), HasSubstr("digest must be"));
  EXPECT_THAT(error_of(replaced("50 %25", "50 %2")), HasSubstr("is not percent-encoded"));
  EXPECT_THAT(error_of(replaced("\"policy\"", "\"policy\":\"f32\",\n  \"policy\"")),
              HasSubstr("is not as sinew writes it"));
  EXPECT_THAT(error_of(to_text(example()) + "\n"), HasSubstr("is not as sinew writes it"));
  EXPECT_THAT(error_of(std::string(1000000, '[')), HasSubstr("nested"));
}

/// Row 13: products and sizes that wrap. Row 12: numbers that are none.
TEST(Manifest, RefusesShapesThatWrap) {
  const std::string shape = "\"shape\": [\n    2,\n    3\n   ]";
  for (const char* dims :
       {"4398046511105, 4194304", "4294967296, 4294967296", "9223372036854775807, 2", "9223372036854775808",
        "-2, -3", "1e308", "2.5", "null", "\"6\"", "[6]", "1,1,1,1,1,1,1,1,1", "18446744073709551616"}) {
    const std::string error = error_of(replaced(shape, "\"shape\": [" + std::string(dims) + "]"));
    EXPECT_THAT(error, HasSubstr("tensor 'a'")) << dims;
  }
  // 2^61 elements of 8 bytes: 2^64 bytes.
  const std::string scalar = "\"dtype\": \"f64\",";
  std::string text = replaced(scalar, scalar);
  const std::size_t at = text.rfind("\"shape\": []");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THAT(error_of(text.replace(at, 11, "\"shape\": [2305843009213693952]")),
              HasSubstr("file_bytes does not fit"));
}

TEST(Manifest, DamageIsAnswered) {
  const std::string text = to_text(example());
  const auto parse = [](std::span<const std::byte> bytes) {
    const std::string copy(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    EXPECT_EQ(to_text(parse_manifest(copy, "manifest.json")), copy);
  };
  EXPECT_TRUE(parse_outcome(text, parse));
  expect_truncations_refused(text, parse);
  survive_flips(text, parse, 2000);
}

TEST(Manifest, IdentitiesDiffer) {
  const Identity one = {{"a", "b"}, {"c", "d"}};
  EXPECT_EQ(difference(one, one), "");
  EXPECT_EQ(difference({{"a", "b"}}, one), "has no c, expected 'd'");
  EXPECT_EQ(difference({{"a", "x"}, {"c", "d"}}, one), "a is 'x', expected 'b'");
  EXPECT_EQ(difference({{"a", "b"}, {"c", "d"}, {"e", "f"}}, one), "e is 'f', expected none");
  const std::set<Digest> digests = {digest_of(one),
                                    digest_of(Identity{}),
                                    digest_of(Identity{{"a", "b"}}),
                                    digest_of(Identity{{"ab", ""}}),
                                    digest_of(Identity{{"", "ab"}}),
                                    digest_of(Identity{{"a", "bc1 1 d"}}),
                                    digest_of(Identity{{"c", "d"}, {"a", "x"}})};
  EXPECT_EQ(digests.size(), 7U);
}

TEST(FileName, IsSafeAndItsOwn) {
  EXPECT_EQ(file_name({"blocks.0.attn.qkv.weight", ""}), "blocks.0.attn.qkv.weight.safetensors");
  EXPECT_EQ(file_name({"a/b c", "panel 16"}), "a%2Fb%20c@panel%2016.safetensors");
  EXPECT_EQ(file_name({".complete", ""}), "%2Ecomplete.safetensors");
  std::vector<TierKey> keys = {{"", ""},      {"", "v"},  {"a", ""},    {"a@b", ""}, {"a", "b"},
                               {"a%40b", ""}, {"..", ""}, {"../x", ""}, {"%2E", ""}, {".", ""},
                               {"\xff", ""},  {"~", ""},  {"A", ""},    {"a\n", ""}, {"%", ""},
                               {"a", "@b"},   {"a@", "b"}};
  const std::string nul("a\0b", 3);
  keys.push_back({nul, ""});
  for (const std::size_t length : {150, 179, 180, 181, 255, 300, 100000}) {
    keys.push_back({std::string(length, 'x'), ""});
    keys.push_back({std::string(length - 1, 'x') + "y", ""});
    keys.push_back({std::string(length, '/'), ""});
    keys.push_back({std::string(length, 'x'), std::string(length, 'x')});
  }
  std::set<std::string> names;
  for (const TierKey& key : keys) {
    const std::string name = file_name(key);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_LE(name.size(), 200U);
    EXPECT_FALSE(name.starts_with('.')) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-%@~"),
              std::string::npos)
        << name;
  }
}

TEST(EncodedText, ComesBack) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(decode_text(encode_text(all)), all);
  EXPECT_EQ(encode_text("a%b\xc3\xa9 \"\n"), "a%25b%C3%A9 \"%0A");
  EXPECT_FALSE(decode_text("%"));
  EXPECT_FALSE(decode_text("%2"));
  EXPECT_FALSE(decode_text("%2g"));
  EXPECT_FALSE(decode_text("%2a"));
}

TEST(TensorHeader, IsSafetensors) {
  const std::set<std::string> names = {"a", "", "__metadata__", "q\"\\\x01\xff%"};
  for (const std::string& name : names) {
    for (const DType dtype : {DType::kBool, DType::kU8, DType::kBF16, DType::kF64}) {
      const Shape shape({2, 5});
      std::string file = tensor_header({name, "v\"w"}, dtype, shape, Digest{7, 8});
      EXPECT_EQ(file.size() % 64, 0U);
      file += std::string(10 * size_of(dtype), 'x');
      const auto parsed = parse_safetensors(std::as_bytes(std::span(file)), "file");
      ASSERT_EQ(parsed->tensors().size(), 1U);
      EXPECT_EQ(parsed->tensors().begin()->first,
                name == "__metadata__" ? "%5F_metadata__" : encode_text(name));
      EXPECT_EQ(parsed->tensors().begin()->second.dtype, dtype);
      EXPECT_EQ(parsed->tensors().begin()->second.shape, shape);
      EXPECT_EQ(parsed->metadata().at("xxh3_128"), (Digest{7, 8}.hex()));
      EXPECT_EQ(parsed->metadata().at("variant"), "v\"w");
    }
  }
}

}  // namespace
}  // namespace sinew

#include "hand/record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sinew {
namespace {

using Json = nlohmann::json;

/// Numbers that are told apart: each field counts from its own start.
HandResult sample(bool is_right) {
  HandResult result;
  result.box = {10, 20, 110.5, 140, is_right};
  result.geometry = {60.25F, 80, 266.5};
  result.frame_width = 320;
  result.frame_height = 240;
  const auto count = [](auto& values, double from) {
    for (auto& v : values) v = from++;
  };
  count(result.rotmats, 1000);
  count(result.betas, 2000);
  count(result.cam, 3000);
  count(result.cam_t_full, 4000);
  result.camera = {6250, 6250, 160, 120};
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const auto k = static_cast<double>(i);
    result.joints_3d[i] = {k, k + 0.25, k + 0.5};
    result.joints_2d[i] = {40 + 5 * k, 50 + 3 * k};
  }
  result.timings = {3.5, 1.5, 2.5, 0.5};
  return result;
}

RecordContext context() {
  RecordContext out;
  out.image = "dir/a.jpg";
  out.hand = 3;
  out.model = "HaMeR of the test";
  out.backend = "cpu: test";
  out.policy = "f32";
  out.crop = "opencv";
  out.rescale = 2.5;
  out.decode_ms = 7;
  return out;
}

TEST(Record, HasEveryField) {
  const std::string text = to_json(sample(false), context());
  EXPECT_EQ(text.find('\n'), std::string::npos) << "one record, one line";
  const Json json = Json::parse(text);
  EXPECT_EQ(json.at("image"), "dir/a.jpg");
  EXPECT_EQ(json.at("image_size"), Json({320, 240}));
  EXPECT_EQ(json.at("hand"), 3);
  EXPECT_EQ(json.at("bbox"), Json({10.0, 20.0, 110.5, 140.0}));
  EXPECT_EQ(json.at("is_right"), false);
  EXPECT_EQ(json.at("box_center"), Json({60.25, 80.0}));
  EXPECT_EQ(json.at("box_size"), 266.5);
  EXPECT_EQ(json.at("focal_length"), 6250);
  EXPECT_EQ(json.at("model"), "HaMeR of the test");
  EXPECT_EQ(json.at("backend"), "cpu: test");
  EXPECT_EQ(json.at("policy"), "f32");
  EXPECT_EQ(json.at("crop"), "opencv");
  EXPECT_EQ(json.at("rescale"), 2.5);
  EXPECT_EQ(json.at("hand_model"), "builtin-skeleton");
  RecordContext with_mano = context();
  with_mano.hand_model = "mano (MANO_RIGHT.pkl)";
  EXPECT_EQ(Json::parse(to_json(sample(true), with_mano)).at("hand_model"), "mano (MANO_RIGHT.pkl)");
  EXPECT_EQ(json.at("timings_ms"),
            Json::parse(R"({"decode": 7.0, "find": 3.5, "crop": 1.5, "model": 2.5, "finish": 0.5})"));
  EXPECT_EQ(Json::parse(to_json(sample(true), context())).at("is_right"), true);
}

TEST(Record, ArraysHaveTheirShapes) {
  const HandResult result = sample(true);
  const Json json = Json::parse(to_json(result, context()));
  const Json& rotmats = json.at("rotmats");
  ASSERT_EQ(rotmats.size(), 16U);
  for (std::size_t j = 0; j < 16; ++j) {
    ASSERT_EQ(rotmats[j].size(), 3U);
    for (std::size_t r = 0; r < 3; ++r) {
      ASSERT_EQ(rotmats[j][r].size(), 3U);
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_EQ(rotmats[j][r][c], result.rotmats[9 * j + 3 * r + c]) << "row-major";
    }
  }
  ASSERT_EQ(json.at("betas").size(), 10U);
  EXPECT_EQ(json["betas"][9], 2009);
  EXPECT_EQ(json.at("cam"), Json({3000, 3001, 3002}));
  EXPECT_EQ(json.at("cam_t_full"), Json({4000, 4001, 4002}));
  ASSERT_EQ(json.at("joints_3d").size(), 21U);
  EXPECT_EQ(json["joints_3d"][20], Json({20.0, 20.25, 20.5}));
  ASSERT_EQ(json.at("joints_2d").size(), 21U);
  EXPECT_EQ(json["joints_2d"][20], Json({140.0, 110.0}));
}

TEST(Record, NumbersComeBackExactly) {
  HandResult result = sample(true);
  result.rotmats[0] = 0.1F;  // a float's value has 24 bits: the text must keep them
  result.rotmats[1] = -1.0 / 3;
  result.rotmats[2] = 1e-300;
  const Json json = Json::parse(to_json(result, context()));
  EXPECT_EQ(json["rotmats"][0][0][0].get<float>(), 0.1F);
  EXPECT_EQ(json["rotmats"][0][0][1].get<double>(), -1.0 / 3);
  EXPECT_EQ(json["rotmats"][0][0][2].get<double>(), 1e-300);
}

TEST(Record, AnyFileNameGivesValidJson) {
  for (const std::string& name :
       {std::string("\xff\xfe bytes \x80.jpg"), std::string("quote\" back\\slash\n\t\x01.jpg"),
        std::string("h\xc3\xa4nde.jpg"), std::string("cut \xe2\x82")}) {
    RecordContext with_name = context();
    with_name.image = name;
    const std::string text = to_json(sample(true), with_name);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const Json json = Json::parse(text);
    const bool is_utf8 = name.find('\xff') == std::string::npos && !name.starts_with("cut");
    if (is_utf8) {
      EXPECT_EQ(json.at("image"), name);
    } else {
      EXPECT_NE(json.at("image").get<std::string>().find("\xef\xbf\xbd"), std::string::npos)
          << "replacement character";
    }
  }
}

}  // namespace
}  // namespace sinew

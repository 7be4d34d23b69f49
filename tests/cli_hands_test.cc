// `sinew hands` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli_support.h"
#include "hand/test_hands.h"

namespace sinew::cli_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CliHands : public testing::Test {
 protected:
  CliHands() { write_image(folder_.file("photo.png"), test_frame()); }

  /// `sinew hands ARGS` with the tiny model in f32 on one thread, without assets: on boxes, or the whole
  /// image.
  Ran hands(std::vector<std::string> arguments) {
    const auto given = [&](const char* option) { return std::ranges::count(arguments, option) > 0; };
    if (!given("--hand-model")) arguments.insert(arguments.end(), {"--hand-model", "skeleton"});
    if (!given("--detector")) arguments.insert(arguments.end(), {"--detector", "none"});
    arguments.insert(arguments.begin(), "hands");
    for (const char* word : {"--model", tiny_model().c_str(), "--policy", "f32", "--threads", "1"})
      arguments.emplace_back(word);
    const ScopedEnvironment no_assets("SINEW_DATA", folder_.file("no_assets"));
    return run_sinew(folder_.file(""), arguments);
  }
  /// The record of a call that must work and print exactly one.
  Json record(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Ran ran = hands(std::move(arguments));
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(lines_of(ran.out), 1) << ran.out;
    return Json::parse(ran.out);
  }
  bool exists(const std::string& name) const { return fs::exists(folder_.file(name)); }

  TestFolder folder_;
};

Json without_timings(Json record) {
  record.erase("timings_ms");
  return record;
}

TEST_F(CliHands, WritesARecordAndAPictureForABox) {
  const Ran ran = hands({"photo.png", "--box", "40,30,110.5,95", "--out", "out", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("out")), {}), 3);
  EXPECT_EQ(read_text(folder_.file("out/photo_0.json")), ran.out) << "printed and written are the same";
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("image"), "photo.png");
  EXPECT_EQ(json.at("image_size"), Json({160, 120}));
  EXPECT_EQ(json.at("bbox"), Json({40.0, 30.0, 110.5, 95.0}));
  EXPECT_EQ(json.at("is_right"), true);
  EXPECT_EQ(json.at("policy"), "f32") << "requested is used";
  EXPECT_EQ(json.at("crop"), "pillow");
  EXPECT_EQ(json.at("rescale"), 2.0);
  EXPECT_THAT(json.at("backend").get<std::string>(), HasSubstr("cpu"));
  EXPECT_THAT(json.at("model").get<std::string>(), HasSubstr("hamer.ckpt"));
  EXPECT_EQ(json.at("focal_length"), 5000.0 / 256 * 160);
  EXPECT_EQ(json.at("rotmats").size(), 16U);
  EXPECT_EQ(json.at("betas").size(), 10U);
  EXPECT_EQ(json.at("cam").size(), 3U);
  EXPECT_EQ(json.at("cam_t_full").size(), 3U);
  EXPECT_EQ(json.at("joints_3d").size(), 21U);
  EXPECT_EQ(json.at("joints_2d").size(), 21U);
  for (const char* stage : {"decode", "crop", "model", "finish"})
    EXPECT_GE(json.at("timings_ms").at(stage), 0) << stage;
  const Image overlay = read_image(folder_.file("out/photo_all.png"));
  EXPECT_EQ(overlay.width, 160);
  EXPECT_EQ(overlay.height, 120);
  EXPECT_NE(overlay.rgb, test_frame().rgb) << "something is drawn";
  EXPECT_TRUE(std::equal(overlay.pixel(159, 119), overlay.pixel(159, 119) + 3, test_frame().pixel(159, 119)))
      << "over the photo";
}

TEST_F(CliHands, HandModelIsUsedAndNamed) {
  write_file_atomically(folder_.file("hand.glb"), skeleton_glb().build());
  const Json plain = record({"photo.png", "--box", "40,30,110,95"});
  EXPECT_EQ(plain.at("hand_model"), "builtin-skeleton");
  const Json mesh = record({"photo.png", "--box", "40,30,110,95", "--hand-model", "hand.glb"});
  EXPECT_EQ(mesh.at("hand_model"), "webxr generic hand (hand.glb)");
  EXPECT_EQ(mesh.at("rotmats"), plain.at("rotmats"));
  for (std::size_t i = 0; i < 21; ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {  // the file is made of the same bones, in float32
      EXPECT_NEAR(mesh.at("joints_3d")[i][axis].get<double>(), plain.at("joints_3d")[i][axis].get<double>(),
                  1e-6);
    }
  }
  const Ran wrong = hands({"photo.png", "--box", "40,30,110,95", "--hand-model", "photo.png"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("photo.png"));
}

TEST_F(CliHands, WithoutAssetsItSaysHowToGetThem) {
  const Ran asked = hands({"photo.png", "--box", "40,30,110,95", "--hand-model", "builtin"});
  EXPECT_EQ(asked.status, 1);
  EXPECT_THAT(asked.err, HasSubstr("generic_hand_right.glb"));
  EXPECT_THAT(asked.err, HasSubstr("make assets"));
  const Ran no_box = hands({"photo.png", "--detector", "mediapipe"});
  EXPECT_EQ(no_box.status, 1);
  EXPECT_THAT(no_box.err, HasSubstr("palm_detection_full.tflite"));
  EXPECT_THAT(no_box.err, HasSubstr("make assets"));
  EXPECT_THAT(no_box.err, HasSubstr("--model with --box"));
  EXPECT_EQ(lines_of(no_box.err), 1);
  const ScopedEnvironment no_assets("SINEW_DATA", folder_.file("no_assets"));
  const Ran by_default = run_sinew(folder_.file(""), {"hands", "photo.png", "--box", "40,30,110,95",
                                                      "--model", tiny_model(), "--policy", "f32", "--json"});
  EXPECT_EQ(by_default.status, 0) << "boxes are enough";
  EXPECT_EQ(lines_of(by_default.err), 1);
  EXPECT_THAT(by_default.err, HasSubstr("the skeleton alone is posed"));
  EXPECT_EQ(Json::parse(by_default.out).at("hand_model"), "builtin-skeleton");
  EXPECT_FALSE(exists("sinew_out"));
}

TEST_F(CliHands, WithoutAModelAndADetectorNothingIsLeft) {
  const Ran ran = run_sinew(folder_.file(""), {"hands", "photo.png", "--detector", "none"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("--detector none without --model"));
}

TEST_F(CliHands, IntrinsicsMakeTheTranslationMetric) {
  const Json assumed = record({"photo.png", "--box", "40,30,110,95"});
  EXPECT_EQ(assumed["camera"], Json({{"fx", 3125.0}, {"fy", 3125.0}, {"cx", 80.0}, {"cy", 60.0}}));
  const Json real = record({"photo.png", "--box", "40,30,110,95", "--intrinsics", "200,200,90,50"});
  EXPECT_EQ(real["camera"], Json({{"fx", 200.0}, {"fy", 200.0}, {"cx", 90.0}, {"cy", 50.0}}));
  EXPECT_EQ(real["focal_length"], 200.0);
  EXPECT_EQ(real["cam"], assumed["cam"]);
  // The same picture from nearer: depth goes with the focal length.
  EXPECT_NEAR(real["cam_t_full"][2].get<double>(), assumed["cam_t_full"][2].get<double>() * 200 / 3125, 1e-9);
  for (const char* wrong :
       {"200,200,90", "200,200,90,50,1", "0,200,90,50", "200,-1,90,50", "a,b,c,d", "", "200,200,nan,50"}) {
    const Ran ran = hands({"photo.png", "--box", "40,30,110,95", "--intrinsics", wrong});
    EXPECT_EQ(ran.status, *wrong == '\0' ? 0 : 2) << wrong << ": empty is not given";
  }
}

TEST_F(CliHands, KnownJointsAreComparedWith) {
  Json truth = {{"is_right", 1}, {"joints_px", Json::array()}, {"joints_m", Json::array()}};
  const Json hand = record({"photo.png", "--box", "40,30,110,95"});
  for (std::size_t i = 0; i < 21; ++i) {
    truth["joints_px"].push_back({hand["joints_2d"][i][0].get<double>() + 3, hand["joints_2d"][i][1]});
    truth["joints_m"].push_back(hand["joints_3d"][i]);
  }
  write_file_atomically(folder_.file("joints.json"), truth.dump());
  const Ran ran = hands({"photo.png", "--box", "40,30,110,95", "--truth", "joints.json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("error against the known joints 3.00 px"));
  EXPECT_THAT(ran.out, HasSubstr("in 3D after alignment 0.0 mm, side right"));
  const Ran wrong = hands({"photo.png", "--box", "40,30,110,95", "--truth", "photo.png"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("photo.png"));
}

TEST_F(CliHands, SavesTheMeshWhereThereIsOne) {
  write_file_atomically(folder_.file("hand.glb"), skeleton_glb().build());
  const Ran saved = hands({"photo.png", "--box", "40,30,110,95,left", "--hand-model", "hand.glb", "--out",
                           "out", "--save", "obj,ply,glb,npz,json,png"});
  ASSERT_EQ(saved.status, 0) << saved.err;
  for (const char* file : {"obj", "ply", "glb", "npz", "json", "png"}) {
    EXPECT_TRUE(exists(std::string("out/photo_0.") + file)) << file;
  }
  const Ran some = hands({"photo.png", "--box", "40,30,110,95,left", "--hand-model", "hand.glb", "--out",
                          "some", "--save", "obj"});
  ASSERT_EQ(some.status, 0) << some.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.file("some")), {}), 1) << "what was asked for";
  const Ran no_mesh = hands({"photo.png", "--box", "40,30,110,95", "--out", "none", "--save", "obj"});
  EXPECT_EQ(no_mesh.status, 2);
  EXPECT_THAT(no_mesh.err, HasSubstr("--save obj needs a mesh"));
  const Ran unknown =
      hands({"photo.png", "--box", "40,30,110,95", "--hand-model", "hand.glb", "--save", "stl"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("'stl'"));
  EXPECT_FALSE(exists("none"));
}

TEST_F(CliHands, SaysWhereThingsAre) {
  const Ran ran = hands({"photo.png", "--box", "40,30,110,95,left"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("photo.png hand 0: left"));
  EXPECT_THAT(ran.out, HasSubstr("sinew_out/photo_0.png"));
  EXPECT_TRUE(exists("sinew_out/photo_0.png"));
  EXPECT_TRUE(exists("sinew_out/photo_0.json"));
}

TEST_F(CliHands, JsonAloneWritesNoFile) {
  record({"photo.png", "--box", "40,30,110,95"});
  EXPECT_THAT(folder_.names(), UnorderedElementsAre("photo.png"));
}

TEST_F(CliHands, WithoutDetectorAndBoxTheWholeImageIsTaken) {
  EXPECT_EQ(record({"photo.png", "--detector", "none"}).at("bbox"), Json({0.0, 0.0, 160.0, 120.0}));
}

TEST_F(CliHands, IsDeterministic) {
  const Json first = without_timings(record({"photo.png", "--box", "40,30,110,95"}));
  EXPECT_EQ(first, without_timings(record({"photo.png", "--box", "40,30,110,95"})));
}

/// hostile_inputs row 34, through files and the program.
TEST_F(CliHands, LeftHandIsTheMirroredRightHand) {
  write_image(folder_.file("mirror.png"), mirrored(test_frame()));
  // 60 wide: a square of 160 pixels. (An odd side has no centre on the pixel grid; its two squares would lie
  // a pixel apart.)
  const Json left = record({"photo.png", "--box", "40,30,100,95,left"});
  const Json right = record({"mirror.png", "--box", "60,30,120,95,right"});
  EXPECT_EQ(left.at("is_right"), false);
  EXPECT_EQ(left.at("rotmats"), right.at("rotmats"));
  EXPECT_EQ(left.at("betas"), right.at("betas"));
  EXPECT_EQ(left.at("cam"), right.at("cam"));
  EXPECT_EQ(left["cam_t_full"][0].get<double>(), -right["cam_t_full"][0].get<double>());
  for (std::size_t i = 0; i < 21; ++i) {
    EXPECT_NEAR(left["joints_2d"][i][0].get<double>(), 160 - right["joints_2d"][i][0].get<double>(), 1e-9)
        << i;
    EXPECT_EQ(left["joints_2d"][i][1], right["joints_2d"][i][1]) << i;
    EXPECT_EQ(left["joints_3d"][i][0].get<double>(), -right["joints_3d"][i][0].get<double>()) << i;
  }
  EXPECT_NE(left.at("rotmats"), record({"photo.png", "--box", "40,30,100,95,right"}).at("rotmats"));
}

TEST_F(CliHands, CropRescaleAndInputAreUsed) {
  const std::vector<std::string> base = {"photo.png", "--box", "40,30,110,95"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = base;
    all.insert(all.end(), more.begin(), more.end());
    return record(all);
  };
  const Json plain = record(base);
  const Json opencv = with({"--crop", "opencv"});
  EXPECT_EQ(opencv.at("crop"), "opencv");
  EXPECT_NE(opencv.at("rotmats"), plain.at("rotmats"));
  const Json rescaled = with({"--rescale", "2.5"});
  EXPECT_EQ(rescaled.at("rescale"), 2.5);
  EXPECT_FLOAT_EQ(rescaled.at("box_size").get<float>(), 1.25F * plain.at("box_size").get<float>());
  EXPECT_NE(rescaled.at("rotmats"), plain.at("rotmats"));
  // Bytes in, normalisation folded into the weights: the same hand up to float rounding of the fold (spec
  // hamer 7.3: 2e-4 of the largest value; rotations and cam are of order one).
  const Json bytes = with({"--input", "u8"});
  for (std::size_t j = 0; j < 16; ++j) {
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(bytes["rotmats"][j][r][c].get<double>(), plain["rotmats"][j][r][c].get<double>(), 2e-4);
      }
    }
  }
  // The slow oracle in double agrees with the fast path in float.
  const Json reference = Json::parse(
      run_sinew(folder_.file(""), {"hands", "photo.png", "--box", "40,30,110,95", "--json", "--model",
                                   tiny_model(), "--backend", "reference", "--hand-model", "skeleton"})
          .out);
  EXPECT_EQ(reference.at("policy"), "f64");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(reference["cam"][i].get<double>(), plain["cam"][i].get<double>(), 2e-5);
  }
}

TEST_F(CliHands, SeveralHandsOfOneImage) {
  const Ran ran = hands(
      {"photo.png", "--box", "40,30,110,95,left", "--box", "5,5,60,60,right", "--out", "out", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  ASSERT_EQ(lines_of(ran.out), 2);
  const Json first = Json::parse(ran.out.substr(0, ran.out.find('\n')));
  const Json second = Json::parse(ran.out.substr(ran.out.find('\n')));
  EXPECT_EQ(first.at("hand"), 0);
  EXPECT_EQ(first.at("is_right"), false);
  EXPECT_EQ(second.at("hand"), 1);
  EXPECT_EQ(second.at("bbox"), Json({5.0, 5.0, 60.0, 60.0}));
  for (const char* name : {"out/photo_0.png", "out/photo_0.json", "out/photo_1.png", "out/photo_1.json"})
    EXPECT_TRUE(exists(name));
  // One session, run twice: what came first must not show in what comes second.
  EXPECT_EQ(without_timings(second).at("rotmats"), record({"photo.png", "--box", "5,5,60,60"}).at("rotmats"));
}

TEST_F(CliHands, BoxesFileNamesHandsPerImage) {
  write_image(folder_.file("other.png"), test_frame(96, 64, 2));
  write_image(folder_.file("none.png"), test_frame(50, 40, 3));
  write_file_atomically(
      folder_.file("boxes.json"),
      R"({"images": [{"file": "photo.png", "size": [160, 120], "hands": [[40, 30, 110, 95, 0]]},)"
      R"({"file": "other.png", "hands": [[1, 2, 60, 50, 1], [30, 20, 90, 60]]}, {"file": "none.png", "hands": []}]})");
  const Ran ran = hands({"photo.png", folder_.file("other.png"), "none.png", "--boxes", "boxes.json",
                         "--json", "--out", "out"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(lines_of(ran.out), 3);
  EXPECT_EQ(lines_of(ran.err), 1);
  EXPECT_THAT(ran.err, HasSubstr("none.png: its list of boxes is empty"));
  EXPECT_EQ(Json::parse(read_text(folder_.file("out/photo_0.json"))).at("is_right"), false);
  EXPECT_EQ(Json::parse(read_text(folder_.file("out/other_1.json"))).at("bbox"),
            Json({30.0, 20.0, 90.0, 60.0}));
}

TEST_F(CliHands, BoxesFileMustFitTheImages) {
  write_file_atomically(
      folder_.file("size.json"),
      R"({"images": [{"file": "photo.png", "size": [120, 160], "hands": [[1, 2, 3, 4]]}]})");
  write_file_atomically(folder_.file("other.json"), R"({"images": []})");
  write_file_atomically(folder_.file("bad.json"),
                        R"({"images": [{"file": "photo.png", "hands": [[1, 2, 3]]}]})");
  const struct {
    const char* file;
    const char* message;
  } cases[] = {{"size.json", "160 x 120 pixels, size.json says 120 x 160"},
               {"other.json", "photo.png: no entry in other.json"},
               {"bad.json", "bad.json: images[0], hand 0 must be"},
               {"missing.json", "missing.json"}};
  for (const auto& c : cases) {
    const Ran ran = hands({"photo.png", "--boxes", c.file, "--out", "out"});
    EXPECT_EQ(ran.status, 1) << c.file;
    EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(c.message));
    EXPECT_FALSE(exists("out"));
  }
}

TEST_F(CliHands, OneBadImageDoesNotStopTheOthers) {
  write_file_atomically(folder_.file("text.png"), "not a picture\n");
  write_image(folder_.file("last.jpg"), test_frame(80, 60, 4));
  const Ran ran = hands({"photo.png", "text.png", "missing.png", "last.jpg", "--out", "out"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(lines_of(ran.out), 4) << "the model, two hands, the sum";
  EXPECT_THAT(ran.out, HasSubstr("4 images: 2 hands, 0 images without a hand, 2 failed"));
  EXPECT_TRUE(exists("out/photo_0.png"));
  EXPECT_TRUE(exists("out/last_0.png"));
  EXPECT_FALSE(exists("out/text_0.png"));
  // The failures together at the end.
  EXPECT_EQ(lines_of(ran.err), 2) << ran.err;
  const auto text = ran.err.find("sinew: error: text.png: neither JPEG");
  const auto missing = ran.err.find("sinew: error: missing.png: no such file");
  ASSERT_NE(text, std::string::npos) << ran.err;
  ASSERT_NE(missing, std::string::npos) << ran.err;
  EXPECT_LT(text, missing);
}

TEST_F(CliHands, EqualNamesInTwoFoldersDoNotOverwriteEachOther) {
  fs::create_directories(folder_.file("a"));
  fs::create_directories(folder_.file("b"));
  write_image(folder_.file("a/x.png"), test_frame(80, 60, 5));
  write_image(folder_.file("b/x.png"), test_frame(90, 70, 6));
  const Ran ran = hands({"a/x.png", "b/x.png", "--out", "out"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(read_image(folder_.file("out/0_x_all.png")).width, 80);
  EXPECT_EQ(read_image(folder_.file("out/1_x_all.png")).width, 90);
}

TEST_F(CliHands, FoldersAndPatternsStandForTheirPictures) {
  fs::create_directories(folder_.file("in/below"));
  write_image(folder_.file("in/a.png"), test_frame(80, 60, 5));
  write_image(folder_.file("in/b.jpg"), test_frame(90, 70, 6));
  write_image(folder_.file("in/below/c.png"), test_frame(70, 50, 7));
  write_file_atomically(folder_.file("in/notes.txt"), "no picture");
  const auto records = [&](std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Ran ran = hands(std::move(arguments));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return lines_of(ran.out);
  };
  EXPECT_EQ(records({"in"}), 2);
  EXPECT_EQ(records({"in", "--recursive"}), 3);
  EXPECT_EQ(records({"in/*.png"}), 1);
  const Ran nothing = hands({"*.bmp"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("*.bmp"));
  const Ran circle = hands({"in", "--out", "in"});
  EXPECT_EQ(circle.status, 2);
  EXPECT_THAT(circle.err, HasSubstr("a folder that pictures are read from"));
}

}  // namespace
}  // namespace sinew::cli_test

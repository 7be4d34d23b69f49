// `sinew synth`, and finding a model in the folders that users have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_assets.h"
#include "cli_support.h"
#include "hand/boxes.h"
#include "hand/picture.h"
#include "hand/truth.h"
#include "io/test_zip.h"
#include "models/hamer/load.h"

namespace sinew::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CliSynth : public testing::Test {
 protected:
  Ran sinew(const std::vector<std::string>& arguments) { return run_sinew(folder_.file(""), arguments); }
  /// A model of 11 MB: the head has its real width.
  void synth(const std::string& out, std::vector<std::string> more) {
    more.insert(more.begin(), {"synth", "hamer", "--out", out, "--width", "80", "--mlp", "160", "--depth",
                               "1", "--head-depth", "1", "--dtype", "bf16"});
    const Ran ran = sinew(more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    EXPECT_THAT(ran.out, HasSubstr(out + "/"));
  }

  TestFolder folder_;
};

TEST_F(CliSynth, SameSeedSameBytes) {
  synth("a", {"--seed", "3", "--threads", "1"});
  synth("b", {"--seed", "3", "--threads", "3"});
  synth("c", {"--seed", "4"});
  EXPECT_EQ(read_text(folder_.file("a/hamer.ckpt")), read_text(folder_.file("b/hamer.ckpt")))
      << "threads must not matter";
  EXPECT_NE(read_text(folder_.file("a/hamer.ckpt")), read_text(folder_.file("c/hamer.ckpt")));
  EXPECT_EQ(read_text(folder_.file("a/model_config.yaml")), read_text(folder_.file("c/model_config.yaml")));
  const hamer::Model model = hamer::load_model(folder_.file("a"));
  EXPECT_EQ(model.config.embed, 80);
  EXPECT_EQ(model.config.mlp, 160);
  EXPECT_EQ(model.config.depth, 1);
  EXPECT_EQ(model.config.head_dim, 1024);
  EXPECT_EQ(model.config.head_heads, 8);
  EXPECT_THAT(model.config_path, HasSubstr("a/model_config.yaml"));
}

TEST_F(CliSynth, Hpg1IsTheGoldensGenerator) {
  synth("m", {"--generator", "hpg1", "--seed", "1", "--format", "safetensors"});
  const auto file = open_safetensors(folder_.file("m/model.safetensors"));
  // Golden README, section 2: check values of seed 1. init_* do not hang on the width, and are exact in f32
  // only.
  const auto check = [&](const std::string& name, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double exact = expected[i];
      EXPECT_EQ(element(file->get(name), static_cast<std::int64_t>(i)),
                to_f32(to_bf16(static_cast<float>(exact))))
          << name << i;
    }
  };
  check("mano_head.init_hand_pose", {0.93505859375, 0.12158203125, 0.05517578125, 0.06005859375});
  check("mano_head.init_cam", {0.8734130859375, 0.0306396484375, -0.0235595703125});
  check("mano_head.decpose.weight",
        {0.003204345703125, 0.001007080078125, 0.003997802734375, 0.003509521484375});
  check("backbone.pos_embed", {0.060791015625, -0.032470703125, -0.001708984375, -0.032958984375});
}

TEST_F(CliSynth, RefusesImpossibleSizesAndLeavesNothing) {
  const std::vector<std::vector<std::string>> cases = {{"--width", "81"},
                                                       {"--width", "0"},
                                                       {"--width", "-80"},
                                                       {"--width", "80", "--depth", "0"},
                                                       {"--depth", "-1"},
                                                       {"--depth", "1000000"},
                                                       {"--head-depth", "0"},
                                                       {"--mlp", "70000"},
                                                       {"--threads", "-1"},
                                                       {"--seed", "-1"},
                                                       {"--seed", "x"},
                                                       {"--width", "99999999999999999999"},
                                                       {"--format", "zip"},
                                                       {"--dtype", "f16"},
                                                       {"--generator", "uniform"},
                                                       {"--widht", "80"}};
  for (const auto& options : cases) {
    std::vector<std::string> all = {"synth", "hamer", "--out", "m"};
    // Were it accepted, at least it would be small.
    if (options.size() == 2 && options[0] != "--width" && options[0] != "--depth") {
      all.insert(all.end(), {"--width", "80", "--depth", "1"});
    }
    all.insert(all.end(), options.begin(), options.end());
    const Ran ran = sinew(all);
    EXPECT_EQ(ran.status, 2) << options[0] << " " << options[1] << ran.err;
    EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
    EXPECT_FALSE(fs::exists(folder_.file("m"))) << options[0] << " " << options[1];
  }
}

TEST_F(CliSynth, PictureAndItsBoxGoTogether) {
  // A name that JSON has to escape.
  const std::string name = "my \"hand\".png";
  const Ran ran = sinew({"synth", "picture", "--out", name, "--boxes", "boxes.json", "--width", "96",
                         "--height", "64", "--seed", "2"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Image image = read_image(folder_.file(name));
  EXPECT_EQ(image.width, 96);
  EXPECT_EQ(image.height, 64);
  const auto boxes = read_boxes(folder_.file("boxes.json"));
  ASSERT_EQ(boxes.count(name), 1U);
  EXPECT_EQ(boxes.at(name).width, 96);
  ASSERT_EQ(boxes.at(name).hands.size(), 1U);
  EXPECT_NO_THROW(check_box(boxes.at(name).hands[0], 96, 64));
  EXPECT_TRUE(boxes.at(name).hands[0].is_right);
  const Ran hands = sinew({"hands", name, "--boxes", "boxes.json", "--model", tiny_model(), "--json"});
  EXPECT_EQ(hands.status, 0) << hands.err;
  EXPECT_EQ(lines_of(hands.out), 1);

  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--out", "p.gif", "--width", "64", "--height", "64"},
        {"--out", "p.png", "--width", "10"},
        {"--out", "p.png", "--height", "-5"},
        {}}) {
    std::vector<std::string> all = {"synth", "picture"};
    all.insert(all.end(), options.begin(), options.end());
    const Ran bad = sinew(all);
    EXPECT_EQ(bad.status, 2) << bad.err;
    EXPECT_EQ(lines_of(bad.err), 1) << bad.err;
  }
  EXPECT_THAT(folder_.names(), UnorderedElementsAre(name, "boxes.json"));
}

TEST_F(CliSynth, PictureAndItsJointsGoTogether) {
  const Ran ran = sinew({"synth", "picture", "--out", "p.png", "--joints", "joints.json", "--hand-model",
                         "capsules", "--width", "96", "--height", "80"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("right of capsules"));
  const HandTruth truth = read_truth(folder_.file("joints.json"));
  EXPECT_TRUE(truth.is_right);
  const HandPicture drawn = draw_hand_picture(96, 80, 0);
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    EXPECT_DOUBLE_EQ(truth.pixels[i][0], drawn.joints_2d[i][0]);
    EXPECT_DOUBLE_EQ(truth.metres[i][2], drawn.joints_3d[i][2]);
  }
  const Ran left =
      sinew({"synth", "picture", "--out", "q.png", "--hand-model", "capsules", "--side", "left"});
  EXPECT_EQ(left.status, 2);
  EXPECT_EQ(lines_of(left.err), 1) << left.err;
  const Ran missing = sinew({"synth", "picture", "--out", "q.png", "--hand-model", "nothing.glb"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_EQ(lines_of(missing.err), 1) << missing.err;
  EXPECT_THAT(folder_.names(), UnorderedElementsAre("p.png", "joints.json"));
}

TEST_F(CliSynth, PictureOfAMesh) {
  const auto mesh = asset_file("generic_hand_right.glb");
  if (!mesh) GTEST_SKIP() << kNoAssets;
  for (const std::string side : {"right", "left"}) {
    const Ran ran = sinew({"synth", "picture", "--out", side + ".png", "--joints", side + ".json", "--boxes",
                           "boxes.json", "--hand-model", *mesh, "--side", side, "--width", "96", "--height",
                           "80", "--seed", "3"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const HandTruth truth = read_truth(folder_.file(side + ".json"));
    EXPECT_EQ(truth.is_right, side == "right");
    const HandBox box = read_boxes(folder_.file("boxes.json")).at(side + ".png").hands[0];
    EXPECT_EQ(box.is_right, side == "right");
    for (const Vec2& p : truth.pixels) {
      EXPECT_GT(p[0], box.x1 - 1);
      EXPECT_LT(p[0], box.x2 + 1);
    }
  }
}

/// The published archive unpacks into _DATA; the checkpoint may lack init_*, which then come from the npz
/// (spec hamer 2.1).
class ModelFolder : public testing::Test {
 protected:
  ModelFolder() {
    fs::create_directories(folder_.file("_DATA/hamer_ckpts/checkpoints"));
    fs::create_directories(folder_.file("_DATA/data"));
    Damage damage;
    damage.missing = kInit;
    write_tiny(checkpoint_, damage);
    hamer::Config config = tiny_config();
    config.focal_length = 1234;  // to see that it was read
    write_file_atomically(folder_.file("_DATA/hamer_ckpts/model_config.yaml"),
                          hamer::synthetic_config_yaml(config));
  }
  /// The three arrays that the dropped buffers had, as numpy.savez stores them.
  void write_mean_params(bool complete = true) {
    TestZip zip;
    const std::vector<std::string> keys = {"pose", "shape", "cam"};
    for (std::size_t k = 0; k < (complete ? 3U : 2U); ++k) {
      const hamer::ExpectedTensor tensor = {kInit[k], {1, kCounts[k]}};
      std::vector<float> values(static_cast<std::size_t>(kCounts[k]));
      hamer::synth_values(hamer::Generator::kNormal, 0, tensor, 0, kCounts[k], values.data());
      zip.add(keys[k] + ".npy", npy(values));
    }
    write_file_atomically(folder_.file("_DATA/data/mano_mean_params.npz"), zip.build());
  }
  static std::string npy(const std::vector<float>& values) {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.size());
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(header.size() & 0xff);
    out += static_cast<char>(header.size() >> 8);
    return out + header + std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  }

  const std::vector<std::string> kInit = {"mano_head.init_hand_pose", "mano_head.init_betas",
                                          "mano_head.init_cam"};
  const std::vector<std::int64_t> kCounts = {96, 10, 3};
  TestFolder folder_;
  const std::string checkpoint_ = folder_.file("_DATA/hamer_ckpts/checkpoints/hamer.ckpt");
};

TEST_F(ModelFolder, PublishedLayoutIsFoundFromAnyOfItsFolders) {
  write_mean_params();
  const hamer::Model whole = hamer::load_model(tiny_model());
  for (const char* start : {"", "_DATA", "_DATA/hamer_ckpts", "_DATA/hamer_ckpts/checkpoints",
                            "_DATA/hamer_ckpts/checkpoints/hamer.ckpt"}) {
    const hamer::Model model = hamer::load_model(folder_.file(start));
    EXPECT_EQ(fs::canonical(model.checkpoint_path), fs::canonical(checkpoint_)) << start;
    EXPECT_EQ(model.config.focal_length, 1234) << start;
    EXPECT_THAT(model.mean_params_path, HasSubstr("mano_mean_params.npz")) << start;
    for (std::size_t k = 0; k < 3; ++k) {
      const TensorView& view = model.sources.get(kInit[k]);
      EXPECT_EQ(view.shape, (Shape{1, kCounts[k]}));
      for (std::int64_t i = 0; i < kCounts[k]; ++i)
        EXPECT_EQ(element(view, i), element(whole.sources.get(kInit[k]), i));
    }
  }
}

TEST_F(ModelFolder, TheProgramRunsIt) {
  write_mean_params();
  write_image(folder_.file("photo.png"), test_frame());
  const auto record = [&](const std::string& model) {
    const Ran ran = run_sinew(folder_.file(""), {"hands", "photo.png", "--box", "40,30,110,95", "--model",
                                                 model, "--policy", "f32", "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out.substr(ran.out.find("\"rotmats\""),
                          ran.out.find("\"cam_t_full\"") - ran.out.find("\"rotmats\""));
  };
  EXPECT_EQ(record("_DATA"), record(tiny_model())) << "the npz holds what the checkpoint lacks";
}

TEST_F(ModelFolder, BuffersInTheCheckpointWin) {
  write_mean_params();
  write_tiny(checkpoint_);
  EXPECT_EQ(hamer::load_model(folder_.file("_DATA")).mean_params_path, "");
}

TEST_F(ModelFolder, WithoutMeanParametersTheThreeBuffersAreNamed) {
  try {
    hamer::load_model(folder_.file("_DATA"));
    FAIL() << "loaded without mean parameters";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMismatch);
    for (const std::string& name : kInit) EXPECT_THAT(error.what(), HasSubstr(name));
  }
  write_mean_params(false);
  try {
    hamer::load_model(folder_.file("_DATA"));
    FAIL() << "loaded with incomplete mean parameters";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("mano_mean_params.npz"));
    EXPECT_THAT(error.what(), HasSubstr("cam"));
  }
  write_file_atomically(folder_.file("_DATA/data/mano_mean_params.npz"), "PK\x03\x04 damaged");
  EXPECT_THROW(hamer::load_model(folder_.file("_DATA")), Error);
}

TEST(FindCheckpoint, PrefersKnownNamesAndRefusesToGuess) {
  const TestFolder folder;
  try {
    hamer::find_checkpoint(folder.file(""));
    FAIL() << "found one in an empty folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("hamer.ckpt"));
    EXPECT_THAT(error.what(), HasSubstr("model.safetensors"));
  }
  write_file_atomically(folder.file("only.pth"), "x");
  EXPECT_THAT(hamer::find_checkpoint(folder.file("")), HasSubstr("only.pth"));
  write_file_atomically(folder.file("second.safetensors"), "x");
  try {
    hamer::find_checkpoint(folder.file(""));
    FAIL() << "guessed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("several"));
    EXPECT_THAT(error.what(), HasSubstr("only.pth"));
    EXPECT_THAT(error.what(), HasSubstr("second.safetensors"));
  }
  write_file_atomically(folder.file("model.safetensors"), "x");
  EXPECT_THAT(hamer::find_checkpoint(folder.file("")), HasSubstr("model.safetensors"));
  fs::create_directories(folder.file("hamer.ckpt"));
  EXPECT_THAT(hamer::find_checkpoint(folder.file("")), HasSubstr("model.safetensors"))
      << "a folder of that name is none";
}

}  // namespace
}  // namespace sinew::cli_test

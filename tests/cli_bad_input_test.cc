// What users get wrong and what the network of cables does to files: one clear line, exit 1 (2 for usage),
// nothing left behind, no crash.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli_support.h"
#include "models/hamer/load.h"

namespace sinew::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAreArray;

class CliBadInput : public testing::Test {
 protected:
  CliBadInput() {
    write_image(folder_.file("photo.png"), test_frame());
    write_file_atomically(folder_.file("text.png"), "This is no picture.\n");
    write_file_atomically(folder_.file("empty.png"), "");
    fs::create_directories(folder_.file("folder.png"));
    Tensor image(DType::kF32, {1, 3, 256, 192});
    write_safetensors(folder_.file("x.safetensors"), {{"image", image}});
  }

  /// Runs it and demands the whole contract of a failure; returns the line.
  std::string refused(const std::vector<std::string>& arguments, int status) {
    const auto before = folder_.names();
    const Ran ran = run_sinew(folder_.file(""), arguments);
    const std::string what = fmt::format("{}: {}", fmt::join(arguments, " "), ran.err);
    EXPECT_EQ(ran.status, status) << what;
    EXPECT_EQ(lines_of(ran.err), 1) << what;
    EXPECT_THAT(ran.err, StartsWith("sinew: error: ")) << what;
    EXPECT_EQ(ran.out, "") << what;
    EXPECT_THAT(folder_.names(), UnorderedElementsAreArray(before)) << "left something: " << what;
    return ran.err;
  }
  /// `sinew hands` on a box or the whole image, posing the skeleton: no assets are needed, none are missed.
  static std::vector<std::string> hands(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"hands", "--hand-model", "skeleton", "--detector", "none"});
    return arguments;
  }
  /// By every verb that takes an image and a box.
  void refused_image(const std::string& image, const std::string& box, const std::string& message) {
    EXPECT_THAT(refused(hands({image, "--box", box, "--model", tiny_model(), "--out", "out"}), 1),
                HasSubstr(message));
    EXPECT_THAT(refused(hands({image, "--box", box, "--model", tiny_model(), "--json"}), 1),
                HasSubstr(message));
    EXPECT_THAT(refused({"crop", image, "--box", box, "--out", "out.png"}, 1), HasSubstr(message));
    EXPECT_THAT(refused({"crop", image, "--box", box, "--out", "out.safetensors"}, 1), HasSubstr(message));
  }
  /// By every verb that takes a model.
  void refused_model(const std::string& model, const std::string& message) {
    EXPECT_THAT(refused(hands({"photo.png", "--model", model, "--out", "out"}), 1), HasSubstr(message));
    EXPECT_THAT(refused({"run", model, "--in", "x.safetensors", "--out", "y.safetensors"}, 1),
                HasSubstr(message));
  }

  TestFolder folder_;
};

TEST_F(CliBadInput, Images) {
  refused_image("missing.png", "1,1,9,9", "missing.png: no such file");
  refused_image("text.png", "1,1,9,9", "text.png: neither JPEG");
  refused_image("empty.png", "1,1,9,9", "empty.png");
  refused_image("folder.png", "1,1,9,9", "folder.png");
}

TEST_F(CliBadInput, Boxes) {
  refused_image("photo.png", "200,10,250,60", "photo.png: hand box x 200 to 250");
  refused_image("photo.png", "-50,10,-10,60", "touches the frame of 160 x 120");
  refused_image("photo.png", "10,10,10,60", "expected x1 < x2");
  refused_image("photo.png", "10,10,60,10", "expected x1 < x2 and y1 < y2");
  refused_image("photo.png", "60,10,10,60", "expected x1 < x2");
  refused_image("photo.png", "0,0,0,0", "expected x1 < x2");
  refused_image("photo.png", "nan,10,60,60", "four finite numbers");
  refused_image("photo.png", "10,10,60,-nan", "four finite numbers");
  refused_image("photo.png", "10,10,inf,60", "four finite numbers");
  refused_image("photo.png", "-1e308,10,1e308,60", "at most 65536");
}

TEST_F(CliBadInput, UsageIsTwo) {
  const std::string& model = tiny_model();
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"no-such-verb"},
      {"hands"},
      {"hands", "photo.png", "--detector", "none"},
      {"hands", "photo.png", "--detector", "eyes"},
      {"hands", "photo.png", "--max-hands", "0"},
      {"hands", "photo.png", "--min-score", "1.5"},
      {"hands", "photo.png", "--min-score", "nan"},
      {"hands", "photo.png", "--intrinsics", "1,2,3"},
      {"hands", "photo.png", "--save", "stl"},
      {"hands", "--model", model},
      {"hands", "photo.png", "--model", model, "--no-such-option"},
      {"hands", "photo.png", "--model"},
      {"hands", "photo.png", "--model", model, "--box", "1,2,3"},
      {"hands", "photo.png", "--model", model, "--box", "a,b,c,d"},
      {"hands", "photo.png", "--model", model, "--box", "1,2,3,4,middle"},
      {"hands", "photo.png", "x.png", "--model", model, "--box", "1,2,3,4"},
      {"hands", "photo.png", "--model", model, "--box", "1,2,3,4", "--boxes", "b.json"},
      {"hands", "photo.png", "--model", model, "--rescale", "0"},
      {"hands", "photo.png", "--model", model, "--rescale", "nan"},
      {"hands", "photo.png", "--model", model, "--rescale", "two"},
      {"hands", "photo.png", "--model", model, "--crop", "scissors"},
      {"hands", "photo.png", "--model", model, "--policy", "f16"},
      {"hands", "photo.png", "--model", model, "--backend", "gpu"},
      {"hands", "photo.png", "--model", model, "--input", "f64"},
      {"hands", "photo.png", "--model", model, "--threads", "-1"},
      {"hands", "photo.png", "--model", model, "--threads", "99999"},
      {"hands", "photo.png", "--model", model, "--threads", "1e3"},
      {"run", model},
      {"run", model, "--in", "x.safetensors"},
      {"run", "--in", "x.safetensors", "--out", "y.safetensors"},
      {"crop", "photo.png"},
      {"crop", "photo.png", "--box", "1,1,9", "--out", "c.png"},
      {"crop", "photo.png", "--box", "1,1,9,9", "--out", "c.gif"},
      {"crop", "photo.png", "--box", "1,1,9,9", "--out", "c"},
      {"crop", "photo.png", "--box", "1,1,9,9", "--rescale", "-1", "--out", "c.png"},
      {"inspect"},
      {"compare", "x.safetensors"},
      {"compare", "x.safetensors", "x.safetensors", "--rtol", "x"},
      {"synth"},
      {"synth", "foot"}};
  for (const auto& arguments : cases) refused(arguments, 2);
  EXPECT_THAT(refused({"hadns"}, 2), HasSubstr("no verb is called hadns; there are hands"));
}

TEST_F(CliBadInput, HostileNamesStayOnOneLine) {
  EXPECT_THAT(refused(hands({"a\nb\x1b[2J.png", "--model", tiny_model()}), 1),
              HasSubstr("a\\x0ab\\x1b[2J.png: no such file"));
  refused({"inspect", "a\nb"}, 1);
  refused({"hands", "photo.png", "--model", tiny_model(), "--box", "1,2\n,3,4"}, 2);
}

TEST_F(CliBadInput, PlacesThatCannotBeWritten) {
  refused({"crop", "photo.png", "--box", "1,1,9,9", "--out", "no/such/folder/c.png"}, 1);
  refused({"crop", "photo.png", "--box", "1,1,9,9", "--out", "no/such/folder/c.safetensors"}, 1);
  refused(hands({"photo.png", "--box", "1,1,9,9", "--model", tiny_model(), "--out", "photo.png"}), 1);
  refused(hands({"photo.png", "--box", "1,1,9,9", "--model", tiny_model(), "--out", "photo.png/x"}), 1);
  refused({"synth", "hamer", "--out", "photo.png", "--depth", "1"}, 1);
}

TEST_F(CliBadInput, Checkpoints) {
  refused_model("missing.ckpt", "missing.ckpt: no such file");
  refused_model("text.png", "text.png");
  refused_model("empty.png", "empty.png");
  refused_model("folder.png", "folder.png: no checkpoint");
  refused_model("x.safetensors", "no HaMeR checkpoint");

  Damage missing;
  missing.missing = {"backbone.blocks.0.norm2.bias"};
  Damage reshaped;
  reshaped.reshaped = "mano_head.decpose.weight";
  for (const char* extension : {".safetensors", ".ckpt"}) {
    const std::string lacks = std::string("lacks") + extension;
    write_tiny(folder_.file(lacks), missing);
    refused_model(lacks, "1 of 46 tensors missing, 0 unusable: backbone.blocks.0.norm2.bias [80] is missing");
    const std::string wrong = std::string("wrong") + extension;
    write_tiny(folder_.file(wrong), reshaped);
    refused_model(wrong, "mano_head.decpose.weight has shape [1,96,64], expected [96,64]");
  }
}

TEST_F(CliBadInput, ConfigurationsThatContradictTheCheckpoint) {
  write_tiny(folder_.file("hamer.ckpt"));
  const auto with = [&](const std::string& text) {
    write_file_atomically(folder_.file("model_config.yaml"), text);
  };
  with("MODEL: {MANO_HEAD: {TRANSFORMER_DECODER: {depth: 6, context_dim: 1280}}}");
  refused_model("hamer.ckpt", "depth is 6, the tensors say 1");
  with("MODEL: {BACKBONE: {TYPE: resnet}}");
  refused_model("hamer.ckpt", "MODEL.BACKBONE.TYPE is resnet");
  with("MODEL: [1, 2\n  nonsense: {");
  refused_model("hamer.ckpt", "model_config.yaml: not YAML");
}

TEST_F(CliBadInput, TruncatedFiles) {
  for (const char* extension : {".safetensors", ".ckpt"}) {
    const std::string whole = read_text(write_tiny(folder_.file(std::string("whole") + extension)));
    const std::string cut = std::string("cut") + extension;
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{4096}, whole.size() / 8192 * 4096, whole.size() - 1}) {
      write_file_atomically(folder_.file(cut), whole.substr(0, size));
      refused_model(cut, cut);
    }
    EXPECT_THAT(refused({"inspect", cut}, 1), HasSubstr(cut));
    EXPECT_THAT(refused({"compare", cut, std::string("whole") + extension}, 1), HasSubstr(cut));
  }
  const std::string photo = read_text(folder_.file("photo.png"));
  for (const std::size_t size : {std::size_t{7}, std::size_t{4096}, photo.size() - 1}) {
    write_file_atomically(folder_.file("cut.png"), photo.substr(0, size));
    refused_image("cut.png", "1,1,9,9", "cut.png");
  }
}

/// In this process, so that every 4 KiB boundary is quick: the loader under the program.
class Truncation : public testing::TestWithParam<const char*> {};

TEST_P(Truncation, AtEvery4KiBIsOneLineThatNamesTheFile) {
  const TestFolder folder;
  const std::string name = std::string("cut") + GetParam();
  const std::string path = folder.file(name);
  const std::string whole = read_text(write_tiny(path));
  ASSERT_GT(whole.size(), 40U * 4096);
  EXPECT_NO_THROW(hamer::load_model(path));
  for (std::size_t size = 0; size < whole.size(); size += 4096) {
    fs::resize_file(path, 0);
    std::ofstream(path, std::ios::binary).write(whole.data(), static_cast<std::streamsize>(size));
    try {
      hamer::load_model(path);
      ADD_FAILURE() << "accepted when cut to " << size;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(name)) << size;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << size;
      EXPECT_NE(error.code(), ErrorCode::kUsage) << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Truncation, testing::Values(".safetensors", ".ckpt"),
                         [](const auto& info) { return std::string(info.param).substr(1); });

}  // namespace
}  // namespace sinew::cli_test

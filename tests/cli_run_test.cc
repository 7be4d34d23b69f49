// `sinew run`, `compare`, `crop` and `inspect` as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli_support.h"
#include "image/crop.h"

namespace sinew::cli_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBoxText = "40,30,110,95";
constexpr HandBox kBox = {40, 30, 110, 95, true};

class CliRun : public testing::Test {
 protected:
  CliRun() {
    write_image(folder_.file("photo.png"), test_frame());
    Tensor image(DType::kF32, {1, 3, 256, 192});
    normalise(cut(), image.as<float>().data());
    Tensor bytes(DType::kU8, {1, 3, 256, 192});
    to_chw_u8(cut(), bytes.as<std::uint8_t>().data());
    write_safetensors(folder_.file("x.safetensors"), {{"image", image}});
    write_safetensors(folder_.file("u8.safetensors"), {{"image", bytes}});
  }
  static Crop cut(bool is_right = true) {
    return crop(CropKind::kPillow, test_frame(), crop_geometry(kBox, 2.0), is_right);
  }
  Ran sinew(const std::vector<std::string>& arguments) { return run_sinew(folder_.file(""), arguments); }
  /// `sinew run` with the tiny model, quietly.
  void run(const std::string& in, const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"run", tiny_model(), "--in", in, "--out", out, "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = sinew(all);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
  }
  std::unique_ptr<Checkpoint> open(const std::string& name) { return open_safetensors(folder_.file(name)); }
  /// One line on stderr, the status, nothing written.
  void expect_refused(const std::vector<std::string>& arguments, int status, const std::string& message) {
    const Ran ran = sinew(arguments);
    EXPECT_EQ(ran.status, status) << ran.err;
    EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder_.file("y.safetensors")));
  }

  TestFolder folder_;
};

TEST_F(CliRun, OutputsHaveTheirNamesAndShapes) {
  run("x.safetensors", "y.safetensors");
  const auto file = open("y.safetensors");
  EXPECT_EQ(file->get("pose6d").shape, (Shape{1, 96}));
  EXPECT_EQ(file->get("betas").shape, (Shape{1, 10}));
  EXPECT_EQ(file->get("cam").shape, (Shape{1, 3}));
  EXPECT_EQ(file->get("rotmat").shape, (Shape{1, 16, 3, 3}));
  EXPECT_EQ(file->get("out157").shape, (Shape{1, 157}));
  EXPECT_EQ(file->get("out157").dtype, DType::kF32);
  EXPECT_EQ(file->metadata().at("policy"), "f32") << "f32 unless told otherwise, on any machine";
  EXPECT_EQ(file->metadata().count("backend"), 1U);
  EXPECT_EQ(file->metadata().count("program"), 1U);
  for (std::int64_t i = 0; i < 144; ++i)
    EXPECT_EQ(element(file->get("out157"), i), element(file->get("rotmat"), i));
}

/// Both programs on both backends give every stage the same values; `compare` says so, and says when it is
/// not so.
TEST_F(CliRun, ProgramsAndBackendsAgreeStageByStage) {
  run("x.safetensors", "truth.safetensors", {"--backend", "reference", "--program", "plain", "--trace"});
  const auto truth = open("truth.safetensors");
  EXPECT_EQ(truth->get("out157").dtype, DType::kF64);
  EXPECT_NE(truth->find("features"), nullptr);
  EXPECT_NE(truth->find("block.0.out"), nullptr);
  const struct {
    const char* name;
    std::vector<std::string> options;
    const char* rtol;  // the bars: 1e-6 for the reference in double, 2e-4 for f32, relative to a
                       // stage's largest value
  } cases[] = {{"a.safetensors", {"--backend", "reference", "--program", "fused", "--trace"}, "1e-6"},
               {"b.safetensors", {"--backend", "cpu", "--program", "plain", "--trace"}, "2e-4"},
               {"c.safetensors", {"--backend", "cpu", "--program", "fused", "--trace"}, "2e-4"}};
  for (const auto& c : cases) {
    run("x.safetensors", c.name, c.options);
    const Ran same =
        sinew({"compare", c.name, "truth.safetensors", "--rtol", c.rtol, "--atol", "0", "--json"});
    EXPECT_EQ(same.status, 0) << c.name << same.out << same.err;
    EXPECT_TRUE(Json::parse(same.out).is_object());
    EXPECT_GT(open(c.name)->tensors().size(), 20U) << c.name;
    const Ran strict = sinew({"compare", c.name, "truth.safetensors", "--rtol", "0", "--atol", "0"});
    EXPECT_EQ(strict.status, 1) << "not bit for bit the same: " << c.name;
    EXPECT_EQ(strict.err, "");
  }
  EXPECT_EQ(
      sinew({"compare", "truth.safetensors", "truth.safetensors", "--rtol", "0", "--atol", "0", "--strict"})
          .status,
      0);
  run("x.safetensors", "d.safetensors");
  EXPECT_EQ(sinew({"compare", "d.safetensors", "truth.safetensors", "--rtol", "2e-4"}).status, 0);
  EXPECT_EQ(sinew({"compare", "d.safetensors", "truth.safetensors", "--rtol", "2e-4", "--strict"}).status, 1)
      << "only one of them has the trace";
}

TEST_F(CliRun, BytesAndFilters) {
  run("x.safetensors", "float.safetensors");
  run("u8.safetensors", "bytes.safetensors", {"--input", "u8"});
  EXPECT_EQ(sinew({"compare", "bytes.safetensors", "float.safetensors", "--rtol", "2e-4"}).status, 0);
  run("x.safetensors", "only.safetensors", {"--trace", "--only", "block.0.*"});
  const auto only = open("only.safetensors");
  EXPECT_GT(only->tensors().size(), 0U);
  for (const auto& [name, view] : only->tensors()) EXPECT_TRUE(name.starts_with("block.0.")) << name;
}

TEST_F(CliRun, IsDeterministic) {
  run("x.safetensors", "a.safetensors");
  run("x.safetensors", "b.safetensors");
  EXPECT_EQ(read_text(folder_.file("a.safetensors")), read_text(folder_.file("b.safetensors")));
}

TEST_F(CliRun, RefusesInputsThatAreNotTheNetworks) {
  const auto write = [&](const std::string& name, const std::string& tensor, DType dtype,
                         const Shape& shape) {
    const Tensor value(dtype, shape);
    write_safetensors(folder_.file(name), {{tensor, value}});
    return name;
  };
  const auto refused = [&](const std::string& in, const std::string& message) {
    expect_refused({"run", tiny_model(), "--in", in, "--out", "y.safetensors"}, 1, message);
  };
  refused(write("other", "picture", DType::kF32, {1, 3, 256, 192}), "no tensor named image");
  refused(write("batch", "image", DType::kF32, {2, 3, 256, 192}), "batch of 2");  // hostile_inputs row 37
  refused(write("square", "image", DType::kF32, {1, 3, 256, 256}), "shape [1,3,256,256]");
  refused(write("rank", "image", DType::kF32, {256, 192}), "shape [256,192]");
  refused(write("ints", "image", DType::kI64, {1, 3, 256, 192}), "image is i64");
  refused("u8.safetensors", "--input u8 takes bytes");
  refused("missing.safetensors", "missing.safetensors: no such file");
  refused("photo.png", "photo.png");
  const std::vector<std::string> base = {"run",           tiny_model(), "--in",
                                         "x.safetensors", "--out",      "y.safetensors"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = base;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_refused(with({"--input", "u8"}), 1, "image is f32");
  expect_refused(with({"--input", "u8", "--program", "plain"}), 1, "which the plain program does not do");
  expect_refused(with({"--policy", "f64"}), 1, "f64");
  expect_refused(with({"--policy", "int3"}), 2, "no policy is called int3");
  expect_refused(with({"--only", "nothing*"}), 2, "no output has such a name");
  expect_refused(with({"--backend", "tpu"}), 2, "tpu");
  expect_refused({"run", "missing.ckpt", "--in", "x.safetensors", "--out", "y.safetensors"}, 1,
                 "missing.ckpt: no such file");
  expect_refused({"run", tiny_model(), "--in", "x.safetensors", "--out", "no/such/y.safetensors"}, 1,
                 "no/such/y.safetensors");
}

TEST_F(CliRun, CropIsWhatHandsFeeds) {
  for (const bool is_right : {true, false}) {
    const std::string box = std::string(kBoxText) + (is_right ? ",right" : ",left");
    ASSERT_EQ(sinew({"crop", "photo.png", "--box", box, "--out", "crop.png"}).status, 0);
    EXPECT_EQ(read_image(folder_.file("crop.png")).rgb, to_image(cut(is_right)).rgb);
    ASSERT_EQ(sinew({"crop", "photo.png", "--box", box, "--out", "crop.safetensors"}).status, 0);
    const auto file = open("crop.safetensors");
    std::vector<float> expected(std::size_t{3} * 256 * 192);
    normalise(cut(is_right), expected.data());
    ASSERT_EQ(file->get("image").shape, (Shape{1, 3, 256, 192}));
    EXPECT_EQ(0, std::memcmp(file->get("image").data, expected.data(), 4 * expected.size()));
    ASSERT_EQ(file->get("input.u8").shape, (Shape{1, 3, 256, 192}));

    run("crop.safetensors", "out.safetensors");
    const Ran ran = sinew({"hands", "photo.png", "--box", box, "--model", tiny_model(), "--policy", "f32",
                           "--threads", "1", "--json"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const Json record = Json::parse(ran.out);
    const auto out = open("out.safetensors");
    const TensorView& rotmat = out->get("rotmat");
    for (std::size_t i = 0; i < 144; ++i) {
      EXPECT_EQ(record["rotmats"][i / 9][i / 3 % 3][i % 3], element(rotmat, static_cast<std::int64_t>(i)))
          << i;
    }
  }
}

TEST_F(CliRun, CropOptions) {
  const Ran whole = sinew({"crop", "photo.png", "--out", "crop.png"});
  EXPECT_EQ(whole.status, 0);
  EXPECT_EQ(lines_of(whole.err), 1);
  EXPECT_THAT(whole.err, HasSubstr("no box given"));
  ASSERT_EQ(sinew({"crop", "photo.png", "--box", kBoxText, "--square", "--crop", "opencv", "--rescale", "1.5",
                   "--out", "crop.png"})
                .status,
            0);
  const Image square = read_image(folder_.file("crop.png"));
  EXPECT_EQ(square.width, 256);
  EXPECT_EQ(square.rgb,
            to_image(crop(CropKind::kOpenCV, test_frame(), crop_geometry(kBox, 1.5), true, true)).rgb);
  // Blurred pixels are not bytes any more: the file has the normalised image alone.
  write_image(folder_.file("large.png"), test_frame(300, 300));
  ASSERT_EQ(
      sinew({"crop", "large.png", "--box", "0,0,300,300", "--crop", "opencv", "--out", "blur.safetensors"})
          .status,
      0);
  EXPECT_EQ(open("blur.safetensors")->find("input.u8"), nullptr);
  EXPECT_NE(open("blur.safetensors")->find("image"), nullptr);
}

TEST_F(CliRun, InspectListsTensors) {
  const Ran text = sinew({"inspect", tiny_model()});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, HasSubstr("torch archive"));
  EXPECT_THAT(text.out, HasSubstr("backbone.patch_embed.proj.weight"));
  EXPECT_THAT(text.out, HasSubstr("[80,3,16,16]"));
  const Ran filtered = sinew({"inspect", tiny_model(), "--filter", "*.deccam.*"});
  EXPECT_THAT(filtered.out, HasSubstr("mano_head.deccam.bias"));
  EXPECT_THAT(filtered.out, Not(HasSubstr("backbone")));
  const Ran folder = sinew({"inspect", std::filesystem::path(tiny_model()).parent_path().string(), "--json"});
  ASSERT_EQ(folder.status, 0) << folder.err;
  const Json json = Json::parse(folder.out);
  EXPECT_EQ(json.at("tensors").size(), hamer::expected_tensors(tiny_config()).size());
}

}  // namespace
}  // namespace sinew::cli_test

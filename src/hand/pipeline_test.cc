// The pipeline around a network that is made up: a session whose run() is a function of the test's.
#include "hand/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "base/error.h"
#include "hand/test_hands.h"

namespace sinew {
namespace {

/// Any computation from image to the 157 numbers.
class Network : public Op {
 public:
  Network(ValueId image, ValueId out) : image_(image), out_(out) {}
  std::string_view name() const override { return "network"; }
  std::vector<ValueId> inputs() const override { return {image_}; }
  std::vector<ValueId> outputs() const override { return {out_}; }
  void check(const Program&) const override {}
  Cost cost(const Program&) const override { return {}; }

 private:
  ValueId image_, out_;
};

/// Fills the 157 numbers from the input's elements (as doubles, [3][256][192]).
using Compute = std::function<void(std::span<const double>, std::span<double>)>;

class FakeSession : public Session {
 public:
  FakeSession(DType input, DType output, Compute compute)
      : Session(program_of(input, output)), compute_(std::move(compute)) {}

  void run() noexcept override {
    const ValueId image = program().find("image");
    const ValueId out = program().find("out157");
    const Value& from = program().value(image);
    Tensor pixels = convert({from.dtype, from.shape, memory(image)}, DType::kF64);
    std::vector<double> numbers(157);
    compute_(pixels.as<double>(), numbers);
    const Value& to = program().value(out);
    convert_into(TensorView(DType::kF64, to.shape, numbers.data()), to.dtype, memory(out));
  }
  std::size_t weight_bytes() const override { return 0; }

 private:
  static Program program_of(DType input, DType output) {
    ProgramBuilder builder("fake");
    const ValueId image = builder.input("image", input, {3, 256, 192});
    builder.add(Network(image, builder.output("out157", output, {1, 157})));
    return builder.finish();
  }

  Compute compute_;
};

constexpr std::size_t kPixels = std::size_t{3} * 256 * 192;

/// Flat hand, given camera.
void flat_hand(std::span<double> out, const Vec3& cam) {
  for (std::size_t j = 0; j < 16; ++j) {
    for (const std::size_t i : {0, 4, 8}) out[9 * j + i] = 1;
  }
  for (std::size_t i = 0; i < 10; ++i) out[144 + i] = 0.1 * static_cast<double>(i);
  std::copy(cam.begin(), cam.end(), out.begin() + 154);
}

/// Numbers that hang on every pixel and its place: rotations by angles, a camera with an offset.
void picture_dependent(std::span<const double> image, std::span<double> out) {
  std::array<double, 20> sums{};
  for (std::size_t i = 0; i < image.size(); ++i)
    sums[i % 20] += image[i] * std::cos(1e-3 * static_cast<double>(i));
  flat_hand(out, {0.9, 1e-4 * sums[17], 1e-4 * sums[18]});
  for (std::size_t j = 0; j < 16; ++j) {
    const double angle = 1e-3 * sums[j];
    out[9 * j] = out[9 * j + 4] = std::cos(angle);
    out[9 * j + 1] = -(out[9 * j + 3] = std::sin(angle));
  }
}

HandPipeline pipeline(Compute compute, DType input = DType::kF32, const HandOptions& options = {},
                      DType output = DType::kF64, const hamer::Config& config = {}) {
  return {std::make_unique<FakeSession>(input, output, std::move(compute)), config, options};
}

Image noise_frame(int width, int height) {
  Image frame(width, height);
  std::mt19937 random(7);
  for (auto& v : frame.rgb) v = static_cast<std::uint8_t>(random());
  return frame;
}

Image mirrored(const Image& image) {
  Image out(image.width, image.height);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x)
      std::memcpy(out.pixel(image.width - 1 - x, y), image.pixel(x, y), 3);
  }
  return out;
}

ErrorCode code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kIo;
}

TEST(HandPipeline, FeedsTheNormalisedCrop) {
  const Image frame = noise_frame(120, 90);
  const HandBox box = {20, 10, 80, 70, true};
  const Crop cut = crop(CropKind::kPillow, frame, crop_geometry(box, 2.0), true);
  std::vector<float> expected(kPixels);
  normalise(cut, expected.data());
  std::vector<double> seen;
  auto hands = pipeline([&](std::span<const double> image, std::span<double> out) {
    seen.assign(image.begin(), image.end());
    flat_hand(out, {1, 0, 0});
  });
  hands.run(frame, box);
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), expected.begin(), expected.end()));
}

TEST(HandPipeline, FeedsBytesToAByteNetworkAndTheModelsOwnStatistics) {
  const Image frame = noise_frame(120, 90);
  const HandBox box = {20, 10, 80, 70, false};
  const Crop cut = crop(CropKind::kPillow, frame, crop_geometry(box, 1.5), false);
  std::vector<double> seen;
  const Compute look = [&](std::span<const double> image, std::span<double> out) {
    seen.assign(image.begin(), image.end());
    flat_hand(out, {1, 0, 0});
  };
  HandOptions options;
  options.rescale = 1.5;
  auto bytes = pipeline(look, DType::kU8, options);
  bytes.run(frame, box);
  std::vector<std::uint8_t> chw(kPixels);
  to_chw_u8(cut, chw.data());
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), chw.begin(), chw.end()));

  hamer::Config config;
  config.image_mean = {0, 0, 0};
  config.image_std = {1.0 / 255, 1.0 / 255, 1.0 / 255};  // x -> x
  auto own = pipeline(look, DType::kF64, options, DType::kF32, config);
  own.run(frame, box);
  for (std::size_t i = 0; i < kPixels; i += 97) EXPECT_FLOAT_EQ(static_cast<float>(seen[i]), chw[i]) << i;
}

TEST(HandPipeline, GivesTheNetworksNumbersAndTheGeometry) {
  const Image frame = noise_frame(160, 120);
  const HandBox box = {30, 20, 90, 100, true};
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    auto hands = pipeline([](auto, std::span<double> out) { flat_hand(out, {0.75, 0.25, -0.5}); },
                          DType::kF32, {}, dtype);
    const HandResult result = hands.run(frame, box);
    EXPECT_EQ(result.frame_width, 160);
    EXPECT_EQ(result.frame_height, 120);
    EXPECT_EQ(result.box.x2, 90);
    EXPECT_EQ(result.geometry.box_size, crop_geometry(box, 2.0).box_size);
    EXPECT_EQ(result.rotmats[0], 1);
    EXPECT_EQ(result.rotmats[1], 0);
    EXPECT_EQ(result.rotmats[143], 1);
    EXPECT_EQ(result.cam, (std::array<double, 3>{0.75, 0.25, -0.5}));
    EXPECT_NEAR(result.betas[9], 0.9, dtype == DType::kBF16 ? 0.9 / 256 : 1e-7)
        << "half a unit of the output's precision";
    EXPECT_EQ(result.camera.fx, 5000.0 / 256 * 160);
    EXPECT_GE(result.timings.crop_ms, 0);
    EXPECT_GE(result.timings.model_ms, 0);
  }
}

/// hostile_inputs row 33, through the pipeline: the hand is seen where the crop's weak perspective put it.
TEST(HandPipeline, JointsProjectToWhereTheCropSawThem) {
  const Image frame = noise_frame(640, 480);
  const HandBox box = {350, 60, 450, 180, true};
  const Vec3 cam = {6.0, 0.02, -0.03};  // s of a real hand: about 0.2 m in 2/s metres of crop
  auto hands = pipeline([&](auto, std::span<double> out) { flat_hand(out, cam); });
  const HandResult result = hands.run(frame, box);
  const double b = result.geometry.box_size;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec3& p = result.joints_3d[i];
    // Perspective: weak perspective times tz / (tz + z), about the frame's centre.
    const double depth = result.cam_t_full[2] / (result.cam_t_full[2] + p[2]);
    const double weak_x = result.geometry.center_x + b * cam[0] / 2 * (p[0] + cam[1]);
    const double weak_y = result.geometry.center_y + b * cam[0] / 2 * (p[1] + cam[2]);
    EXPECT_NEAR(result.joints_2d[i][0], 320 + (weak_x - 320) * depth, 1e-6) << i;
    EXPECT_NEAR(result.joints_2d[i][1], 240 + (weak_y - 240) * depth, 1e-6) << i;
  }
}

/// hostile_inputs row 34: left(frame) == mirror(right(mirror(frame))): the same input, and the answer
/// mirrored.
TEST(HandPipeline, LeftHandIsTheMirroredRightHand) {
  const Image frame = noise_frame(200, 140);
  const Image mirror = mirrored(frame);
  const HandBox left = {40, 30, 100, 110, false};
  const HandBox right = {200 - left.x2, left.y1, 200 - left.x1, left.y2, true};
  for (const DType input : {DType::kF32, DType::kU8}) {
    auto hands = pipeline(picture_dependent, input);
    const HandResult a = hands.run(frame, left);
    const HandResult b = hands.run(mirror, right);
    EXPECT_EQ(a.rotmats, b.rotmats) << "the network saw the same pixels";
    EXPECT_EQ(a.cam, b.cam);
    EXPECT_EQ(a.cam_t_full[0], -b.cam_t_full[0]);
    EXPECT_EQ(a.cam_t_full[1], b.cam_t_full[1]);
    EXPECT_EQ(a.cam_t_full[2], b.cam_t_full[2]);
    EXPECT_NE(a.cam_t_full[0], 0);
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      EXPECT_EQ(a.joints_3d[i][0], -b.joints_3d[i][0]) << i;
      EXPECT_EQ(a.joints_3d[i][1], b.joints_3d[i][1]) << i;
      EXPECT_NEAR(a.joints_2d[i][0], 200 - b.joints_2d[i][0], 1e-9) << i;
      EXPECT_EQ(a.joints_2d[i][1], b.joints_2d[i][1]) << i;
    }
    // And it is not the right hand's answer for the same box.
    const HandResult wrong = hands.run(frame, {left.x1, left.y1, left.x2, left.y2, true});
    EXPECT_NE(wrong.rotmats, a.rotmats);
  }
}

/// A hand model takes the skeleton's place: its key points, and its mesh, mirrored for left hands.
TEST(HandPipeline, AHandModelGivesJointsAndMesh) {
  const Image frame = noise_frame(200, 140);
  HandOptions with;
  HandModelData data = skeleton_model();
  for (Vec3& p : data.v_template) p[1] += 0.001;  // told apart from the built-in bones
  for (Vec3& p : data.rest_joints) p[1] += 0.001;
  with.model = std::make_shared<const HandModel>(std::move(data), "test");
  for (const bool is_right : {true, false}) {
    const HandBox box = {40, 30, 100, 110, is_right};
    const HandResult plain = pipeline(picture_dependent).run(frame, box);
    const HandResult result = pipeline(picture_dependent, DType::kF32, with).run(frame, box);
    EXPECT_TRUE(plain.vertices.empty());
    ASSERT_EQ(result.vertices.size(), 21U);
    EXPECT_EQ(result.cam_t_full, plain.cam_t_full);
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      const Vec3& joint = result.joints_3d[i];
      const Vec3 moved = {plain.joints_3d[i][0], plain.joints_3d[i][1] + 0.001, plain.joints_3d[i][2]};
      EXPECT_LT(distance_between(joint, moved), 1e-14) << i;
      const Vec3& vertex = result.vertices[static_cast<std::size_t>(kOpenPoseFromMano[i])];
      EXPECT_LT(distance_between(joint, vertex), 1e-14) << i;
      EXPECT_GT(result.joints_2d[i][1], plain.joints_2d[i][1]) << i << ": projected anew";
    }
  }
}

TEST(HandPipeline, OpenCvCropIsUsedWhenAskedFor) {
  const Image frame = noise_frame(120, 90);
  const HandBox box = {20, 10, 80, 70, true};
  HandOptions options;
  options.crop = CropKind::kOpenCV;
  auto opencv = pipeline(picture_dependent, DType::kF32, options);
  auto pillow = pipeline(picture_dependent, DType::kF32);
  EXPECT_NE(opencv.run(frame, box).rotmats, pillow.run(frame, box).rotmats);
}

TEST(HandPipeline, RefusesABlurredCropForBytes) {
  const Image frame = noise_frame(640, 480);
  const HandBox box = {0, 0, 640, 480, true};  // a square above 563 pixels: the OpenCV crop blurs
  HandOptions options;
  options.crop = CropKind::kOpenCV;
  auto bytes = pipeline(picture_dependent, DType::kU8, options);
  EXPECT_EQ(code_of([&] { bytes.run(frame, box); }), ErrorCode::kUnsupported);
  EXPECT_NO_THROW(bytes.run(frame, {100, 100, 200, 200, true})) << "and serves the next one";
  auto floats = pipeline(picture_dependent, DType::kF32, options);
  EXPECT_NO_THROW(floats.run(frame, box));
}

TEST(HandPipeline, RefusesBadBoxesAndServesTheNext) {
  const Image frame = noise_frame(64, 48);
  auto hands = pipeline(picture_dependent);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const HandBox& box :
       {HandBox{nan, 0, 10, 10, true}, HandBox{0, 0, 10, nan, true}, HandBox{0, 0, inf, 10, true},
        HandBox{10, 10, 10, 20, true}, HandBox{20, 10, 10, 20, true}, HandBox{100, 0, 120, 10, true},
        HandBox{-20, 0, -10, 10, true}, HandBox{0, 0, 0, 0, true}}) {
    EXPECT_EQ(code_of([&] { hands.run(frame, box); }), ErrorCode::kUsage);
  }
  EXPECT_EQ(code_of([&] { hands.run(frame, {0, 0, 1e308, 10, true}); }), ErrorCode::kLimit);
  EXPECT_NO_THROW(hands.run(frame, {-10, -10, 70, 60, true}));
}

TEST(HandPipeline, NumbersThatAreNotFiniteNeverLeave) {
  const Image frame = noise_frame(64, 48);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const std::size_t at : {0, 143, 150, 156}) {
      auto hands = pipeline([&](auto, std::span<double> out) {
        flat_hand(out, {1, 0, 0});
        out[at] = bad;
      });
      EXPECT_EQ(code_of([&] { hands.run(frame, {0, 0, 64, 48, true}); }), ErrorCode::kMismatch) << at;
    }
  }
}

}  // namespace
}  // namespace sinew

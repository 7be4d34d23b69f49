// The C ABI against the pipeline it wraps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "capi/test_model.h"
#include "hand/pipeline.h"
#include "io/test_folder.h"
#include "models/hamer/synth.h"
#include "plan/cache.h"
#include "runtime/runtime.h"
#include "sinew/sinew.h"

namespace sinew {

const std::string& capi::test_model() {
  static const TestFolder kFolder;
  static const std::string kPath = [] {
    hamer::SynthOptions synth;
    synth.config.embed = 160;
    synth.config.mlp = 320;
    synth.config.depth = 1;
    synth.config.head_depth = 1;
    synth.format = hamer::CheckpointFormat::kSafetensors;
    synth.dtype = DType::kBF16;
    ThreadPool pool(1);
    std::string path = kFolder.file("model.safetensors");
    hamer::write_synthetic_checkpoint(path, synth, pool);
    return path;
  }();
  return kPath;
}

namespace {

using testing::HasSubstr;
using testing::StrEq;
using testing::StrNe;

struct Closer {
  void operator()(sinew_hands* hands) const { sinew_hands_close(hands); }
};
using Opened = std::unique_ptr<sinew_hands, Closer>;

constexpr sinew_box kBox = {40, 30, 110, 95, 1};

Image gradient_frame(int width, int height) {
  Image frame(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      frame.pixel(x, y)[0] = static_cast<std::uint8_t>(x);
      frame.pixel(x, y)[1] = static_cast<std::uint8_t>(2 * y);
      frame.pixel(x, y)[2] = static_cast<std::uint8_t>(x * y / 64);
    }
  }
  return frame;
}

sinew_hands_options f32_options() {
  sinew_hands_options options = {};
  options.struct_size = sizeof(options);
  options.policy = "f32";
  options.threads = 1;
  return options;
}

sinew_hand empty_hand() {
  sinew_hand hand = {};
  hand.struct_size = sizeof(hand);
  return hand;
}

TEST(CAbi, OpenRefusesWhatItCannotHonour) {
  sinew_hands* hands = nullptr;
  const sinew_hands_options good = f32_options();
  EXPECT_EQ(sinew_hands_open("missing/model.ckpt", &good, &hands), SINEW_ERROR_NOT_FOUND);
  EXPECT_THAT(sinew_last_error(), HasSubstr("missing/model.ckpt"));
  EXPECT_EQ(hands, nullptr);
  EXPECT_EQ(sinew_hands_open(nullptr, &good, &hands), SINEW_ERROR_USAGE);
  EXPECT_EQ(sinew_hands_open("missing", &good, nullptr), SINEW_ERROR_USAGE);

  auto options = good;
  options.struct_size = 0;
  EXPECT_EQ(sinew_hands_open("missing", &options, &hands), SINEW_ERROR_USAGE);
  options = good;
  options.policy = "f31";
  EXPECT_EQ(sinew_hands_open("missing", &options, &hands), SINEW_ERROR_USAGE);
  options = good;
  options.crop = "scissors";
  EXPECT_EQ(sinew_hands_open("missing", &options, &hands), SINEW_ERROR_USAGE);
  options = good;
  options.threads = -1;
  EXPECT_EQ(sinew_hands_open("missing", &options, &hands), SINEW_ERROR_USAGE);
  sinew_hands_close(nullptr);
}

class CAbiHands : public testing::Test {
 protected:
  void SetUp() override {
    const sinew_hands_options options = f32_options();
    sinew_hands* opened = nullptr;
    ASSERT_EQ(sinew_hands_open(capi::test_model().c_str(), &options, &opened), SINEW_OK)
        << sinew_last_error();
    hands_.reset(opened);
  }

  sinew_status run(const Image& frame, const sinew_box& box, sinew_hand& out) {
    return sinew_hands_run(hands_.get(), frame.rgb.data(), frame.width, frame.height, 0, &box, &out);
  }

  Opened hands_;
};

TEST(CAbi, KeepsPreparedWeightsWhereItIsTold) {
  const TestFolder folder;
  const std::string cache = folder.file("cache");
  sinew_hands_options options = f32_options();
  const auto hand_of = [&] {
    sinew_hands* opened = nullptr;
    EXPECT_EQ(sinew_hands_open(capi::test_model().c_str(), &options, &opened), SINEW_OK)
        << sinew_last_error();
    const Opened hands(opened);
    const Image frame = gradient_frame(160, 120);
    sinew_hand hand = {};
    hand.struct_size = sizeof(hand);
    EXPECT_EQ(sinew_hands_run(opened, frame.rgb.data(), frame.width, frame.height, 0, &kBox, &hand),
              SINEW_OK);
    return std::vector<float>(&hand.rotmat[0][0][0], &hand.rotmat[0][0][0] + 144);
  };
  const std::vector<float> uncached = hand_of();
  options.cache = cache.c_str();
  EXPECT_EQ(hand_of(), uncached);
  EXPECT_EQ(list_tiers(cache).size(), 2U);
  EXPECT_EQ(hand_of(), uncached);
  // A program of the first ABI version has no such field.
  options.cache = nullptr;
  options.struct_size = offsetof(sinew_hands_options, cache);
  EXPECT_EQ(hand_of(), uncached);
}

TEST_F(CAbiHands, GivesWhatThePipelineGives) {
  RuntimeOptions options;
  options.policy = Policy::kF32;
  options.machine.threads = 1;
  HamerRuntime runtime = open_hamer(capi::test_model(), options);
  HandPipeline pipeline(std::move(runtime.session), runtime.config, {});

  const Image frame = gradient_frame(160, 120);
  for (const bool is_right : {true, false}) {
    sinew_box box = kBox;
    box.is_right = is_right ? 1 : 0;
    sinew_hand hand = empty_hand();
    ASSERT_EQ(run(frame, box, hand), SINEW_OK) << sinew_last_error();
    EXPECT_THAT(sinew_last_error(), StrEq(""));
    const HandResult expected = pipeline.run(frame, {box.x1, box.y1, box.x2, box.y2, is_right});
    for (int i = 0; i < 144; ++i) {
      EXPECT_EQ(hand.rotmat[i / 9][i / 3 % 3][i % 3], static_cast<float>(expected.rotmats[i])) << i;
    }
    for (int i = 0; i < 10; ++i) EXPECT_EQ(hand.betas[i], static_cast<float>(expected.betas[i]));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(hand.cam[i], static_cast<float>(expected.cam[i]));
      EXPECT_EQ(hand.cam_t_full[i], static_cast<float>(expected.cam_t_full[i]));
      EXPECT_EQ(hand.joints_3d[20][i], static_cast<float>(expected.joints_3d[20][i]));
    }
    EXPECT_EQ(hand.joints_2d[20][1], static_cast<float>(expected.joints_2d[20][1]));
    EXPECT_EQ(hand.focal_length, static_cast<float>(expected.camera.fx));
  }
}

TEST_F(CAbiHands, RowsMayBePadded) {
  const Image frame = gradient_frame(160, 120);
  const int stride = 3 * frame.width + 13;
  std::vector<std::uint8_t> padded(static_cast<std::size_t>(stride) * frame.height, 255);
  for (int y = 0; y < frame.height; ++y) {
    std::copy_n(frame.pixel(0, y), 3 * frame.width, padded.begin() + static_cast<std::ptrdiff_t>(y) * stride);
  }
  sinew_hand plain = empty_hand();
  sinew_hand other = empty_hand();
  ASSERT_EQ(run(frame, kBox, plain), SINEW_OK);
  ASSERT_EQ(sinew_hands_run(hands_.get(), padded.data(), frame.width, frame.height, stride, &kBox, &other),
            SINEW_OK);
  EXPECT_TRUE(std::equal(&plain.rotmat[0][0][0], &plain.rotmat[0][0][0] + 144, &other.rotmat[0][0][0]));
}

TEST_F(CAbiHands, BadRequestsLeaveTheResultAloneAndTheNextOneIsServed) {
  const Image frame = gradient_frame(160, 120);
  sinew_hand hand = empty_hand();
  hand.betas[0] = 77;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const sinew_box& box : {sinew_box{500, 500, 600, 600, 1}, sinew_box{10, 10, 10, 20, 1},
                               sinew_box{nan, 0, 10, 10, 1}, sinew_box{0, 0, 1e308, 10, 1}}) {
    EXPECT_NE(run(frame, box, hand), SINEW_OK);
    EXPECT_THAT(sinew_last_error(), StrNe(""));
  }
  const auto call = [&](int width, int height, std::ptrdiff_t stride) {
    return sinew_hands_run(hands_.get(), frame.rgb.data(), width, height, stride, &kBox, &hand);
  };
  EXPECT_EQ(call(0, 120, 0), SINEW_ERROR_USAGE);
  EXPECT_EQ(call(160, -1, 0), SINEW_ERROR_USAGE);
  EXPECT_EQ(call(160, 120, 479), SINEW_ERROR_USAGE);
  EXPECT_EQ(call(160, 120, -480), SINEW_ERROR_USAGE);
  EXPECT_EQ(call(1 << 30, 1 << 30, 0), SINEW_ERROR_LIMIT);
  EXPECT_EQ(sinew_hands_run(hands_.get(), nullptr, 160, 120, 0, &kBox, &hand), SINEW_ERROR_USAGE);
  EXPECT_EQ(sinew_hands_run(nullptr, frame.rgb.data(), 160, 120, 0, &kBox, &hand), SINEW_ERROR_USAGE);
  sinew_hand unset = {};
  EXPECT_EQ(run(frame, kBox, unset), SINEW_ERROR_USAGE);
  EXPECT_EQ(hand.betas[0], 77);
  EXPECT_EQ(run(frame, kBox, hand), SINEW_OK);
  EXPECT_NE(hand.betas[0], 77);
}

}  // namespace
}  // namespace sinew

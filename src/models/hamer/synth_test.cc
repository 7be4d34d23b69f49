#include "models/hamer/synth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace sinew::hamer {
namespace {

struct Known {
  ExpectedTensor tensor;
  std::array<float, 4> first;
  double sum, squares;
};

// The goldens' README, section 2: seed 1, real width.
const std::vector<Known>& known_values() {
  static const std::vector<Known> values = {
      {{"backbone.pos_embed", {1, 193, 1280}},
       {0.060791015625F, -0.032470703125F, -0.001708984375F, -0.032958984375F},
       11.2011718750,
       320.53013420},
      {{"backbone.patch_embed.proj.weight", {1280, 3, 16, 16}},
       {0.0032958984375F, 0.0001220703125F, -0.0230712890625F, 0.0223388671875F},
       -31.4611816406,
       320.42335486},
      {{"backbone.blocks.0.attn.qkv.weight", {3840, 1280}},
       {-0.052978515625F, -0.022216796875F, 0.022216796875F, 0.034912109375F},
       -52.2519531250,
       6397.96404648},
      {{"backbone.blocks.0.norm1.weight", {1280}},
       {0.8828125F, 1.0F, 1.1171875F, 1.0390625F},
       1273.0390625,
       1272.81671143},
      {{"backbone.last_norm.bias", {1280}},
       {-0.00927734375F, 0.02880859375F, 0.03369140625F, -0.04345703125F},
       -2.6689453125,
       6.83846283},
      {{"mano_head.transformer.transformer.layers.1.2.fn.net.3.weight", {1024, 1024}},
       {-0.0150146484375F, 0.0191650390625F, -0.0079345703125F, 0.0159912109375F},
       -6.6237792969,
       341.52880549},
      {{"mano_head.decpose.weight", {96, 1024}},
       {0.003204345703125F, 0.001007080078125F, 0.003997802734375F, 0.003509521484375F},
       2.9923706055,
       1.99322402},
      {{"mano_head.init_hand_pose", {1, 96}},
       {0.93505859375F, 0.12158203125F, 0.05517578125F, 0.06005859375F},
       33.5849609375,
       32.80381966},
      {{"mano_head.init_cam", {1, 3}},
       {0.8734130859375F, 0.0306396484375F, -0.0235595703125F, 0.0F},
       0.8804931641,
       0.76434426},
  };
  return values;
}

TEST(Synth, Hpg1GivesTheGoldensWeights) {
  EXPECT_EQ(fnv1a64("backbone.pos_embed"), 0x2cc5c2f44729a5e2ULL);
  for (const Known& known : known_values()) {
    const std::int64_t count = known.tensor.shape.count();
    std::vector<float> values(static_cast<std::size_t>(count));
    synth_values(Generator::kHpg1, 1, known.tensor, 0, count, values.data());
    double sum = 0;
    double squares = 0;
    for (const double v : values) {
      sum += v;
      squares += v * v;
    }
    for (std::size_t i = 0; i < 4 && i < values.size(); ++i)
      EXPECT_EQ(values[i], known.first[i]) << known.tensor.name;
    EXPECT_NEAR(sum, known.sum, 5e-10 * std::max(1.0, std::fabs(known.sum)))
        << known.tensor.name;  // ten printed decimals
    EXPECT_NEAR(squares, known.squares, 5e-9) << known.tensor.name;
  }
}

TEST(Synth, Hpg1GivesTheGoldensPicture) {
  const std::array<int, 8> seed1 = {111, 217, 183, 105, 21, 40, 217, 18};
  const std::array<int, 8> seed2 = {29, 19, 120, 26, 49, 122, 196, 105};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(hpg1_pixel(1, i), seed1[i]);
    EXPECT_EQ(hpg1_pixel(2, i), seed2[i]);
  }
  std::int64_t sum = 0;
  for (std::uint64_t i = 0; i < 3 * 256 * 192; ++i) sum += hpg1_pixel(1, i);
  EXPECT_EQ(sum, 18738566);
}

TEST(Synth, PiecesOfATensorEqualTheWhole) {
  const ExpectedTensor tensor = {"backbone.blocks.3.mlp.fc1.weight", {40, 25}};
  for (const Generator generator : {Generator::kNormal, Generator::kHpg1}) {
    std::vector<float> whole(1000);
    synth_values(generator, 7, tensor, 0, 1000, whole.data());
    std::vector<float> part(300);
    synth_values(generator, 7, tensor, 550, 300, part.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 550));
  }
}

TEST(Synth, NormalWeightsHaveTheirStatedDeviation) {
  const ExpectedTensor tensor = {"backbone.blocks.0.attn.proj.weight", {400, 400}};
  std::vector<float> values(160000);
  synth_values(Generator::kNormal, 3, tensor, 0, 160000, values.data());
  double sum = 0;
  double squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  const double deviation = 0.7 / 20;  // 0.7 / sqrt(fan-in)
  // Means and deviations of 160,000 draws stray by 1/400 and 1/560 of the deviation; five times that.
  EXPECT_NEAR(sum / 160000, 0, 5 * deviation / 400);
  EXPECT_NEAR(std::sqrt(squares / 160000), deviation, 5 * deviation / 560);
  EXPECT_NE(values[0], values[1]);
}

TEST(Synth, SeedsAndNamesDiffer) {
  std::vector<float> a(64);
  std::vector<float> b(64);
  std::vector<float> c(64);
  synth_values(Generator::kNormal, 1, {"x.weight", {8, 8}}, 0, 64, a.data());
  synth_values(Generator::kNormal, 2, {"x.weight", {8, 8}}, 0, 64, b.data());
  synth_values(Generator::kNormal, 1, {"y.weight", {8, 8}}, 0, 64, c.data());
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST(Synth, RefusesSizesTheNetworkCannotHave) {
  ThreadPool pool(1);
  for (const auto& change : std::vector<void (*)(Config&)>{
           [](Config& c) { c.embed = 100; }, [](Config& c) { c.embed = 0; }, [](Config& c) { c.depth = 0; },
           [](Config& c) { c.head_depth = -1; }, [](Config& c) { c.mlp = 1 << 20; }}) {
    SynthOptions options;
    change(options.config);
    EXPECT_THROW(write_synthetic_checkpoint("/nonexistent/never.ckpt", options, pool), Error);
  }
}

}  // namespace
}  // namespace sinew::hamer

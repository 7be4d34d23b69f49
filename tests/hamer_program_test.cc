// The fused form against the plain one, 8-bit input against normalised input, in double: what spec hamer 7
// claims is exact.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "model_test_support.h"
#include "models/hamer/folding.h"

namespace sinew {
namespace {

using hamer::BuildOptions;
using hamer::Form;
using test::compile;
using test::Compiled;
using test::max_difference;
using test::max_magnitude;

class HamerProgram : public testing::Test {
 protected:
  HamerProgram()
      : config_(test::small_config()),
        model_(std::make_shared<test::MemoryModel>(config_, hamer::Generator::kNormal, 5)) {
    sources_.add_all(model_);
  }

  /// Pixels 0..255 without structure, and their normalised form in double.
  static std::vector<std::uint8_t> pixels() {
    std::vector<std::uint8_t> bytes(3 * hamer::kImageRows * hamer::kImageColumns);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = hamer::hpg1_pixel(9, i);
    return bytes;
  }
  void fill_normalised(Session& session) const {
    const hamer::PixelStats stats = hamer::pixel_stats(config_);
    const auto bytes = pixels();
    const std::size_t plane = bytes.size() / 3;
    Tensor image(DType::kF64, {3, hamer::kImageRows, hamer::kImageColumns});
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      image.as<double>()[i] = (bytes[i] - stats.mean[i / plane]) / stats.std[i / plane];
    }
    const Program& program = session.program();
    convert_into(image, program.value(program.find("image")).dtype, session.input("image").data());
  }

  Compiled run(const BuildOptions& options, const std::string& backend) const {
    Compiled compiled = compile(config_, sources_, options, backend);
    if (options.u8_input) {
      const auto bytes = pixels();
      std::memcpy(compiled.session->input("image").data(), bytes.data(), bytes.size());
    } else {
      fill_normalised(*compiled.session);
    }
    compiled.session->run();
    return compiled;
  }

  hamer::Config config_;
  std::shared_ptr<test::MemoryModel> model_;
  Sources sources_;
};

TEST_F(HamerProgram, FusedEqualsPlainInDouble) {
  const Compiled plain = run({.policy = Policy::kF64, .form = Form::kPlain, .trace = true}, "reference");
  const Compiled fused = run({.policy = Policy::kF64, .form = Form::kFused, .trace = true}, "reference");
  std::set<std::string> names;
  for (const auto& output : plain.outputs) names.insert(output.name);
  EXPECT_EQ(names.size(), fused.outputs.size());
  for (const auto& output : fused.outputs) {
    ASSERT_TRUE(names.contains(output.name)) << output.name;
    const Tensor a = fused.output(output.name);
    const Tensor b = plain.output(output.name);
    // Spec 7.8, 7.9: 1e-9 end to end; summation order leaves about 1e-14.
    EXPECT_LE(max_difference(a, b), 1e-12 * std::max(1.0, max_magnitude(b))) << output.name;
    EXPECT_GT(max_magnitude(b), 1e-3) << output.name << " is empty, the comparison would be idle";
  }
}

TEST_F(HamerProgram, FoldedBytesEqualNormalisedPixelsInDouble) {
  const Compiled plain = run({.policy = Policy::kF64, .form = Form::kPlain, .trace = true}, "reference");
  const Compiled bytes = run({.policy = Policy::kF64, .u8_input = true, .trace = true}, "reference");
  for (const char* name : {"tokens.patch", "tokens.pos", "features", "out157"}) {
    const Tensor b = plain.output(name);
    EXPECT_LE(max_difference(bytes.output(name), b), 1e-12 * std::max(1.0, max_magnitude(b))) << name;
  }
}

TEST_F(HamerProgram, BorderTokensSeeTheirPadding) {
  // A fold that forgot the padding ring would be right inside and wrong at the border: both kinds of token
  // are checked by the test above, and here the constant's border rows are shown to differ from inner ones at
  // all.
  const Tensor constant = hamer::patch_constant(config_, true, false)(sources_);
  const auto row = [&](std::int64_t token) {
    return constant.as<double>().subspan(static_cast<std::size_t>(token * config_.embed),
                                         static_cast<std::size_t>(config_.embed));
  };
  EXPECT_NE(row(0)[0], row(13)[0]);                   // corner against inner
  EXPECT_NE(row(1)[0], row(13)[0]);                   // top edge against inner
  EXPECT_TRUE(std::ranges::equal(row(13), row(14)));  // inner tokens are alike
  EXPECT_TRUE(std::ranges::equal(row(2), row(3)));    // top edge tokens are alike
}

TEST_F(HamerProgram, RefinementIterationsAddUp) {
  const Compiled once = run({.policy = Policy::kF64, .trace = true}, "reference");
  config_.ief_iters = 3;
  const Compiled thrice = run({.policy = Policy::kF64, .trace = true}, "reference");
  const Tensor base = once.output("pose6d");
  const Tensor step = once.output("dec.decpose");
  const Tensor sum = thrice.output("pose6d");
  for (std::size_t i = 0; i < 96; ++i) {
    EXPECT_NEAR(sum.as<double>()[i], base.as<double>()[i] + 2 * step.as<double>()[i], 1e-12);
  }
}

TEST_F(HamerProgram, TracingChangesNoResult) {
  for (const char* backend : {"reference", "cpu"}) {
    const Policy policy = std::string(backend) == "cpu" ? Policy::kF32 : Policy::kF64;
    const Compiled quiet = run({.policy = policy}, backend);
    const Compiled traced = run({.policy = policy, .trace = true}, backend);
    EXPECT_EQ(max_difference(quiet.output("out157"), traced.output("out157")), 0) << backend;
  }
}

TEST_F(HamerProgram, CpuF32StaysCloseToDouble) {
  const Compiled exact = run({.policy = Policy::kF64, .trace = true}, "reference");
  for (const Form form : {Form::kFused, Form::kPlain}) {
    const Compiled fast = run({.policy = Policy::kF32, .form = form, .trace = true}, "cpu");
    for (const auto& output : fast.outputs) {
      const Tensor b = exact.output(output.name);
      EXPECT_LE(max_difference(fast.output(output.name), b), 2e-5 * max_magnitude(b)) << output.name;
    }
  }
  const Compiled bytes = run({.policy = Policy::kF32, .u8_input = true}, "cpu");
  EXPECT_LE(max_difference(bytes.output("out157"), exact.output("out157")), 2e-5);
}

TEST_F(HamerProgram, CpuBf16MeetsItsBar) {
  if (!cpu_has_products(DType::kBF16)) GTEST_SKIP() << "this processor has no bf16 product";
  const Compiled exact = run({.policy = Policy::kF64, .trace = true}, "reference");
  const Compiled rounded = run({.policy = Policy::kBF16, .trace = true}, "reference");
  for (const Form form : {Form::kFused, Form::kPlain}) {
    const Compiled fast = run({.policy = Policy::kBF16, .form = form, .trace = true}, "cpu");
    EXPECT_GE(test::correlation(fast.output("features"), exact.output("features")), 0.9995);
    // Roundings differ in where they fall but not in kind: the fast path may not be farther from double than
    // twice what the reference's own bf16 run is.
    const double own = max_difference(rounded.output("features"), exact.output("features"));
    EXPECT_GT(own, 1e-4) << "the policy was not applied";
    EXPECT_LE(max_difference(fast.output("features"), exact.output("features")), 2 * own);
  }
}

TEST_F(HamerProgram, SameBitsEachRun) {
  for (const int threads : {1, 2, 3}) {
    Compiled compiled = compile(config_, sources_, {.policy = Policy::kF32, .trace = true}, "cpu", threads);
    std::vector<Tensor> first;
    for (int round = 0; round < 4; ++round) {
      fill_normalised(*compiled.session);
      compiled.session->run();
      for (std::size_t i = 0; i < compiled.outputs.size(); ++i) {
        Tensor now = compiled.output(compiled.outputs[i].name);
        if (round == 0) {
          first.push_back(std::move(now));
        } else {
          EXPECT_EQ(max_difference(now, first[i]), 0) << compiled.outputs[i].name;
        }
      }
    }
  }
}

TEST_F(HamerProgram, InputsSurviveARun) {
  Compiled compiled = run({.policy = Policy::kF32}, "cpu");
  const Tensor once = compiled.output("out157");
  compiled.session->run();
  EXPECT_EQ(max_difference(compiled.output("out157"), once), 0);
}

TEST_F(HamerProgram, ReferenceBitsDoNotDependOnThreads) {
  Compiled one = compile(config_, sources_, {.policy = Policy::kF64}, "reference", 1);
  Compiled four = compile(config_, sources_, {.policy = Policy::kF64}, "reference", 4);
  for (Compiled* c : {&one, &four}) {
    fill_normalised(*c->session);
    c->session->run();
  }
  EXPECT_EQ(max_difference(one.output("out157"), four.output("out157")), 0);
}

TEST_F(HamerProgram, RefusalsNameTheProblem) {
  EXPECT_THROW(hamer::build(config_, sources_, {.form = Form::kPlain, .u8_input = true}), Error);
  try {
    compile(config_, sources_, {.policy = Policy::kF64}, "cpu");
    FAIL() << "the cpu backend has no f64";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
  Compiled compiled = compile(config_, sources_, {.policy = Policy::kF32}, "cpu");
  EXPECT_THROW(compiled.session->input("picture"), Error);
  EXPECT_THROW(compiled.session->output("features"), Error);  // not traced
}

}  // namespace
}  // namespace sinew

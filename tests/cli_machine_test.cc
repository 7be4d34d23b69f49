// --threads, --isa, --pin and --latency, as a user gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "cli_support.h"
#include "io/safetensors.h"

namespace sinew::cli_test {
namespace {

using testing::HasSubstr;

class CliMachine : public testing::Test {
 protected:
  CliMachine() {
    Tensor image(DType::kF32, {3, 256, 192});
    for (std::size_t i = 0; i < image.as<float>().size(); ++i)
      image.as<float>()[i] = static_cast<float>(i % 97) / 50;
    write_safetensors(folder_.file("input"), {{"image", image.view()}}, {});
  }
  Ran run(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run",   tiny_model(),        "--in",      folder_.file("input"),
                                      "--out", folder_.file("out"), "--no-cache"};
    words.insert(words.end(), more.begin(), more.end());
    return run_sinew(folder_.file(""), words);
  }
  /// The 157 numbers of a run that succeeds.
  std::vector<float> numbers(const std::vector<std::string>& more) {
    const Ran ran = run(more);
    EXPECT_EQ(ran.status, 0) << ran.err;
    if (ran.status != 0) return {};
    const auto file = open_checkpoint(folder_.file("out"));
    const Tensor values = convert(file->get("out157"), DType::kF32);
    return {values.as<float>().begin(), values.as<float>().end()};
  }

  TestFolder folder_;
};

TEST_F(CliMachine, EveryInstructionSetOfThisProcessorRunsAndOthersAreRefused) {
  const std::vector<float> expected = numbers({"--backend", "reference", "--policy", "f32"});
  ASSERT_EQ(expected.size(), 157U);
  for (const Isa isa : kAllIsas) {
    const std::string word(to_string(isa));
    if (isa > best_isa()) {
      const Ran refused = run({"--isa", word});
      EXPECT_EQ(refused.status, 1);
      EXPECT_THAT(refused.err, HasSubstr("this processor has no " + word));
      continue;
    }
    const std::vector<float> got = numbers({"--isa", word});
    ASSERT_EQ(got.size(), expected.size()) << word;
    // The bar of f32 in docs/NUMERICS.md.
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 2e-5F) << word << ", number " << i;
  }
}

TEST_F(CliMachine, APolicyThatAnInstructionSetCannotHonourIsRefused) {
  const Ran refused = run({"--isa", "baseline", "--policy", "bf16"});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("bf16"));
}

TEST_F(CliMachine, WrongWordsAreTold) {
  EXPECT_EQ(run({"--isa", "neon"}).status, 2);
  EXPECT_EQ(run({"--threads", "-1"}).status, 2);
  EXPECT_NE(run({"--backend", "reference", "--isa", "avx2"}).status, 0);
  const Ran crowded = run({"--pin", "--threads", std::to_string(available_cpus() + 1)});
  EXPECT_EQ(crowded.status, 2);
  EXPECT_THAT(crowded.err, HasSubstr("CPU of their own"));
}

TEST_F(CliMachine, PinnedAndHotThreadsComputeTheSameBits) {
  const std::vector<float> plain = numbers({});
  EXPECT_EQ(numbers({"--pin"}), plain);
  EXPECT_EQ(numbers({"--latency"}), plain);
  EXPECT_EQ(numbers({"--pin", "--latency", "--threads", "1"}), plain) << "one thread";
}

}  // namespace
}  // namespace sinew::cli_test

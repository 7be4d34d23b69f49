// Sessions of a whole model over prepared weights, on real backends.
#include "runtime/prepared_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "cli_support.h"
#include "plan/cache.h"
#include "runtime/runtime.h"

namespace sinew::cli_test {
namespace {

using testing::Contains;
using testing::Key;

std::vector<Policy> policies_here() {
  std::vector<Policy> out = {Policy::kF32};
  if (cpu_has_products(DType::kBF16)) out.push_back(Policy::kBF16);
  if (cpu_has_products(DType::kBF16, WeightStorage::kBfp8)) out.push_back(Policy::kBfp8);
  return out;
}

RuntimeOptions options_for(Policy policy, const std::string& cache) {
  RuntimeOptions options;
  options.policy = policy;
  options.machine.threads = 2;
  options.cache.root = cache;
  return options;
}

/// out157 for the same noise each time.
std::vector<float> result_of(Session& session) {
  const std::span<std::byte> image = session.input("image");
  std::mt19937 random(7);
  std::normal_distribution<float> pixel;
  auto* const pixels = reinterpret_cast<float*>(image.data());
  for (std::size_t i = 0; i < image.size() / sizeof(float); ++i) pixels[i] = pixel(random);
  session.run();
  const auto out = session.output("out157").as<float>();
  return {out.begin(), out.end()};
}

TEST(PreparedSession, ColdWarmAndUncachedGiveTheSameBits) {
  for (const Policy policy : policies_here()) {
    const TestFolder folder;
    const std::string cache = folder.file("cache");
    HamerRuntime uncached = open_hamer(tiny_model(), options_for(policy, ""));
    const std::vector<float> expected = result_of(*uncached.session);
    EXPECT_EQ(uncached.statistics.path, LoadPath::kUncached);
    HamerRuntime cold = open_hamer(tiny_model(), options_for(policy, cache));
    EXPECT_EQ(cold.statistics.path, LoadPath::kCold);
    EXPECT_EQ(result_of(*cold.session), expected) << to_string(policy);
    HamerRuntime warm = open_hamer(tiny_model(), options_for(policy, cache));
    EXPECT_EQ(warm.statistics.path, LoadPath::kWarm) << summary(warm.statistics);
    EXPECT_EQ(result_of(*warm.session), expected) << to_string(policy);
    EXPECT_EQ(warm.session->weight_bytes(), warm.statistics.device_bytes);
    EXPECT_EQ(warm.weights->bytes(), warm.statistics.device_bytes);
  }
}

TEST(PreparedSession, TheSessionOutlivesItsFiles) {
  const TestFolder folder;
  const std::string cache = folder.file("cache");
  open_hamer(tiny_model(), options_for(Policy::kF32, cache));
  HamerRuntime warm = open_hamer(tiny_model(), options_for(Policy::kF32, cache));
  const std::vector<float> before = result_of(*warm.session);
  std::filesystem::remove_all(cache);
  warm.weights->release();
  EXPECT_EQ(result_of(*warm.session), before);
}

TEST(PreparedSession, ATierInUseIsNotPruned) {
  const TestFolder folder;
  const std::string cache = folder.file("cache");
  HamerRuntime open = open_hamer(tiny_model(), options_for(Policy::kF32, cache));
  const PruneResult kept = prune(cache, {.unused_for = {}, .total_bytes = 0});
  EXPECT_THAT(kept.in_use, testing::SizeIs(testing::Ge(1U)));
  open.session.reset();
  open.weights.reset();
  prune(cache, {.unused_for = {}, .total_bytes = 0});
  EXPECT_TRUE(list_tiers(cache).empty());
}

TEST(PreparedSession, ATraceSharesThePlanOfAPlainRun) {
  const TestFolder folder;
  const std::string cache = folder.file("cache");
  const RuntimeOptions options = options_for(Policy::kF32, cache);
  RuntimeOptions traced = options;
  traced.trace = true;
  open_hamer(tiny_model(), options);
  EXPECT_EQ(open_hamer(tiny_model(), traced).statistics.path, LoadPath::kPartial);
  EXPECT_EQ(open_hamer(tiny_model(), traced).statistics.path, LoadPath::kWarm);
  EXPECT_EQ(open_hamer(tiny_model(), options).statistics.path, LoadPath::kWarm);
}

TEST(PreparedSession, InputsThatAreFoldedHavePlansOfTheirOwn) {
  const TestFolder folder;
  const std::string cache = folder.file("cache");
  RuntimeOptions options = options_for(Policy::kF32, cache);
  open_hamer(tiny_model(), options);
  options.u8_input = true;
  EXPECT_EQ(open_hamer(tiny_model(), options).statistics.path, LoadPath::kCold);
}

TEST(PreparedSession, TheReferenceKeepsPlanTensorsOnly) {
  const TestFolder folder;
  const std::string cache = folder.file("cache");
  RuntimeOptions options;
  options.backend = "reference";
  options.cache.root = cache;
  const HamerRuntime first = open_hamer(tiny_model(), options);
  EXPECT_EQ(first.statistics.device_folder, "");
  EXPECT_EQ(first.statistics.path, LoadPath::kCold);
  const HamerRuntime second = open_hamer(tiny_model(), options);
  EXPECT_EQ(second.statistics.path, LoadPath::kWarm);
  EXPECT_EQ(second.statistics.host_cold, 0U) << summary(second.statistics);
  EXPECT_GT(second.statistics.host_warm, 0U);
}

TEST(PreparedSession, FormsAreKnownWithoutWeights) {
  const auto backend = make_backend("cpu", {.threads = 1});
  RuntimeOptions options;
  options.policy = Policy::kF32;
  const PlannedHamer hamer = plan_hamer(tiny_model(), *backend, options);
  std::map<std::string, std::size_t> expected;
  for (const FormRequest& request : forms_of(hamer.planned().program(), *backend))
    expected[request.name] += request.form.bytes;
  const HamerRuntime open = open_hamer(tiny_model(), *backend, options);
  for (const std::string& name : open.weights->names()) {
    std::size_t bytes = 0;
    for (const ResidentForm& form : open.weights->get(name)) bytes += form.form.bytes;
    EXPECT_EQ(expected[name], bytes) << name;
  }
  EXPECT_EQ(open.weights->names().size(), expected.size());
  EXPECT_THAT(open.weights->by_category(), Contains(Key("attention")));
}

TEST(PreparedSession, BuildNeedsACacheAndABackendThatKeepsForms) {
  const auto cpu = make_backend("cpu", {.threads = 1});
  const auto reference = make_backend("reference", {.threads = 1});
  RuntimeOptions options;
  options.policy = Policy::kF32;
  const PlannedHamer hamer = plan_hamer(tiny_model(), *cpu, options);
  EXPECT_THROW(build_plan(hamer.planned(), *cpu, {}), Error);
  const TestFolder folder;
  EXPECT_THROW(build_plan(hamer.planned(), *reference, {.root = folder.file("cache")}), Error);
  const LoadStatistics built = build_plan(hamer.planned(), *cpu, {.root = folder.file("cache")});
  EXPECT_EQ(built.path, LoadPath::kCold);
  EXPECT_EQ(build_plan(hamer.planned(), *cpu, {.root = folder.file("cache")}).path, LoadPath::kWarm);
}

TEST(PreparedSession, Bfp8StaysCloseToItsReference) {
  if (!cpu_has_products(DType::kBF16, WeightStorage::kBfp8))
    GTEST_SKIP() << "this processor has no product with bfp8 weights";
  RuntimeOptions options = options_for(Policy::kBfp8, "");
  HamerRuntime fast = open_hamer(tiny_model(), options);
  options.backend = "reference";
  HamerRuntime reference = open_hamer(tiny_model(), options);
  options.policy = Policy::kF32;
  HamerRuntime exact = open_hamer(tiny_model(), options);
  const auto a = result_of(*fast.session), b = result_of(*reference.session), c = result_of(*exact.session);
  double own = 0, between = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    own = std::max(own, std::abs(static_cast<double>(b[i]) - c[i]));
    between = std::max(between, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  EXPECT_GT(own, 1e-4) << "the policy was not applied";
  // Roundings of activations to bf16 fall in other places; the weights are the same.
  EXPECT_LE(between, own);
}

}  // namespace
}  // namespace sinew::cli_test

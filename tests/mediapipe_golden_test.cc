// The four hand networks against ../shared/data/mediapipe/golden.json, which was recorded with another runner
// (PyTorch, f32). Of the landmark networks it holds every output; of the palm networks the five largest of
// the 2016 logits with their places, the mean logit and the 18 numbers of the best anchor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/sort_stably.h"
#include "base/test_assets.h"
#include "base/test_paths.h"
#include "runtime/mediapipe.h"
#include "runtime/runtime.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

constexpr double kBar = 1e-3;  // of the value range, as golden.json's own note and the issue say

struct Case {
  const char* network;
  const char* backend;
  Policy policy;
};

class MediapipeGolden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto path = shared_file("data/mediapipe/golden.json");
    const auto network = asset_file(std::string(GetParam().network) + ".tflite");
    if (!path) GTEST_SKIP() << kNoShared;
    if (!network) GTEST_SKIP() << kNoAssets;
    golden_ = Json::parse(std::ifstream(*path)).at("synthetic").at(GetParam().network);
    const std::unique_ptr<Backend> backend = make_backend(GetParam().backend, {.threads = 1});
    session_ = open_tflite_session(*network, *backend, GetParam().policy);
    fill_pattern();
    session_->run();
  }

  /// x[i] = 0.5 + 0.5 sin(0.37 i), rounded to f32.
  void fill_pattern() {
    const Program& program = session_->program();
    const Value& input = program.value(program.find("input"));
    Tensor pattern(DType::kF32, input.shape);
    auto values = pattern.as<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(0.5 + 0.5 * std::sin(0.37 * static_cast<double>(i)));
    convert_into(pattern, input.dtype, session_->input("input").data());
  }
  std::vector<double> output(const std::string& name) const {
    const Tensor copy = convert(session_->output(name), DType::kF64);
    const auto values = copy.as<double>();
    return {values.begin(), values.end()};
  }
  /// Golden values rounded to `decimals`, within kBar of the range of `range`.
  void expect_near(const std::string& what, const std::vector<double>& got, const std::vector<double>& want,
                   const std::vector<double>& range, int decimals) {
    ASSERT_EQ(got.size(), want.size()) << what;
    const auto [low, high] = std::ranges::minmax(range);
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
    EXPECT_LE(worst, kBar * (high - low)) << what;
    RecordProperty(what, fmt::format("max |difference| {:.2e} of range {:.4g}, golden rounded to {:.0e}",
                                     worst, high - low, std::pow(10, -decimals)));
    // Much nearer than the bar: what is left of f32 arithmetic (1e-5 of the range, measured 1e-6) and of the
    // golden's rounding.
    EXPECT_LE(worst, 1e-5 * (high - low) + 0.51 * std::pow(10, -decimals)) << what;
  }
  void check_palm();
  void check_landmarks();

  Json golden_;
  std::unique_ptr<Session> session_;
};

void MediapipeGolden::check_palm() {
  const std::vector<double> boxes = output("output0");
  const std::vector<double> logits = output("output1");
  ASSERT_EQ(boxes.size(), 2016U * 18);
  ASSERT_EQ(logits.size(), 2016U);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  sort_stably(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  const Json& top = golden_.at("top_logits");
  std::vector<double> got;
  std::vector<double> want;
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(order[i], top[i][0].get<std::size_t>()) << "place " << i;
    got.push_back(logits[order[i]]);
    want.push_back(top[i][1]);
  }
  EXPECT_EQ(top.size(), 5U);
  expect_near("top_logits", got, want, logits, 4);
  const double mean = std::accumulate(logits.begin(), logits.end(), 0.0) / static_cast<double>(logits.size());
  expect_near("mean_logit", {mean}, {golden_.at("mean_logit")}, logits, 5);
  const auto first = boxes.begin() + static_cast<std::ptrdiff_t>(18 * order[0]);
  expect_near("box_of_top", {first, first + 18}, golden_.at("box_of_top"), boxes, 3);
}

void MediapipeGolden::check_landmarks() {
  const std::vector<double> landmarks = output("output0");
  const std::vector<double> world = output("output3");
  expect_near("landmarks63", landmarks, golden_.at("landmarks63"), landmarks, 3);
  expect_near("world63", world, golden_.at("world63"), world, 5);
  // Probabilities: their range is 0 to 1.
  expect_near("presence", output("output1"), {golden_.at("presence")}, {0, 1}, 5);
  expect_near("handedness", output("output2"), {golden_.at("handedness")}, {0, 1}, 5);
}

TEST_P(MediapipeGolden, SyntheticInput) {
  if (std::string(GetParam().network).starts_with("palm")) {
    check_palm();
  } else {
    check_landmarks();
  }
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* network :
       {"palm_detection_full", "palm_detection_lite", "hand_landmark_full", "hand_landmark_lite"}) {
    out.push_back({network, "reference", Policy::kF64});
    out.push_back({network, "cpu", Policy::kF32});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Networks, MediapipeGolden, testing::ValuesIn(cases()), [](const auto& info) {
  return fmt::format("{}_{}", info.param.network, info.param.backend);
});

}  // namespace
}  // namespace sinew

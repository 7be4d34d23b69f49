// A small TFLite network of all thirteen operators, made by the test: what fusing changes (nothing), and
// `sinew run` and `inspect` on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cli_support.h"
#include "io/test_tflite.h"
#include "models/mediapipe/graph.h"
#include "runtime/mediapipe.h"
#include "runtime/runtime.h"

namespace sinew {
namespace {

using testing::HasSubstr;

Tensor picture() {
  Tensor out(DType::kF32, {1, 8, 8, 3});
  auto values = out.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(0.5 + 0.5 * std::sin(0.37 * static_cast<double>(i)));
  return out;
}

/// The outputs of one run, in file order.
std::vector<Tensor> run_network(const TestTflite& net, const std::string& backend_name, Policy policy) {
  const std::string bytes = net.build();
  const auto backend = make_backend(backend_name, {.threads = 1});
  const auto session =
      compile_tflite(parse_tflite(std::as_bytes(std::span(bytes)), "net.tflite"), *backend, policy);
  convert_into(picture(), stream_dtype(policy), session->input("input").data());
  session->run();
  std::vector<Tensor> out;
  out.reserve(net.outputs.size());
  for (std::size_t i = 0; i < net.outputs.size(); ++i)
    out.push_back(convert(session->output(fmt::format("output{}", i)), DType::kF64));
  return out;
}

double max_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  const auto left = a.as<double>();
  const auto right = b.as<double>();
  EXPECT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) worst = std::max(worst, std::abs(left[i] - right[i]));
  return worst;
}

/// An output of the graph goes into no other op: with every tensor an output nothing is fused.
TEST(MediapipeNetwork, FusedIsPlainInDouble) {
  const TestTflite fused = test_tflite_network();
  TestTflite plain = fused;
  for (const TestTfliteOperator& op : plain.operators) {
    const int out = op.outputs[0];
    if (op.code != TfliteCode::kDequantize && !std::ranges::count(plain.outputs, out))
      plain.outputs.push_back(out);
  }
  const std::string bytes = plain.build();
  const auto file = parse_tflite(std::as_bytes(std::span(bytes)), "plain.tflite");
  EXPECT_EQ(mediapipe::lower(file, Policy::kF64).program.ops().size(), 15U) << "one op for each operator";
  const std::vector<Tensor> want = run_network(plain, "reference", Policy::kF64);
  const std::vector<Tensor> got = run_network(fused, "reference", Policy::kF64);
  ASSERT_EQ(got.size(), 2U);
  for (std::size_t i = 0; i < got.size(); ++i) {
    // The same sums in the same order, but for the place of the residual: a few roundings of values below 10.
    EXPECT_LE(max_difference(got[i], want[i]), 1e-14) << i;
  }
}

TEST(MediapipeNetwork, BackendsAgree) {
  const TestTflite net = test_tflite_network();
  const std::vector<Tensor> want = run_network(net, "reference", Policy::kF64);
  const std::vector<Tensor> got = run_network(net, "cpu", Policy::kF32);
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Six products in a row of at most 27 terms each, on values below 10: 6 * 27 * 10 * 2^-24 = 1e-4.
    EXPECT_LE(max_difference(got[i], want[i]), 1e-4) << i;
    EXPECT_GT(want[i].as<double>()[0], 0) << "not all zeros";
  }
}

class MediapipeRun : public testing::Test {
 protected:
  MediapipeRun() {
    write_file_atomically(folder_.file("net.tflite"), test_tflite_network().build());
    write_safetensors(folder_.file("x.safetensors"), {{"input", picture()}});
  }
  cli_test::Ran run(const std::vector<std::string>& more, const std::string& in = "x.safetensors") {
    std::vector<std::string> all = {"run",   "net.tflite",    "--in",      in,
                                    "--out", "y.safetensors", "--threads", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return cli_test::run_sinew(folder_.file(""), all);
  }
  void expect_refused(const cli_test::Ran& ran, int status, const std::string& message) {
    EXPECT_EQ(ran.status, status) << ran.err;
    EXPECT_EQ(cli_test::lines_of(ran.err), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder_.file("y.safetensors")));
  }
  TestFolder folder_;
};

TEST_F(MediapipeRun, WritesOutputsOfTheFilesShapes) {
  const cli_test::Ran ran = run({"--backend", "reference"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  const auto file = open_safetensors(folder_.file("y.safetensors"));
  EXPECT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(file->get("output0").shape, (Shape{1, 20, 6}));
  EXPECT_EQ(file->get("output1").shape, (Shape{1, 2}));
  EXPECT_EQ(file->get("output0").dtype, DType::kF64);
  EXPECT_EQ(file->metadata().at("policy"), "f64");
  const std::vector<Tensor> want = run_network(test_tflite_network(), "reference", Policy::kF64);
  EXPECT_EQ(max_difference(convert(file->get("output0"), DType::kF64), want[0]), 0);
}

TEST_F(MediapipeRun, TakesPicturesWithoutTheBatchAxisAndFiltersOutputs) {
  const Tensor batched = picture();
  write_safetensors(folder_.file("plain.safetensors"), {{"input", reshaped(batched, {8, 8, 3})}});
  const cli_test::Ran ran = run({"--backend", "reference", "--only", "*1"}, "plain.safetensors");
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(open_safetensors(folder_.file("y.safetensors"))->tensors().size(), 1U);
}

TEST_F(MediapipeRun, CompareJudgesTheBackends) {
  ASSERT_EQ(run({"--backend", "reference"}).status, 0);
  std::filesystem::rename(folder_.file("y.safetensors"), folder_.file("truth.safetensors"));
  const cli_test::Ran fast = run({});
  ASSERT_EQ(fast.status, 0) << fast.err;
  const cli_test::Ran same = cli_test::run_sinew(
      folder_.file(""), {"compare", "y.safetensors", "truth.safetensors", "--rtol", "1e-4", "--atol", "0"});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
}

TEST_F(MediapipeRun, RefusesInOneLine) {
  const auto with = [&](const std::string& name, DType dtype, const Shape& shape) {
    const Tensor tensor(dtype, shape);
    write_safetensors(folder_.file("bad.safetensors"), {{name, tensor}});
    return run({}, "bad.safetensors");
  };
  expect_refused(with("image", DType::kF32, {1, 8, 8, 3}), 1,
                 "no tensor named input; the network takes input [1,8,8,3]");
  expect_refused(with("input", DType::kF32, {2, 8, 8, 3}), 1, "shape [2,8,8,3], expected [1,8,8,3]");
  expect_refused(with("input", DType::kU8, {1, 8, 8, 3}), 1, "input is u8, expected a float type");
  Tensor nan = picture();
  nan.as<float>()[5] = std::nanf("");
  write_safetensors(folder_.file("bad.safetensors"), {{"input", nan}});
  expect_refused(run({}, "bad.safetensors"), 1, "input element 5 is nan");
  expect_refused(run({"--trace"}), 1, "--trace");
  expect_refused(run({"--program", "plain"}), 1, "--program plain");
  expect_refused(run({"--policy", "bf16"}), 1, "policy bf16: TFLite networks run in f32 or f64");
  expect_refused(run({"--only", "pose"}), 2, "no output has such a name");
  TestTflite unknown = test_tflite_network();
  unknown.operators.back().code = static_cast<TfliteCode>(25);
  write_file_atomically(folder_.file("net.tflite"), unknown.build());
  expect_refused(run({}), 1, "SOFTMAX (version 1): the operator is not supported");
}

TEST_F(MediapipeRun, InspectListsConstants) {
  const cli_test::Ran ran = cli_test::run_sinew(folder_.file(""), {"inspect", "net.tflite"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("net.tflite: tflite"));
  EXPECT_THAT(ran.out, HasSubstr("metadata operators: 24"));
  EXPECT_THAT(ran.out, HasSubstr("depthwise"));
}

}  // namespace
}  // namespace sinew

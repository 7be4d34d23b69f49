#include "models/mediapipe/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "base/error.h"
#include "io/test_tflite.h"
#include "program/convolution.h"
#include "program/layout.h"
#include "program/linear.h"

namespace sinew::mediapipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Graph lowered(const TestTflite& net, Policy policy = Policy::kF32) {
  const std::string bytes = net.build();
  // Copied by the reader or not, the bytes must not outlive this call: only programs and plans are looked at.
  return lower(parse_tflite(std::as_bytes(std::span(bytes)), "net.tflite"), policy);
}

/// "convolution -> block: 1x1, stride 1x1, pad 0+0 x 0+0, prelu"
std::vector<std::string> ops_of(const Program& program) {
  std::vector<std::string> out;
  for (const auto& op : program.ops()) {
    out.push_back(fmt::format("{} -> {}", op->name(), program.value(op->outputs()[0]).name));
    if (!op->attributes().empty()) out.back() += ": " + op->attributes();
  }
  return out;
}

void expect_refused(const TestTflite& net, ErrorCode code, const std::string& message) {
  try {
    lowered(net);
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    EXPECT_THAT(error.what(), StartsWith("net.tflite: "));
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

/// A picture and what is made of it by `build`, which returns the output.
TestTflite network(const std::function<int(TestTflite&, int)>& build,
                   const std::vector<std::int32_t>& shape = {1, 4, 4, 2}) {
  TestTflite net;
  const int input = net.computed("picture", shape);
  net.inputs = {input};
  net.outputs = {build(net, input)};
  return net;
}

/// A 1x1 convolution of two channels.
int point(TestTflite& net, int x, const std::string& name, int activation = 0) {
  return net.conv({x, net.constant(name + ".w", {2, 1, 1, 2}), net.constant(name + ".b", {2})}, name,
                  {1, 4, 4, 2}, 1, 0, activation);
}

TEST(MediapipeGraph, ThirteenOperatorsBecomeOps) {
  const Graph graph = lowered(test_tflite_network());
  EXPECT_THAT(
      ops_of(graph.program),
      ElementsAre("convolution -> stem: 3x3, stride 2x2, pad 0+1 x 0+1, prelu",
                  "depthwise_convolution -> wide: 5x5, stride 1x1, pad 2+2 x 2+2, relu6",
                  "convolution -> block: 1x1, stride 1x1, pad 0+0 x 0+0, prelu",
                  "max_pool -> pooled: 2x2, stride 2x2, pad 0+0 x 0+0", "pad -> padded: 0+0 x 0+0 x 0+2",
                  "resize_bilinear -> scaled", "reshape -> a", "reshape -> b", "concat_rows -> output0",
                  "mean_pool -> mean", "linear -> dense", "logistic -> output1"));
  const Program& program = graph.program;
  EXPECT_EQ(program.value(program.find("input")).shape, (Shape{8, 8, 3}));
  EXPECT_EQ(program.value(program.find("output0")).shape, (Shape{20, 6}));
  EXPECT_EQ(program.value(program.find("output1")).shape, (Shape{1, 2}));
  const auto& fused = dynamic_cast<const Convolution&>(*program.ops()[2]);
  EXPECT_EQ(program.value(fused.residual).name, "stem");
  EXPECT_EQ(program.value(fused.slope).name, "slope");
  EXPECT_EQ(program.value(fused.slope).shape, Shape{4});
  EXPECT_EQ(program.value(fused.x).name, "wide");
}

TEST(MediapipeGraph, HalfWeightsAreWidenedInThePlan) {
  for (const Policy policy : {Policy::kF32, Policy::kF64}) {
    const std::string bytes = test_tflite_network().build();
    const auto file = parse_tflite(std::as_bytes(std::span(bytes)), "net.tflite");
    const Graph graph = lower(file, policy);
    const PlanEntry& entry = graph.plan.entries().at("depthwise");
    EXPECT_EQ(entry.dtype, stream_dtype(policy));
    EXPECT_EQ(entry.shape, (Shape{5, 5, 4}));
    EXPECT_EQ(graph.plan.entries().size(), 9U) << "slope is shared, DEQUANTIZE leaves nothing behind";
    PlanWeights weights(graph.plan, graph.sources);
    const TensorView wide = weights.load("depthwise", entry.dtype, entry.shape);
    for (std::int64_t i = 0; i < wide.shape.count(); ++i)
      EXPECT_EQ(element(wide, i), element(file->get("depthwise"), i)) << i;
  }
}

TEST(MediapipeGraph, PaddingIsTflites) {
  const auto attributes = [](std::int32_t extent, std::int32_t filter, int stride, int padding,
                             std::int32_t out) {
    const TestTflite net = network(
        [&](TestTflite& n, int x) {
          const int w = n.constant("w", {1, filter, filter, 2});
          return n.conv({x, w, n.constant("b", {1})}, "y", {1, out, out, 1}, stride, padding);
        },
        {1, extent, extent, 2});
    return lowered(net).program.ops()[0]->attributes();
  };
  EXPECT_EQ(attributes(5, 3, 1, 0, 5), "3x3, stride 1x1, pad 1+1 x 1+1");
  EXPECT_EQ(attributes(6, 3, 2, 0, 3), "3x3, stride 2x2, pad 0+1 x 0+1");
  EXPECT_EQ(attributes(5, 3, 2, 0, 3), "3x3, stride 2x2, pad 1+1 x 1+1");
  EXPECT_EQ(attributes(192, 5, 2, 0, 96), "5x5, stride 2x2, pad 1+2 x 1+2");
  EXPECT_EQ(attributes(5, 1, 2, 0, 3), "1x1, stride 2x2, pad 0+0 x 0+0");
  EXPECT_EQ(attributes(6, 3, 2, 1, 2), "3x3, stride 2x2, pad 0+0 x 0+0");
}

TEST(MediapipeGraph, FusesWhatNothingElseReads) {
  // The residual is made between the convolution and its ADD: the fused op stands behind it.
  const TestTflite late = network([](TestTflite& net, int x) {
    const int conv = point(net, x, "conv");
    const int other = net.op(TfliteCode::kLogistic, {x}, "other", {1, 4, 4, 2});
    return net.op(TfliteCode::kAdd, {other, conv}, "sum", {1, 4, 4, 2});
  });
  EXPECT_THAT(ops_of(lowered(late).program),
              ElementsAre("logistic -> other", "convolution -> output0: 1x1, stride 1x1, pad 0+0 x 0+0"));

  // Of two convolutions the later one takes the other as its residual.
  const TestTflite two = network([](TestTflite& net, int x) {
    const int a = point(net, x, "a");
    const int b = point(net, x, "b");
    return net.op(TfliteCode::kAdd, {b, a}, "sum", {1, 4, 4, 2});
  });
  const Graph pair = lowered(two);
  EXPECT_THAT(ops_of(pair.program),
              ElementsAre(StartsWith("convolution -> a"), StartsWith("convolution -> output0")));
  const auto& fused = dynamic_cast<const Convolution&>(*pair.program.ops()[1]);
  EXPECT_EQ(pair.program.value(fused.residual).name, "a");
}

TEST(MediapipeGraph, FusesNothingElse) {
  const auto ops = [](const std::function<int(TestTflite&, int)>& build) {
    std::vector<std::string> names;
    const Graph graph = lowered(network(build));
    for (const auto& op : graph.program.ops()) names.emplace_back(op->name());
    return names;
  };
  // A rectifier before the sum.
  EXPECT_THAT(ops([](TestTflite& net, int x) {
                return net.op(TfliteCode::kAdd, {point(net, x, "conv", 3), x}, "sum", {1, 4, 4, 2});
              }),
              ElementsAre("convolution", "add"));
  // A second reader.
  EXPECT_THAT(ops([](TestTflite& net, int x) {
                const int conv = point(net, x, "conv");
                const int sum = net.op(TfliteCode::kAdd, {conv, x}, "sum", {1, 4, 4, 2});
                return net.op(TfliteCode::kAdd, {conv, sum}, "again", {1, 4, 4, 2});
              }),
              ElementsAre("convolution", "add", "add"));
  // Twice in one sum.
  EXPECT_THAT(ops([](TestTflite& net, int x) {
                const int conv = point(net, x, "conv");
                return net.op(TfliteCode::kAdd, {conv, conv}, "sum", {1, 4, 4, 2});
              }),
              ElementsAre("convolution", "add"));
  // An output of the graph.
  TestTflite both = network([](TestTflite& net, int x) {
    return net.op(TfliteCode::kPrelu, {point(net, x, "conv"), net.constant("slope", {2})}, "y", {1, 4, 4, 2});
  });
  both.outputs.push_back(both.operators[0].outputs[0]);
  EXPECT_EQ(lowered(both).program.ops().size(), 2U);
  // A second sum, which finds the residual taken; a sum after PRELU; a sum of a depthwise convolution.
  EXPECT_THAT(ops([](TestTflite& net, int x) {
                const int sum = net.op(TfliteCode::kAdd, {point(net, x, "conv"), x}, "sum", {1, 4, 4, 2});
                return net.op(TfliteCode::kAdd, {sum, x}, "again", {1, 4, 4, 2});
              }),
              ElementsAre("convolution", "add"));
  EXPECT_THAT(ops([](TestTflite& net, int x) {
                const int slope = net.constant("slope", {2});
                const int y = net.op(TfliteCode::kPrelu, {point(net, x, "conv"), slope}, "y", {1, 4, 4, 2});
                return net.op(TfliteCode::kAdd, {y, x}, "sum", {1, 4, 4, 2});
              }),
              ElementsAre("convolution", "add"));
  EXPECT_THAT(ops([](TestTflite& net, int x) {
                const int w = net.constant("w", {1, 3, 3, 2});
                const int y = net.depthwise({x, w, net.constant("b", {2})}, "y", {1, 4, 4, 2});
                return net.op(TfliteCode::kAdd, {y, x}, "sum", {1, 4, 4, 2});
              }),
              ElementsAre("depthwise_convolution", "add"));
}

TEST(MediapipeGraph, ShapesAndActivationsGetOpsOfTheirOwn) {
  const TestTflite kept = network([](TestTflite& net, int x) {
    const int mean = net.op(TfliteCode::kMean, {x, net.integers("axes", {2}, {-2, 1})}, "mean", {1, 1, 1, 2});
    net.options<schema::ReducerBuilder>(schema::Options::Reducer, [](auto& b) { b.add_keep_dims(true); });
    const int dense =
        net.op(TfliteCode::kFullyConnected, {mean, net.constant("w", {3, 2}), -1}, "dense", {1, 3});
    net.options<schema::FullyConnectedBuilder>(schema::Options::FullyConnected,
                                               [](auto& b) { b.add_activation(1); });
    return dense;
  });
  EXPECT_THAT(ops_of(lowered(kept).program),
              ElementsAre("mean_pool -> mean/raw", "reshape -> mean", "reshape -> mean/row",
                          "linear -> dense/raw", "rectify -> output0: relu"));
  const TestTflite bare = network([](TestTflite& net, int x) {
    return net.conv({x, net.constant("w", {2, 1, 1, 2})}, "y", {1, 4, 4, 2});
  });
  const Graph graph = lowered(bare);
  PlanWeights weights(graph.plan, graph.sources);
  const TensorView zeros = weights.load("y/no_bias", DType::kF32, {2});
  EXPECT_THAT(zeros.as<float>(), ElementsAre(0, 0));
}

TEST(MediapipeGraph, NamesAreReadableAndUnique) {
  TestTflite net = network([](TestTflite& n, int x) {
    const int a = n.op(TfliteCode::kLogistic, {x}, "input", {1, 4, 4, 2});
    const int b = n.op(TfliteCode::kLogistic, {a}, "block/add;block/Relu", {1, 4, 4, 2});
    const int c = n.op(TfliteCode::kLogistic, {b}, "block/add;block/mul", {1, 4, 4, 2});
    return n.op(TfliteCode::kLogistic, {c}, "output1", {1, 4, 4, 2});
  });
  net.inputs.push_back(net.computed("second", {1, 2}));
  EXPECT_THAT(ops_of(lowered(net).program), ElementsAre("logistic -> input", "logistic -> block/add",
                                                        "logistic -> block/add#3", "logistic -> output0"));
  const Program program = lowered(net).program;
  EXPECT_EQ(program.value(program.find("input1")).shape, (Shape{1, 2}));
  net.inputs.pop_back();
  EXPECT_EQ(ops_of(lowered(net).program)[0], "logistic -> input#1");
}

TEST(MediapipeGraph, RefusesWhatItCannotRun) {
  TestTflite net =
      network([](TestTflite& n, int x) { return n.op(static_cast<TfliteCode>(25), {x}, "y", {1, 4, 4, 2}); });
  net.operators[0].version = 2;
  expect_refused(net, ErrorCode::kUnsupported,
                 "operator 0 SOFTMAX (version 2): the operator is not supported");
  const auto refused = [](const std::function<int(TestTflite&, int)>& build, const std::string& message) {
    expect_refused(network(build), ErrorCode::kUnsupported, message);
  };
  const std::vector<std::int32_t> shape = {1, 4, 4, 2};
  refused([&](TestTflite& n,
              int x) { return n.conv({x, n.constant("w", {2, 1, 1, 2})}, "y", shape, 1, 0, 0, 2); },
          "operator 0 CONV_2D (version 1): dilation_rows is 2, expected 1");
  refused(
      [&](TestTflite& n, int x) { return n.conv({x, n.constant("w", {2, 1, 1, 2})}, "y", shape, 1, 0, 4); },
      "fused activation TANH, expected NONE, RELU or RELU6");
  refused([&](TestTflite& n, int x) { return n.conv({x, n.constant("w", {2, 1, 1, 1})}, "y", shape); },
          "tensor 1 'w', has the shape [2,1,1,1], expected [N,rows,columns,2]");
  refused([&](TestTflite& n, int x) { return n.conv({x, x}, "y", shape); },
          "input 1, tensor 0 'picture', is computed, expected a constant");
  refused([&](TestTflite& n,
              int x) { return n.depthwise({x, n.constant("w", {1, 1, 1, 4})}, "y", {1, 4, 4, 4}, 1, 0, 2); },
          "depth_multiplier is 2, expected 1");
  refused([&](TestTflite& n, int x) { return n.resize({x, n.integers("s", {2}, {4, 4})}, "y", shape, true); },
          "align_corners is true, expected false");
  refused([&](TestTflite& n,
              int x) { return n.resize({x, n.integers("s", {2}, {4, 4})}, "y", shape, false, false); },
          "half_pixel_centers is false, expected true");
}

TEST(MediapipeGraph, RefusesShapesItCannotRun) {
  const auto refused = [](const std::function<int(TestTflite&, int)>& build, const std::string& message) {
    expect_refused(network(build), ErrorCode::kUnsupported, message);
  };
  const std::vector<std::int32_t> shape = {1, 4, 4, 2};
  refused([&](TestTflite& n, int x) { return n.op(TfliteCode::kDequantize, {x}, "y", shape); },
          "input 0, tensor 0 'picture', is computed, expected a constant");
  refused([&](TestTflite& n, int x) { return n.concatenation({x, x}, "y", {1, 4, 4, 4}, 3); },
          "joins along axis 3 to [1,4,4,4], expected axis 1 of three");
  refused([&](TestTflite& n,
              int x) { return n.op(TfliteCode::kMean, {x, n.integers("axes", {1}, {3})}, "y", {1, 4, 4}); },
          "takes the mean over the axes [3], expected [1,2]");
  refused(
      [&](TestTflite& n, int x) {
        return n.op(TfliteCode::kPad, {x, n.integers("p", {4, 2}, {0, 1, 0, 0, 0, 0, 0, 0})}, "y",
                    {2, 4, 4, 2});
      },
      "pads axis 0 by 1, expected 0");
  refused(
      [&](TestTflite& n, int x) {
        return n.op(TfliteCode::kPad, {x, n.integers("p", {4, 2}, {0, 0, 0, -1, 0, 0, 0, 0})}, "y",
                    {1, 3, 4, 2});
      },
      "pads axis 1 by -1, expected at least 0");
  refused(
      [&](TestTflite& n, int x) { return n.op(TfliteCode::kAdd, {x, n.constant("c", shape)}, "y", shape); },
      "tensor 1 'c' is constant, expected a computed tensor");
  refused(
      [&](TestTflite& n, int x) {
        return n.op(TfliteCode::kAdd, {x, n.op(TfliteCode::kReshape, {x}, "z", {1, 16, 2})}, "y", shape);
      },
      "adds the shapes [1,4,4,2] and [1,16,2]");
  refused([&](TestTflite& n,
              int x) { return n.op(TfliteCode::kPrelu, {x, n.constant("s", {4, 4, 2})}, "y", shape); },
          "has slopes of shape [4,4,2] for [1,4,4,2], expected one for each channel");
  expect_refused(
      network([](TestTflite& n, int x) { return n.op(TfliteCode::kLogistic, {x}, "y", {2, 4, 4, 2}); },
              {2, 4, 4, 2}),
      ErrorCode::kUnsupported, "tensor 0 'picture' has the shape [2,4,4,2], a batch of 2, expected 1");
  TestTflite bytes =
      network([&](TestTflite& n, int x) { return n.op(TfliteCode::kLogistic, {x}, "y", shape); });
  bytes.tensors[0].type = 3;
  expect_refused(bytes, ErrorCode::kUnsupported, "tensor 0 'picture' is u8, expected f32");
  EXPECT_THROW(lowered(test_tflite_network(), Policy::kBF16), Error);
}

TEST(MediapipeGraph, RefusesGraphsThatDoNotFit) {
  const std::vector<std::int32_t> shape = {1, 4, 4, 2};
  const auto refused = [](const std::function<int(TestTflite&, int)>& build, const std::string& message) {
    expect_refused(network(build), ErrorCode::kMismatch, message);
  };
  refused([&](TestTflite& n, int x) { return n.op(TfliteCode::kLogistic, {x, x}, "y", shape); },
          "operator 0 LOGISTIC (version 1): has 2 inputs, expected 1 to 1");
  refused([&](TestTflite& n, int) { return n.op(TfliteCode::kLogistic, {1}, "y", shape); },
          "tensor 1 'y' is read before it has a value");
  refused([&](TestTflite& n, int) { return n.op(TfliteCode::kLogistic, {-1}, "y", shape); },
          "input 0 is absent");
  refused([&](TestTflite& n, int x) { return n.op(TfliteCode::kLogistic, {x}, "y", {1, 4, 4, 3}); },
          "logistic");
  refused(
      [&](TestTflite& n, int x) {
        const int y = n.op(TfliteCode::kLogistic, {x}, "y", shape);
        n.operators.push_back(n.operators.back());
        return y;
      },
      "operator 1 LOGISTIC (version 1): tensor 1 'y' already has a value");
  refused([&](TestTflite& n, int x) { return n.conv({x, n.constant("w", {2, 3, 3, 2})}, "y", {1, 3, 4, 2}); },
          "operator 0 CONV_2D (version 1): ");
  refused([&](TestTflite& n,
              int x) { return n.conv({x, n.constant("w", {2, 1, 1, 2}), n.constant("b", {3})}, "y", shape); },
          "input 2, tensor 2 'b', has the shape [3], expected the 2 elements of [2]");
  refused([&](TestTflite& n,
              int x) { return n.op(TfliteCode::kReshape, {x, n.integers("s", {2}, {1, 30})}, "y", {1, 32}); },
          "gives the shape [1,30], but its result has the shape [1,32]");
  refused([&](TestTflite& n, int x) { return n.op(TfliteCode::kReshape, {x}, "y", {1, 31}); }, "reshape");
  refused([&](TestTflite& n, int x) { return n.resize({x, n.integers("s", {2}, {4, 5})}, "y", shape); },
          "scales to [4,5], but its result has the shape [1,4,4,2]");
  refused([&](TestTflite& n, int) { return n.computed("y", shape); },
          "tensor 1 'y' is an output of the graph, but has no computed value");
  TestTflite net =
      network([&](TestTflite& n, int x) { return n.op(TfliteCode::kLogistic, {x}, "y", shape); });
  net.outputs = {1, 1};
  expect_refused(net, ErrorCode::kUnsupported,
                 "tensor 1 'y' is two outputs of the graph: output0 and output1");
  net.outputs = {0};
  expect_refused(net, ErrorCode::kUnsupported,
                 "output 0 of the graph is tensor 0 'picture', which no operator");
}

}  // namespace
}  // namespace sinew::mediapipe

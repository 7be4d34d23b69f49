#include "io/tflite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "io/atomic_file.h"
#include "io/inspect.h"
#include "io/test_damage.h"
#include "io/test_folder.h"
#include "io/test_tflite.h"

namespace sinew {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<const TfliteFile> parse(const std::string& bytes) {
  return parse_tflite(std::as_bytes(std::span(bytes)), "net.tflite");
}

void expect_refused(const TestTflite& net, ErrorCode code, const std::string& message) {
  try {
    parse(net.build());
    ADD_FAILURE() << "accepted; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("net.tflite: "));
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

/// One ADD of the input with itself.
TestTflite smallest() {
  TestTflite net;
  const int input = net.computed("x", {1, 2});
  net.outputs = {net.op(TfliteCode::kAdd, {input, input}, "sum", {1, 2})};
  net.inputs = {input};
  return net;
}

TEST(Tflite, ReadsTensorsOperatorsAndOptions) {
  const std::string bytes = test_tflite_network().build();
  EXPECT_TRUE(is_tflite(std::as_bytes(std::span(bytes))));
  const auto file = parse(bytes);
  EXPECT_EQ(file->format(), "tflite");
  EXPECT_EQ(file->metadata().at("operators"), std::to_string(file->operators().size()));
  EXPECT_THAT(file->inputs(), ElementsAre(0));
  const TfliteTensor& input = file->graph_tensors()[0];
  EXPECT_EQ(input.name, "picture");
  EXPECT_EQ(input.shape, (Shape{1, 8, 8, 3}));
  EXPECT_EQ(input.dtype, DType::kF32);
  EXPECT_FALSE(input.constant);
  const TensorView& filter = file->get("conv");
  EXPECT_EQ(filter.dtype, DType::kF16);
  EXPECT_EQ(filter.shape, (Shape{4, 3, 3, 3}));
  EXPECT_NEAR(element(filter, 1), std::sin(1.7 + 1), 1e-3) << "tensor 1, element 1, in f16";
  EXPECT_EQ(file->find("picture"), nullptr) << "not a constant";

  std::vector<std::string> names;
  for (const TfliteOperator& op : file->operators()) {
    if (op.code != TfliteCode::kDequantize) names.push_back(op.name);
  }
  EXPECT_THAT(names, ElementsAre("CONV_2D", "PRELU", "DEPTHWISE_CONV_2D", "CONV_2D", "ADD", "PRELU",
                                 "MAX_POOL_2D", "PAD", "RESIZE_BILINEAR", "RESHAPE", "RESHAPE",
                                 "CONCATENATION", "MEAN", "FULLY_CONNECTED", "LOGISTIC"));
  const TfliteOperator& conv = file->operators()[2];
  EXPECT_EQ(conv.version, 1);
  EXPECT_EQ(conv.inputs.size(), 3U);
  const auto& options = std::get<TfliteConvolution>(conv.options);
  EXPECT_EQ(options.padding, TflitePadding::kSame);
  EXPECT_EQ(options.stride_rows, 2);
  EXPECT_EQ(options.stride_columns, 2);
  EXPECT_EQ(options.dilation_columns, 1);
  EXPECT_EQ(options.activation, TfliteActivation::kNone);
  const auto of = [&](TfliteCode code) -> const TfliteOptions& {
    return std::ranges::find(file->operators(), code, &TfliteOperator::code)->options;
  };
  EXPECT_EQ(std::get<TfliteConvolution>(of(TfliteCode::kDepthwiseConv2d)).activation,
            TfliteActivation::kRelu6);
  EXPECT_EQ(std::get<TflitePool>(of(TfliteCode::kMaxPool2d)).filter_columns, 2);
  EXPECT_TRUE(std::get<TfliteResizeBilinear>(of(TfliteCode::kResizeBilinear)).half_pixel_centers);
  EXPECT_EQ(std::get<TfliteConcatenation>(of(TfliteCode::kConcatenation)).axis, 1);
  EXPECT_FALSE(std::get<TfliteReducer>(of(TfliteCode::kMean)).keep_dims);
}

TEST(Tflite, OpensFromDiskAndIsACheckpoint) {
  const TestFolder folder;
  const std::string path = folder.file("net.bin");
  const std::string bytes = test_tflite_network().build();
  write_file_atomically(path, bytes);
  EXPECT_EQ(open_tflite(path)->operators().size(), parse(bytes)->operators().size());
  const auto checkpoint = open_checkpoint(path);
  EXPECT_EQ(checkpoint->format(), "tflite");
  checkpoint->release(checkpoint->get("conv"));
  EXPECT_EQ(checkpoint->get("paddings").dtype, DType::kI32);
  const std::string text = to_text(inspect_checkpoint(*checkpoint));
  EXPECT_THAT(text, HasSubstr("operators: "));
  EXPECT_THAT(text, HasSubstr("[4,3,3,3]"));
}

TEST(Tflite, NamesAreUnique) {
  TestTflite net = smallest();
  net.constant("w", {2});
  net.constant("w", {3});
  net.constant("", {4});
  net.constant("w#3", {5});
  const auto file = parse(net.build());
  EXPECT_EQ(file->tensors().size(), 4U);
  EXPECT_EQ(file->get("w#2").shape, Shape{2});
  EXPECT_EQ(file->get("w#3").shape, Shape{5}) << "a name that was there keeps it";
  EXPECT_EQ(file->get("w#3#3").shape, Shape{3});
  EXPECT_EQ(file->get("#4").shape, Shape{4});
}

TEST(Tflite, DataNeedNotBeAligned) {
  const std::string bytes = test_tflite_network().build();
  std::string shifted = "x" + bytes;
  const auto file = parse_tflite(std::as_bytes(std::span(shifted)).subspan(1), "net.tflite");
  EXPECT_EQ(element(file->get("conv"), 1), element(parse(bytes)->get("conv"), 1));
}

TEST(Tflite, UnknownOperatorsHaveNames) {
  TestTflite net = smallest();
  net.operators[0].code = static_cast<TfliteCode>(25);
  EXPECT_EQ(parse(net.build())->operators()[0].name, "SOFTMAX");
  net.operators[0].code = static_cast<TfliteCode>(150);
  EXPECT_EQ(parse(net.build())->operators()[0].name, "GELU");
  net.operators[0].code = static_cast<TfliteCode>(4000);
  EXPECT_EQ(parse(net.build())->operators()[0].name, "operator 4000");
  net.operators[0].code = TfliteCode::kCustom;
  net.operators[0].custom = "Crop\nMe";
  net.operators[0].version = 7;
  EXPECT_EQ(parse(net.build())->operators()[0].name, "CUSTOM 'Crop\\x0aMe'");
  EXPECT_EQ(parse(net.build())->operators()[0].version, 7);
}

TEST(Tflite, AbsentOperandsAreMinusOne) {
  TestTflite net = smallest();
  net.operators[0].inputs = {0, -1};
  EXPECT_THAT(parse(net.build())->operators()[0].inputs, ElementsAre(0, -1));
}

TEST(Tflite, RefusesTensors) {
  const auto with = [](const std::function<void(TestTfliteTensor&)>& change) {
    TestTflite net = smallest();
    net.constant("w", {2, 3});
    change(net.tensors.back());
    return net;
  };
  expect_refused(with([](auto& t) { t.shape = {2, 4}; }), ErrorCode::kFormat,
                 "tensor 2 'w': buffer 1 has 24 bytes, but [2,4] of f32 takes 32");
  expect_refused(with([](auto& t) { t.shape = {2, 2}; }), ErrorCode::kFormat, "takes 16");
  expect_refused(with([](auto& t) { t.shape = {0, 2}; }), ErrorCode::kFormat, "takes 0");
  expect_refused(with([](auto& t) { t.shape = {2, -3}; }), ErrorCode::kFormat, "axis 1 has the extent -3");
  expect_refused(with([](auto& t) { t.shape.assign(9, 1); }), ErrorCode::kLimit,
                 "9 axes, expected at most 8");
  expect_refused(with([](auto& t) { t.shape.assign(8, std::numeric_limits<std::int32_t>::max()); }),
                 ErrorCode::kLimit, "overflow");
  expect_refused(with([](auto& t) { t.shape = {1 << 30, 1 << 30, 4}; }), ErrorCode::kFormat,
                 "more than 64 bits");
  expect_refused(with([](auto& t) { t.type = 19; }), ErrorCode::kFormat, "element type 19, expected 0 to 18");
  expect_refused(with([](auto& t) { t.type = -1; }), ErrorCode::kFormat, "element type -1");
  expect_refused(with([](auto& t) { t.type = 5; }), ErrorCode::kUnsupported, "STRING is not supported");
  expect_refused(with([](auto& t) { t.buffer = 2; }), ErrorCode::kFormat,
                 "buffer 2 does not exist, the file has 1");
  expect_refused(with([](auto& t) { t.variable = true; }), ErrorCode::kUnsupported, "is a variable tensor");
  expect_refused(with([](auto& t) { t.sparse = true; }), ErrorCode::kUnsupported, "is a sparse tensor");
  expect_refused(with([](auto& t) { t.scales = {0.5F}; }), ErrorCode::kUnsupported,
                 "is quantised (1 scales, 0 zero points)");
  expect_refused(with([](auto& t) { t.name.assign(5000, 'n'); }), ErrorCode::kLimit,
                 "its name has 5000 bytes");
  TestTflite external = smallest();
  external.external = 8;
  expect_refused(external, ErrorCode::kUnsupported, "outside of the FlatBuffer (buffer 0, offset 0, size 8)");
}

/// Small files that would take much memory: shapes without data, shared data, long lists.
TEST(Tflite, RefusesTooMuch) {
  TestTflite large = smallest();
  large.computed("y", {1, 1 << 14, 1 << 14, 1});
  expect_refused(large, ErrorCode::kLimit, "computed tensors have more than 268435456 elements");
  TestTflite shared = smallest();
  shared.constant("megabyte", {1 << 18});
  for (int i = 0; i < 1024; ++i) {
    shared.computed("again", {1 << 18});
    shared.tensors.back().buffer = 1;
  }
  expect_refused(shared, ErrorCode::kLimit, "constants take more than 1073741824 bytes");
  TestTflite many = smallest();
  for (int i = 0; i < 20000; ++i) many.computed("", {1});
  expect_refused(many, ErrorCode::kLimit, "20002 tensors, expected at most 20000");
  TestTflite busy = smallest();
  busy.operators.resize(10001, busy.operators[0]);
  expect_refused(busy, ErrorCode::kLimit, "10001 operators, expected at most 10000");
  TestTflite wide = smallest();
  wide.operators[0].inputs.assign(257, 0);
  expect_refused(wide, ErrorCode::kLimit, "operator 0 ADD: 257 inputs, expected at most 256");
  TestTflite ends = smallest();
  ends.outputs.assign(257, 1);
  expect_refused(ends, ErrorCode::kLimit, "graph outputs: 257 outputs");
}

TEST(Tflite, RefusesOperators) {
  const auto with = [](const std::function<void(TestTfliteOperator&)>& change) {
    TestTflite net = smallest();
    change(net.operators[0]);
    return net;
  };
  expect_refused(with([](auto& op) { op.inputs = {0, 2}; }), ErrorCode::kFormat,
                 "operator 0 ADD: number 1 of its inputs is tensor 2, which does not exist; the graph has 2");
  expect_refused(with([](auto& op) { op.inputs = {-2}; }), ErrorCode::kFormat, "is tensor -2");
  expect_refused(with([](auto& op) { op.outputs = {-1}; }), ErrorCode::kFormat, "number 0 of its outputs");
  expect_refused(with([](auto& op) { op.code = static_cast<TfliteCode>(-5); }), ErrorCode::kFormat,
                 "operator 0: operator code 0 is the number -5");
  TestTflite net = smallest();
  net.inputs = {7};
  expect_refused(net, ErrorCode::kFormat, "graph inputs: number 0 of its inputs is tensor 7");
  net = smallest();
  net.outputs = {-1};
  expect_refused(net, ErrorCode::kFormat, "graph outputs: ");
  net = smallest();
  net.operators[0].code = TfliteCode::kConv2d;
  expect_refused(net, ErrorCode::kFormat, "operator 0 CONV_2D: has no options, expected strides and padding");
  net.options<schema::AddBuilder>(schema::Options::Add, [](auto&) {});
  expect_refused(net, ErrorCode::kFormat, "its options are of type 11, expected 1");
  net = smallest();
  net.conv({0}, "y", {1, 2}, 0);
  expect_refused(net, ErrorCode::kFormat, "stride_rows is 0, expected at least 1");
  net = smallest();
  net.conv({0}, "y", {1, 2}, 1, 2);
  expect_refused(net, ErrorCode::kFormat, "padding 2, expected 0 or 1");
  net = smallest();
  net.conv({0}, "y", {1, 2}, 1, 0, 6);
  expect_refused(net, ErrorCode::kFormat, "fused activation 6, expected 0 to 5");
  net = smallest();
  net.conv({0}, "y", {1, 2}, 1, 0, 0, -1);
  expect_refused(net, ErrorCode::kFormat, "dilation_rows is -1, expected at least 1");
  net = smallest();
  net.max_pool({0}, "y", {1, 2}, 0, 1);
  expect_refused(net, ErrorCode::kFormat, "filter_rows is 0");
}

TEST(Tflite, RefusesFiles) {
  TestTflite net = smallest();
  net.version = 4;
  expect_refused(net, ErrorCode::kUnsupported, "schema version 4, expected 3");
  net = smallest();
  net.subgraphs = 2;
  expect_refused(net, ErrorCode::kUnsupported, "2 subgraphs, expected 1");
  net.subgraphs = 0;
  expect_refused(net, ErrorCode::kUnsupported, "0 subgraphs");
  net = smallest();
  net.identifier = "TFL2";
  expect_refused(net, ErrorCode::kFormat, "'TFL3' is not at offset 4");
  EXPECT_FALSE(is_tflite({}));
}

/// FlatBuffers offsets only point forward, so that nothing can contain itself; that a graph feeds itself is
/// for mediapipe::lower to refuse.
TEST(Tflite, OperatorsMayNameTensorsInAnyOrder) {
  TestTflite net = smallest();
  net.operators[0].inputs = {1, 1};
  EXPECT_THAT(parse(net.build())->operators()[0].inputs, ElementsAre(1, 1));
}

TEST(Tflite, SurvivesDamage) {
  const auto read = [](std::span<const std::byte> bytes) {
    const auto file = parse_tflite(bytes, "damaged");
    for (const auto& [name, view] : file->tensors()) {
      for (std::int64_t i = 0; i < view.shape.count(); ++i) element(view, i);
    }
  };
  const std::string file = test_tflite_network().build();
  ASSERT_TRUE(parse_outcome(file, read));
  expect_truncations_refused(file, read);
  survive_flips(file, read, 20'000);
}

/// Every 32-bit word replaced by numbers that stand for huge vectors, offsets out of the file and backwards.
TEST(Tflite, SurvivesHugeNumbers) {
  const auto read = [](std::span<const std::byte> bytes) { parse_tflite(bytes, "damaged"); };
  const std::string file = test_tflite_network().build();
  for (const std::uint32_t value :
       {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU, 0xfffffff0U, 0x00ffffffU}) {
    for (std::size_t at = 0; at + 4 <= file.size(); at += 4) {
      std::string damaged = file;
      std::memcpy(damaged.data() + at, &value, 4);
      parse_outcome(damaged, read);
    }
  }
}

}  // namespace
}  // namespace sinew

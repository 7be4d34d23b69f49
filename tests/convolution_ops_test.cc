// The ops over pictures: the reference against examples worked by hand and against plain loops, the fast
// forms against the reference over many shapes. Bounds follow from dtype and inner size, not from taste.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops_test_support.h"
#include "program/convolution.h"
#include "program/elementwise.h"
#include "program/layout.h"

namespace sinew {
namespace {

using test::kF32Unit;
using test::OpCase;
using test::random_tensor;
using Operand = std::function<ValueId(const char*)>;

constexpr Rectifier kRectifiers[] = {Rectifier::kNone, Rectifier::kRelu, Rectifier::kRelu6,
                                     Rectifier::kPRelu};

enum class Residual : std::uint8_t { kNone, kOther, kX };  // kX: the picture itself

/// TFLite's SAME: ceil(extent / stride) outputs, the odd pixel of padding at the end.
void pad_same(std::int64_t extent, std::int64_t window, std::int64_t stride, std::int64_t& before,
              std::int64_t& after) {
  const std::int64_t outputs = (extent + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>(0, (outputs - 1) * stride + window - extent);
  before = total / 2;
  after = total - before;
}

Window same_window(std::int64_t side, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  Window w{side, side, stride, stride};
  pad_same(rows, side, stride, w.pad_top, w.pad_bottom);
  pad_same(columns, side, stride, w.pad_left, w.pad_right);
  return w;
}

/// A convolution, or a depthwise one where `filters` is 0.
struct Layer {
  std::int64_t rows = 0, columns = 0, channels = 0, filters = 0;
  Window window;
  Rectifier rectifier = Rectifier::kNone;
  Residual residual = Residual::kNone;

  bool depthwise() const { return filters == 0; }
  std::int64_t channels_out() const { return depthwise() ? channels : filters; }
  Shape out() const { return {window.out_rows(rows), window.out_columns(columns), channels_out()}; }
  /// Products in each sum.
  std::int64_t inner() const { return window.rows * window.columns * (depthwise() ? 1 : channels); }
  std::string what() const {
    return fmt::format("{}x{}x{} -> {}, window {}x{} stride {}x{} pad {}+{} {}+{}, {}, residual {}", rows,
                       columns, channels, filters, window.rows, window.columns, window.stride_rows,
                       window.stride_columns, window.pad_top, window.pad_bottom, window.pad_left,
                       window.pad_right, to_string(rectifier), static_cast<int>(residual));
  }
  void add(ProgramBuilder& b, const Operand& value, ValueId out) const {
    if (depthwise()) {
      DepthwiseConvolution op;
      fill(op, value, out);
      b.add(op);
      return;
    }
    Convolution op;
    fill(op, value, out);
    if (residual == Residual::kOther) op.residual = value("residual");
    if (residual == Residual::kX) op.residual = op.x;
    b.add(op);
  }

 private:
  template <typename Op>
  void fill(Op& op, const Operand& value, ValueId out) const {
    op.x = value("x");
    op.weight = value("w");
    op.bias = value("bias");
    if (rectifier == Rectifier::kPRelu) op.slope = value("slope");
    op.out = out;
    op.window = window;
    op.rectifier = rectifier;
  }
};

OpCase case_of(const Layer& layer, std::mt19937& random) {
  OpCase c;
  const std::int64_t n = layer.channels_out();
  const Shape weight = layer.depthwise() ? Shape{layer.window.rows, layer.window.columns, layer.channels}
                                         : Shape{n, layer.window.rows, layer.window.columns, layer.channels};
  const double scale = 2 / std::sqrt(static_cast<double>(layer.inner()));
  c.inputs.emplace("x", random_tensor(random, DType::kF32, {layer.rows, layer.columns, layer.channels}));
  if (layer.residual == Residual::kOther) {
    c.inputs.emplace("residual", random_tensor(random, DType::kF32, layer.out(), 2));
  }
  c.weights.tensors.emplace("w", random_tensor(random, DType::kF32, weight, scale));
  c.weights.tensors.emplace("bias", random_tensor(random, DType::kF32, {n}));
  c.weights.tensors.emplace("slope", random_tensor(random, DType::kF32, {n}, 0.25));
  c.out_shape = layer.out();
  c.add = [layer](ProgramBuilder& b, const Operand& value, ValueId out) { layer.add(b, value, out); };
  return c;
}

/// The definition, in plain loops over every tap of every window.
std::vector<double> plain(const Layer& layer, const OpCase& c) {
  const auto x = c.inputs.at("x").as<float>();
  const auto w = c.weights.tensors.at("w").as<float>();
  const auto bias = c.weights.tensors.at("bias").as<float>();
  const auto slope = c.weights.tensors.at("slope").as<float>();
  const Window& win = layer.window;
  const Shape out = layer.out();
  std::vector<double> values;
  for (std::int64_t index = 0; index < out.count(); ++index) {
    const std::int64_t n = index % out[2];
    const std::int64_t column = index / out[2] % out[1];
    const std::int64_t row = index / out[2] / out[1];
    double sum = bias[static_cast<std::size_t>(n)];
    for (std::int64_t tap = 0; tap < win.rows * win.columns; ++tap) {
      const std::int64_t y = row * win.stride_rows - win.pad_top + tap / win.columns;
      const std::int64_t z = column * win.stride_columns - win.pad_left + tap % win.columns;
      if (y < 0 || y >= layer.rows || z < 0 || z >= layer.columns) continue;
      const std::int64_t pixel = (y * layer.columns + z) * layer.channels;
      const std::int64_t weight = (n * win.rows * win.columns + tap) * layer.channels;
      for (std::int64_t k = 0; k < layer.channels && !layer.depthwise(); ++k) {
        sum += static_cast<double>(x[static_cast<std::size_t>(pixel + k)]) *
               w[static_cast<std::size_t>(weight + k)];
      }
      if (layer.depthwise()) {
        sum += static_cast<double>(x[static_cast<std::size_t>(pixel + n)]) *
               w[static_cast<std::size_t>(tap * layer.channels + n)];
      }
    }
    const auto at = static_cast<std::size_t>(index);
    if (layer.residual == Residual::kOther) sum += c.inputs.at("residual").as<float>()[at];
    if (layer.residual == Residual::kX) sum += x[at];
    if (layer.rectifier == Rectifier::kRelu || layer.rectifier == Rectifier::kRelu6) sum = std::fmax(sum, 0);
    if (layer.rectifier == Rectifier::kRelu6) sum = std::fmin(sum, 6);
    if (layer.rectifier == Rectifier::kPRelu && sum < 0) sum *= slope[static_cast<std::size_t>(n)];
    values.push_back(sum);
  }
  return values;
}

class ConvolutionOps : public test::OpsTest {
 protected:
  void check(const Layer& layer) {
    SCOPED_TRACE(layer.what());
    OpCase c = case_of(layer, random_);
    Layer bare = layer;
    bare.rectifier = Rectifier::kNone;
    OpCase magnitudes;
    c.add = [bare](ProgramBuilder& b, const Operand& value, ValueId out) { bare.add(b, value, out); };
    const Tensor scale = test::linear_scale(magnitudes, c, *reference_);
    c.add = [layer](ProgramBuilder& b, const Operand& value, ValueId out) { layer.add(b, value, out); };
    const std::vector<double> expected = plain(layer, c);

    // One rounding to f32 at the end; the sums themselves are in double.
    const Tensor meaning = c.run(*reference_);
    std::optional<Tensor> first;
    for (const int threads : {1, 2, 3}) {
      const Tensor fast = c.run(*make_cpu_backend({.threads = threads}));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double e = expected[i];
        ASSERT_NEAR(meaning.as<double>()[i], e, kF32Unit * std::fabs(e) + 1e-13 * scale.as<double>()[i]) << i;
        // `inner` products and sums, the bias, the residual; the slope, below 1.25 here, and its product.
        const double bound =
            1.25 * (static_cast<double>(layer.inner()) + 4) * kF32Unit * scale.as<double>()[i];
        ASSERT_NEAR(fast.as<double>()[i], e, bound) << threads << " threads, element " << i;
      }
      if (first) {
        ASSERT_EQ(test::max_difference(fast, *first), 0) << threads;
      } else {
        first = fast.clone();
      }
    }
  }
};

/// Pictures of these sides, windows and strides with channels and rectifiers in turn.
std::vector<Layer> layers(bool depthwise) {
  std::vector<Layer> made;
  const std::int64_t channels[] = {1, 3, 8, 16, 24, 31, 32, 48, 64, 128, 256};
  const std::int64_t sides[] = {1, 2, 3, 5, 6, 7, 12, 14, 23, 24, 30};
  std::size_t turn = 0;
  for (const std::int64_t window : {1, 3, 5}) {
    for (const std::int64_t stride : {1, 2}) {
      for (std::size_t i = 0; i < std::size(sides); ++i, ++turn) {
        Layer layer;
        layer.rows = sides[i];
        layer.columns = sides[(i + turn / 7) % std::size(sides)];
        layer.channels = channels[turn % std::size(channels)];
        layer.filters = depthwise ? 0 : channels[(turn * 7 + 3) % std::size(channels)];
        layer.window = same_window(window, stride, layer.rows, layer.columns);
        layer.rectifier = kRectifiers[turn % 4];
        layer.residual = !depthwise && turn % 3 == 0 ? Residual::kOther : Residual::kNone;
        if (layer.out().count() * layer.inner() <= 8'000'000) made.push_back(layer);
      }
    }
  }
  return made;
}

TEST_F(ConvolutionOps, ConvolutionOverShapes) {
  for (const Layer& layer : layers(false)) check(layer);
}

TEST_F(ConvolutionOps, DepthwiseOverShapes) {
  for (const Layer& layer : layers(true)) check(layer);
}

TEST_F(ConvolutionOps, LayersOfTheHandNetworks) {
  const Residual none = Residual::kNone;
  check({192, 192, 3, 32, same_window(5, 2, 192, 192), Rectifier::kPRelu, none});
  check({224, 224, 3, 24, same_window(3, 2, 224, 224), Rectifier::kRelu6, none});
  check({112, 112, 24, 0, same_window(3, 1, 112, 112), Rectifier::kRelu6, none});
  check({112, 112, 24, 16, same_window(1, 1, 112, 112), Rectifier::kNone, none});
  check({96, 96, 32, 0, same_window(5, 1, 96, 96), Rectifier::kNone, none});
  check({96, 96, 32, 32, same_window(1, 1, 96, 96), Rectifier::kPRelu, Residual::kOther});
  check({48, 48, 64, 0, same_window(5, 2, 48, 48), Rectifier::kNone, none});
  check({7, 7, 1152, 192, same_window(1, 1, 7, 7), Rectifier::kNone, Residual::kOther});
  check({7, 7, 1152, 0, same_window(5, 1, 7, 7), Rectifier::kRelu6, none});
  check({12, 12, 256, 6, same_window(1, 1, 12, 12), Rectifier::kNone, none});
  check({24, 24, 128, 2, same_window(1, 1, 24, 24), Rectifier::kNone, none});
  check({12, 12, 256, 108, same_window(1, 1, 12, 12), Rectifier::kNone, none});
}

TEST_F(ConvolutionOps, ResidualThatIsThePicture) {
  for (const Rectifier rectifier : kRectifiers) {
    check({12, 11, 48, 48, same_window(1, 1, 12, 11), rectifier, Residual::kX});
    check({12, 11, 24, 24, same_window(3, 1, 12, 11), rectifier, Residual::kX});
    check({5, 4, 3, 3, same_window(5, 1, 5, 4), rectifier, Residual::kX});
  }
}

TEST_F(ConvolutionOps, UnevenWindows) {
  for (const std::int64_t filters : {0, 20}) {
    check({13, 9, 20, filters, {3, 1, 2, 1, 1, 0, 1, 0}, Rectifier::kRelu, Residual::kNone});   // a column
    check({13, 9, 20, filters, {1, 4, 1, 3, 0, 2, 0, 1}, Rectifier::kPRelu, Residual::kNone});  // a row,
                                                                                                // stride 3
    check({13, 9, 20, filters, {5, 5, 2, 2}, Rectifier::kNone, Residual::kNone});  // no padding, pixels left
                                                                                   // over
    check({9, 13, 20, filters, {7, 7, 1, 1, 6, 6, 6, 6}, Rectifier::kRelu6, Residual::kNone});  // all that is
                                                                                                // legal
    check({2, 2, 20, filters, {5, 5, 1, 1, 2, 2, 2, 2}, Rectifier::kNone, Residual::kNone});    // wider than
                                                                                                // the picture
  }
}

template <typename T>
std::function<void(ProgramBuilder&, const Operand&, ValueId)> unary(const std::function<void(T&)>& set =
                                                                        [](T&) {}) {
  return [set](ProgramBuilder& b, const Operand& value, ValueId out) {
    T op;
    op.x = value("x");
    op.out = out;
    set(op);
    b.add(op);
  };
}

Tensor counting(const Shape& shape) {
  Tensor t(DType::kF32, shape);
  float next = 1;
  for (float& v : t.as<float>()) v = next++;
  return t;
}

/// The output of a case on the reference and, the same, on the fast backend.
std::vector<double> both(OpCase& c) {
  const Tensor reference = c.run(*make_reference_backend(2));
  for (const int threads : {1, 3}) {
    EXPECT_EQ(test::max_difference(c.run(*make_cpu_backend({.threads = threads})), reference), 0)
        << threads << " threads";
  }
  return {reference.as<double>().begin(), reference.as<double>().end()};
}

TEST(ConvolutionExamples, Convolution) {
  // Two channels; a window of 2x2 that sees one row above and one column to the left.
  OpCase c;
  c.inputs.emplace("x", counting({2, 2, 2}));  // (1 2)(3 4) / (5 6)(7 8)
  c.weights.tensors.emplace("w", counting({1, 2, 2, 2}));
  c.weights.tensors.emplace("bias", counting({1}));
  c.out_shape = {2, 2, 1};
  c.add = [](ProgramBuilder& b, const Operand& value, ValueId out) {
    Convolution op;
    op.x = value("x");
    op.weight = value("w");
    op.bias = value("bias");
    op.out = out;
    op.window = {2, 2, 1, 1, 1, 1, 0, 0};
    b.add(op);
  };
  // 1 + (1*7 + 2*8); 1 + (1*5 + 2*6 + 3*7 + 4*8); 1 + (1*3 + 2*4 + 5*7 + 6*8); 1 + 1*1 + ... + 8*8
  EXPECT_EQ(both(c), (std::vector<double>{24, 71, 95, 205}));
}

TEST(ConvolutionExamples, DepthwiseAndPRelu) {
  OpCase c;
  c.inputs.emplace("x", counting({1, 3, 2}));  // (1 2)(3 4)(5 6)
  Tensor weight(DType::kF32, {1, 2, 2});
  std::ranges::copy(std::vector<float>{1, -1, 2, -2}, weight.as<float>().begin());
  c.weights.tensors.emplace("w", std::move(weight));
  c.weights.tensors.emplace("bias", counting({2}));
  Tensor slope(DType::kF32, {2});
  std::ranges::copy(std::vector<float>{0.5, 0.25}, slope.as<float>().begin());
  c.weights.tensors.emplace("slope", std::move(slope));
  c.out_shape = {1, 2, 2};
  c.add = [](ProgramBuilder& b, const Operand& value, ValueId out) {
    DepthwiseConvolution op;
    op.x = value("x");
    op.weight = value("w");
    op.bias = value("bias");
    op.slope = value("slope");
    op.out = out;
    op.window = {1, 2, 1, 1};
    op.rectifier = Rectifier::kPRelu;
    b.add(op);
  };
  // 1 + 1 + 2*3 = 8; (2 - 2 - 2*4)/4 = -2; 1 + 3 + 2*5 = 14; (2 - 4 - 2*6)/4 = -3.5
  EXPECT_EQ(both(c), (std::vector<double>{8, -2, 14, -3.5}));
}

TEST(ConvolutionExamples, Pools) {
  OpCase c;
  c.inputs.emplace("x", counting({3, 3, 1}));
  c.inputs.at("x").as<float>()[4] = -5;  // 1 2 3 / 4 -5 6 / 7 8 9
  c.out_shape = {2, 2, 1};
  c.add = unary<MaxPool>([](MaxPool& op) { op.window = {2, 2, 2, 2, 0, 0, 1, 1}; });
  EXPECT_EQ(both(c), (std::vector<double>{4, 6, 8, 9}));
  for (float& v : c.inputs.at("x").as<float>()) v -= 10;  // padding does not count as zero
  c.add = unary<MaxPool>([](MaxPool& op) { op.window = {2, 2, 2, 2, 1, 1, 0, 0}; });
  EXPECT_EQ(both(c), (std::vector<double>{-9, -7, -3, -1}));

  OpCase mean;
  mean.inputs.emplace("x", counting({2, 2, 3}));
  mean.out_shape = {1, 3};
  mean.add = unary<MeanPool>();
  EXPECT_EQ(both(mean), (std::vector<double>{5.5, 6.5, 7.5}));
}

TEST(ConvolutionExamples, PadResizeReshapeConcat) {
  OpCase pad;
  pad.inputs.emplace("x", counting({1, 2, 2}));
  pad.out_shape = {2, 3, 3};
  pad.add = unary<Pad>([](Pad& op) { op.before = {1, 0, 0}, op.after = {0, 1, 1}; });
  EXPECT_EQ(both(pad), (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3, 4, 0, 0, 0, 0}));
  pad.out_shape = {1, 3, 3};
  pad.add = unary<Pad>([](Pad& op) { op.before = {0, 1, 1}; });
  EXPECT_EQ(both(pad), (std::vector<double>{0, 0, 0, 0, 1, 2, 0, 3, 4}));

  OpCase resize;  // 1 2 / 3 4, each edge held
  resize.inputs.emplace("x", counting({2, 2, 1}));
  resize.out_shape = {4, 4, 1};
  resize.add = unary<ResizeBilinear>();
  EXPECT_EQ(both(resize), (std::vector<double>{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5,  //
                                               2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}));
  resize.out_shape = {1, 1, 1};
  EXPECT_EQ(both(resize), (std::vector<double>{2.5}));
  resize.out_shape = {2, 2, 1};
  EXPECT_EQ(both(resize), (std::vector<double>{1, 2, 3, 4}));

  OpCase reshape;
  reshape.inputs.emplace("x", counting({2, 3}));
  reshape.out_shape = {3, 1, 2};
  reshape.add = unary<Reshape>();
  EXPECT_EQ(both(reshape), (std::vector<double>{1, 2, 3, 4, 5, 6}));

  OpCase concat;
  concat.inputs.emplace("a", counting({1, 2}));
  concat.inputs.emplace("b", counting({2, 2}));
  concat.out_shape = {3, 2};
  concat.add = [](ProgramBuilder& b, const Operand& value, ValueId out) {
    ConcatRows op;
    op.parts = {value("a"), value("b")};
    op.out = out;
    b.add(op);
  };
  EXPECT_EQ(both(concat), (std::vector<double>{1, 2, 1, 2, 3, 4}));
}

TEST_F(ConvolutionOps, PoolsOverShapes) {
  for (const std::int64_t channels : {1, 3, 16, 24, 31, 64}) {
    for (const std::int64_t side : {1, 2, 6, 13, 48}) {
      for (const std::int64_t window : {2, 3}) {
        OpCase c;
        c.inputs.emplace("x", random_tensor(random_, DType::kF32, {side, side + 1, channels}));
        const Window w = same_window(window, 2, side, side + 1);
        c.out_shape = {w.out_rows(side), w.out_columns(side + 1), channels};
        c.add = unary<MaxPool>([w](MaxPool& op) { op.window = w; });
        compare_exactly(c, fmt::format("max of {} {} {}", side, channels, window));
      }
      OpCase c;
      c.inputs.emplace("x", random_tensor(random_, DType::kF32, {side, side + 1, channels}));
      c.out_shape = {1, channels};
      c.add = unary<MeanPool>();
      // A sum of n numbers below 6 in f32, then the product with 1/n: (n + 2) u * 6 n / n.
      const double bound = (static_cast<double>(side * (side + 1)) + 2) * kF32Unit * 6;
      compare(c, fmt::format("mean of {} {}", side, channels), [=](std::size_t, double) { return bound; });
    }
  }
}

TEST_F(ConvolutionOps, ResizeOverShapes) {
  for (const auto& [from, to] : {std::pair{Shape{6, 6, 256}, Shape{12, 12, 256}},
                                 {{12, 12, 31}, {24, 24, 31}},
                                 {{7, 5, 3}, {3, 11, 3}},
                                 {{1, 1, 8}, {4, 2, 8}}}) {
    OpCase c;
    c.inputs.emplace("x", random_tensor(random_, DType::kF32, from));
    c.out_shape = to;
    c.add = unary<ResizeBilinear>();
    // Shares rounded once, two products and a sum in each of two steps, numbers below 6: 8 u * 6.
    compare(c, "resize to " + to_string(to), [](std::size_t, double) { return 8 * kF32Unit * 6; });
  }
}

TEST_F(ConvolutionOps, RectifyAndLogistic) {
  for (const Shape& shape : {Shape{7}, Shape{37, 1291}, Shape{48, 48, 31}, Shape{1, 40000}}) {
    for (const Rectifier rectifier : kRectifiers) {
      if (rectifier == Rectifier::kNone) continue;  // not a legal form
      OpCase c;
      c.inputs.emplace("x", random_tensor(random_, DType::kF32, shape, 4));
      c.weights.tensors.emplace("slope", random_tensor(random_, DType::kF32, {shape.back()}));
      c.out_shape = shape;
      c.add = [rectifier](ProgramBuilder& b, const Operand& value, ValueId out) {
        Rectify op;
        op.x = value("x");
        if (rectifier == Rectifier::kPRelu) op.slope = value("slope");
        op.out = out;
        op.rectifier = rectifier;
        b.add(op);
      };
      // At most one product: rounded once in f32, and once from the exact double.
      compare_exactly(c, fmt::format("{} of {}", to_string(rectifier), to_string(shape)));
    }
    OpCase c;
    c.inputs.emplace("x", random_tensor(random_, DType::kF32, shape, 20));
    c.inputs.at("x").as<float>()[0] = -200;  // exp(200) is beyond f32: 0
    c.out_shape = shape;
    c.add = unary<Logistic>();
    // exp to 2 units of its result, a sum and a quotient; below 1e-38 the result may be 0.
    compare(c, "logistic of " + to_string(shape),
            [](std::size_t, double e) { return 6 * kF32Unit * e + 1.2e-38; });
  }
}

TEST_F(ConvolutionOps, AddOfPictures) {
  OpCase c;
  c.inputs.emplace("a", random_tensor(random_, DType::kF32, {48, 48, 31}));
  c.inputs.emplace("b", random_tensor(random_, DType::kF32, {48, 48, 31}));
  c.out_shape = {48, 48, 31};
  c.add = [](ProgramBuilder& b, const Operand& value, ValueId out) {
    Add op;
    op.a = value("a");
    op.b = value("b");
    op.out = out;
    b.add(op);
  };
  compare_exactly(c, "add");
}

/// The weights of a convolution are kept once, packed: for filters that fill whole vectors no larger than
/// stored.
TEST_F(ConvolutionOps, WeightsAreKeptPackedOnly) {
  const Layer layer{4, 4, 32, 64, same_window(3, 1, 4, 4), Rectifier::kPRelu, Residual::kNone};
  OpCase c = case_of(layer, random_);
  ProgramBuilder builder("weights");
  std::map<std::string, ValueId> ids;
  for (const char* out : {"first", "second"}) {  // two readers of the same weights
    layer.add(
        builder,
        [&](const char* name) {
          if (ids.contains(name)) return ids[name];
          const Tensor& t = name == std::string("x") ? c.inputs.at(name) : c.weights.tensors.at(name);
          const bool input = c.inputs.contains(name);
          return ids[name] = input ? builder.input(name, t.dtype(), t.shape())
                                   : builder.weight(name, t.dtype(), t.shape());
        },
        builder.output(out, DType::kF32, layer.out()));
  }
  const auto backend = make_cpu_backend({.threads = 1});
  const auto session = backend->compile(builder.finish(), c.weights);
  EXPECT_EQ(session->weight_bytes(), sizeof(float) * (64 * 9 * 32 + 64 + 64));
}

}  // namespace
}  // namespace sinew

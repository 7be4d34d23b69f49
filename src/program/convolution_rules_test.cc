// The rules of the ops over pictures: one legal form of each, and illegal ones that differ from it in one
// thing.
#include "program/convolution.h"
#include "program/elementwise.h"
#include "program/layout.h"
#include "program/rules_test_support.h"

namespace sinew {
namespace {

using test::expect_all;

constexpr DType kF32 = DType::kF32;
constexpr DType kBF16 = DType::kBF16;
constexpr DType kF64 = DType::kF64;

/// 5x5 at stride 2 with TFLite's SAME padding: 8 -> 4 rows, 7 -> 4 columns.
constexpr Window kWindow{5, 5, 2, 2, 1, 2, 2, 2};

struct ConvolutionForm {
  DType x = kF32, w = kF32, bias = kF32, residual = kF32, slope = kF32, out = kF32;
  Shape x_shape = {8, 7, 3}, w_shape = {6, 5, 5, 3}, bias_shape = {6}, residual_shape = {4, 4, 6},
        slope_shape = {6}, out_shape = {4, 4, 6};
  Window window = kWindow;
  Rectifier rectifier = Rectifier::kPRelu;
  bool with_slope = true;

  void operator()(ProgramBuilder& b) const {
    Convolution op;
    op.x = b.input("x", x, x_shape);
    op.weight = b.weight("w", w, w_shape);
    op.bias = b.weight("bias", bias, bias_shape);
    op.residual = b.input("residual", residual, residual_shape);
    if (with_slope) op.slope = b.weight("slope", slope, slope_shape);
    op.out = b.output("out", out, out_shape);
    op.window = window;
    op.rectifier = rectifier;
    b.add(op);
  }
};

TEST(ConvolutionRules, Convolution) {
  expect_all({
      {"f32", ConvolutionForm{}, nullptr},
      {"double with stored weights",
       ConvolutionForm{
           .x = kF64, .w = DType::kF16, .bias = kF64, .residual = kF64, .slope = kF64, .out = kF64},
       nullptr},
      {"relu6", ConvolutionForm{.rectifier = Rectifier::kRelu6, .with_slope = false}, nullptr},
      {"x dtype", ConvolutionForm{.x = kBF16}, "convolution: x is bf16, expected f32 or f64"},
      {"w dtype", ConvolutionForm{.w = DType::kF16}, "w is f16, expected f32"},
      {"bias dtype", ConvolutionForm{.bias = kF64}, "bias is f64, expected f32"},
      {"residual dtype", ConvolutionForm{.residual = kBF16}, "residual is bf16, expected f32"},
      {"slope dtype", ConvolutionForm{.slope = kF64}, "slope is f64, expected f32"},
      {"out dtype", ConvolutionForm{.out = kBF16}, "out is bf16, expected f32"},
      {"x rank", ConvolutionForm{.x_shape = {1, 8, 7, 3}}, "x has shape [1,8,7,3], expected 3 axes"},
      {"w rank", ConvolutionForm{.w_shape = {5, 5, 3}}, "w has shape [5,5,3], expected 4 axes"},
      {"w channels", ConvolutionForm{.w_shape = {6, 5, 5, 4}}, "w has shape [6,5,5,4], expected [6,5,5,3]"},
      {"w window", ConvolutionForm{.w_shape = {6, 3, 5, 3}}, "expected [6,5,5,3]"},
      {"bias shape", ConvolutionForm{.bias_shape = {1}}, "bias has shape [1], expected [6]"},
      {"residual shape", ConvolutionForm{.residual_shape = {4, 3, 6}},
       "residual has shape [4,3,6], expected [4,4,6]"},
      {"slope shape", ConvolutionForm{.slope_shape = {1, 1, 6}}, "slope has shape [1,1,6], expected [6]"},
      {"out shape", ConvolutionForm{.out_shape = {4, 3, 6}}, "out has shape [4,3,6], expected [4,4,6]"},
      {"no slope", ConvolutionForm{.with_slope = false}, "out [4,4,6]: prelu needs slopes"},
      {"slope of relu", ConvolutionForm{.rectifier = Rectifier::kRelu}, "out [4,4,6]: only prelu has slopes"},
      {"slope of none", ConvolutionForm{.rectifier = Rectifier::kNone}, "only prelu has slopes"},
  });
}

TEST(ConvolutionRules, Windows) {
  const auto with = [](void (*change)(Window&)) {
    ConvolutionForm form;
    change(form.window);
    return form;
  };
  expect_all({
      {"no rows", with([](Window& w) { w.rows = 0; }), "x [8,7,3]: the window must have rows and columns"},
      {"no columns", with([](Window& w) { w.columns = 0; }), "the window must have rows and columns"},
      {"no stride of rows", with([](Window& w) { w.stride_rows = 0; }), "strides must be positive"},
      {"no stride of columns", with([](Window& w) { w.stride_columns = -1; }), "strides must be positive"},
      {"negative padding", with([](Window& w) { w.pad_right = -1; }), "padding must not be negative"},
      {"a window of top padding", with([](Window& w) { w.pad_top = 5; }), "smaller than the window"},
      {"a window of left padding", with([](Window& w) { w.pad_left = 5; }), "smaller than the window"},
      {"a window of bottom padding", with([](Window& w) { w.pad_bottom = 5; }), "smaller than the window"},
      {"a window of right padding", with([](Window& w) { w.pad_right = 5; }), "smaller than the window"},
      {"rows of the picture", ConvolutionForm{.x_shape = {1, 7, 3}}, "x [1,7,3]: smaller than one window"},
      {"columns of the picture", ConvolutionForm{.x_shape = {8, 1, 3}, .window = {5, 9, 1, 1, 2, 4, 2, 3}},
       "smaller than one window"},
  });
}

struct DepthwiseForm {
  DType x = kF32, w = kF32, out = kF32;
  Shape w_shape = {5, 5, 3}, bias_shape = {3}, out_shape = {4, 4, 3};
  Rectifier rectifier = Rectifier::kRelu6;
  bool with_slope = false;

  void operator()(ProgramBuilder& b) const {
    DepthwiseConvolution op;
    op.x = b.input("x", x, {8, 7, 3});
    op.weight = b.weight("w", w, w_shape);
    op.bias = b.weight("bias", x, bias_shape);
    if (with_slope) op.slope = b.weight("slope", x, {3});
    op.out = b.output("out", out, out_shape);
    op.window = kWindow;
    op.rectifier = rectifier;
    b.add(op);
  }
};

TEST(ConvolutionRules, Depthwise) {
  expect_all({
      {"f32", DepthwiseForm{}, nullptr},
      {"prelu", DepthwiseForm{.rectifier = Rectifier::kPRelu, .with_slope = true}, nullptr},
      {"double with stored weights", DepthwiseForm{.x = kF64, .w = kBF16, .out = kF64}, nullptr},
      {"w dtype", DepthwiseForm{.w = kBF16}, "depthwise_convolution: w is bf16, expected f32"},
      {"out dtype", DepthwiseForm{.out = kF64}, "out is f64, expected f32"},
      {"w shape", DepthwiseForm{.w_shape = {1, 5, 5, 3}}, "w has shape [1,5,5,3], expected [5,5,3]"},
      {"bias shape", DepthwiseForm{.bias_shape = {6}}, "bias has shape [6], expected [3]"},
      {"out shape", DepthwiseForm{.out_shape = {4, 4, 6}}, "out has shape [4,4,6], expected [4,4,3]"},
      {"no slope", DepthwiseForm{.rectifier = Rectifier::kPRelu}, "prelu needs slopes"},
      {"slope", DepthwiseForm{.with_slope = true}, "only prelu has slopes"},
  });
}

/// An op from x to out; `set` gives it its attributes.
template <typename T, typename Set>
std::function<void(ProgramBuilder&)> unary(DType x, const Shape& x_shape, DType out, const Shape& out_shape,
                                           Set set) {
  return [=](ProgramBuilder& b) {
    T op;
    op.x = b.input("x", x, x_shape);
    op.out = b.output("out", out, out_shape);
    set(op);
    b.add(op);
  };
}
template <typename T>
std::function<void(ProgramBuilder&)> unary(DType x, const Shape& x_shape, DType out, const Shape& out_shape) {
  return unary<T>(x, x_shape, out, out_shape, [](T&) {});
}

TEST(ConvolutionRules, Pools) {
  const auto window = [](MaxPool& op) { op.window = {2, 2, 2, 2}; };
  const auto wide = [](MaxPool& op) { op.window = {2, 2, 2, 2, 2, 0, 0, 0}; };
  expect_all({
      {"max", unary<MaxPool>(kF32, {4, 6, 5}, kF32, {2, 3, 5}, window), nullptr},
      {"max in double", unary<MaxPool>(kF64, {4, 6, 5}, kF64, {2, 3, 5}, window), nullptr},
      {"max of bytes", unary<MaxPool>(DType::kU8, {4, 6, 5}, DType::kU8, {2, 3, 5}, window),
       "max_pool: x is u8, expected f32 or f64"},
      {"max out dtype", unary<MaxPool>(kF32, {4, 6, 5}, kF64, {2, 3, 5}, window), "out is f64, expected f32"},
      {"max out shape", unary<MaxPool>(kF32, {4, 6, 5}, kF32, {2, 3, 4}, window), "expected [2,3,5]"},
      {"max padding", unary<MaxPool>(kF32, {4, 6, 5}, kF32, {3, 3, 5}, wide), "smaller than the window"},
      {"max without a window", unary<MaxPool>(kF32, {4, 6, 5}, kF32, {4, 6, 5}),
       "must have rows and columns"},
      {"mean", unary<MeanPool>(kF32, {4, 6, 5}, kF32, {1, 5}), nullptr},
      {"mean rank", unary<MeanPool>(kF32, {6, 5}, kF32, {1, 5}),
       "mean_pool: x has shape [6,5], expected 3 axes"},
      {"mean shape", unary<MeanPool>(kF32, {4, 6, 5}, kF32, {1, 1, 5}), "expected [1,5]"},
      {"mean dtype", unary<MeanPool>(kBF16, {4, 6, 5}, kBF16, {1, 5}), "x is bf16, expected f32 or f64"},
  });
}

TEST(ConvolutionRules, Layout) {
  const auto channels = [](Pad& op) { op.after = {0, 0, 3}; };
  const auto around = [](Pad& op) { op.before = {1, 2, 0}, op.after = {0, 1, 3}; };
  const auto cut = [](Pad& op) { op.before = {-1, 0, 0}, op.after = {1, 0, 0}; };
  expect_all({
      {"pad", unary<Pad>(kF32, {4, 6, 5}, kF32, {5, 9, 8}, around), nullptr},
      {"pad channels", unary<Pad>(kF64, {4, 6, 5}, kF64, {4, 6, 8}, channels), nullptr},
      {"pad shape", unary<Pad>(kF32, {4, 6, 5}, kF32, {4, 6, 5}, channels),
       "pad: out has shape [4,6,5], expected [4,6,8]"},
      {"negative pad", unary<Pad>(kF32, {4, 6, 5}, kF32, {4, 6, 5}, cut), "padding must not be negative"},
      {"pad rank", unary<Pad>(kF32, {6, 5}, kF32, {6, 8}, channels), "expected 3 axes"},
      {"pad dtype", unary<Pad>(kF32, {4, 6, 5}, kF64, {4, 6, 8}, channels), "out is f64, expected f32"},
      {"resize", unary<ResizeBilinear>(kF32, {4, 6, 5}, kF32, {8, 3, 5}), nullptr},
      {"resize channels", unary<ResizeBilinear>(kF32, {4, 6, 5}, kF32, {8, 3, 4}), "as many channels"},
      {"resize rank", unary<ResizeBilinear>(kF32, {4, 6, 5}, kF32, {8, 15}), "expected 3 axes"},
      {"resize dtype", unary<ResizeBilinear>(kBF16, {4, 6, 5}, kBF16, {8, 3, 5}), "expected f32 or f64"},
      {"reshape", unary<Reshape>(DType::kI64, {4, 6, 5}, DType::kI64, {24, 5}), nullptr},
      {"reshape count", unary<Reshape>(kF32, {4, 6, 5}, kF32, {24, 6}), "as many elements as its source"},
      {"reshape dtype", unary<Reshape>(kF32, {4, 6}, kBF16, {24}), "out is bf16, expected f32"},
  });
}

std::function<void(ProgramBuilder&)> concat_rows(DType second, const Shape& second_shape, const Shape& out) {
  return [=](ProgramBuilder& b) {
    ConcatRows op;
    op.parts = {b.input("first", kF32, {4, 8}), b.input("second", second, second_shape)};
    op.out = b.output("out", kF32, out);
    b.add(op);
  };
}

TEST(ConvolutionRules, ConcatRows) {
  expect_all({
      {"two parts", concat_rows(kF32, {2, 8}, {6, 8}), nullptr},
      {"columns", concat_rows(kF32, {2, 7}, {6, 8}), "second [2,7]: needs as many columns as the result"},
      {"dtype", concat_rows(kBF16, {2, 8}, {6, 8}), "second is bf16, expected f32"},
      {"rows", concat_rows(kF32, {2, 8}, {7, 8}), "out has shape [7,8], expected [6,8]"},
      {"rank", concat_rows(kF32, {1, 2, 8}, {6, 8}), "expected 2 axes"},
      {"no parts",
       [](ProgramBuilder& b) {
         ConcatRows op;
         op.out = b.output("out", kF32, {4, 8});
         b.add(op);
       },
       "has no parts"},
  });
}

std::function<void(ProgramBuilder&)> rectify(Rectifier rectifier, const Shape& slope, DType out = kF32) {
  return [=](ProgramBuilder& b) {
    Rectify op;
    op.x = b.input("x", kF32, {4, 6, 5});
    if (slope.rank() > 0) op.slope = b.weight("slope", kF32, slope);
    op.out = b.output("out", out, {4, 6, 5});
    op.rectifier = rectifier;
    b.add(op);
  };
}

TEST(ConvolutionRules, RectifyAndLogistic) {
  expect_all({
      {"relu", rectify(Rectifier::kRelu, {}), nullptr},
      {"prelu", rectify(Rectifier::kPRelu, {5}), nullptr},
      {"none", rectify(Rectifier::kNone, {}), "x [4,6,5]: the rectifier must not be none"},
      {"no slope", rectify(Rectifier::kPRelu, {}), "rectify: out [4,6,5]: prelu needs slopes"},
      {"slope shape", rectify(Rectifier::kPRelu, {1, 1, 5}), "slope has shape [1,1,5], expected [5]"},
      {"slope of relu6", rectify(Rectifier::kRelu6, {5}), "only prelu has slopes"},
      {"out dtype", rectify(Rectifier::kRelu, {}, kBF16), "out is bf16, expected f32"},
      {"scalar", unary<Rectify>(kF32, {}, kF32, {}), "needs at least one axis"},
      {"logistic", unary<Logistic>(kF32, {1, 1}, kF32, {1, 1}), nullptr},
      {"logistic shape", unary<Logistic>(kF32, {1, 2}, kF32, {2, 1}), "out has shape [2,1], expected [1,2]"},
      {"logistic dtype", unary<Logistic>(kBF16, {1, 2}, kBF16, {1, 2}), "expected f32 or f64"},
  });
}

std::function<void(ProgramBuilder&)> add_pictures(const Shape& b_shape) {
  return [=](ProgramBuilder& b) {
    Add op;
    op.a = b.input("a", kF32, {4, 6, 5});
    op.b = b.input("b", kF32, b_shape);
    op.out = b.output("out", kF32, {4, 6, 5});
    b.add(op);
  };
}

TEST(ConvolutionRules, AddOfPictures) {
  expect_all({
      {"one shape", add_pictures({4, 6, 5}), nullptr},
      {"a row", add_pictures({1, 5}), "b has shape [1,5], expected [4,6,5]"},
      {"one picture row", add_pictures({1, 6, 5}), "b has shape [1,6,5], expected [4,6,5]"},
  });
}

TEST(ConvolutionRules, CostAndText) {
  ProgramBuilder b("p");
  ConvolutionForm{}(b);
  const Program program = b.finish();
  EXPECT_EQ(program.flops(), 2.0 * 4 * 4 * 6 * 5 * 5 * 3);
  EXPECT_THAT(
      program.to_string(),
      testing::HasSubstr("out:f32[4,4,6] = convolution(x, w, bias, residual, slope)  # 5x5, stride 2x2, "
                         "pad 1+2 x 2+2, prelu"));
  EXPECT_EQ(to_string(Rectifier::kNone), "none");
  EXPECT_EQ(to_string(Rectifier::kRelu), "relu");
  EXPECT_EQ(to_string(Rectifier::kRelu6), "relu6");
}

}  // namespace
}  // namespace sinew

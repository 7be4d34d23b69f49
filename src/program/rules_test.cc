// Each rule of each op (those over pictures: convolution_rules_test.cc): one legal form, and illegal ones
// that differ from it in one thing.
#include "program/rules.h"

#include "program/attention.h"
#include "program/columns.h"
#include "program/elementwise.h"
#include "program/linear.h"
#include "program/norm.h"
#include "program/patch.h"
#include "program/rotation.h"
#include "program/rules_test_support.h"

namespace sinew {
namespace {

using test::expect_all;

constexpr DType kF32 = DType::kF32;
constexpr DType kBF16 = DType::kBF16;
constexpr DType kF64 = DType::kF64;

/// A Linear whose operands can be varied one by one.
struct LinearForm {
  DType x = kF32, w = kF32, out = kF32, bias = kF32, residual = kF32;
  Shape x_shape = {4, 8}, w_shape = {6, 8}, out_shape = {4, 6}, bias_shape = {6}, residual_shape = {4, 6};

  void operator()(ProgramBuilder& b) const {
    Linear op;
    op.x = b.input("x", x, x_shape);
    op.weight = b.weight("w", w, w_shape);
    op.bias = b.weight("bias", bias, bias_shape);
    op.residual = b.input("residual", residual, residual_shape);
    op.out = b.output("out", out, out_shape);
    b.add(op);
  }
};

TEST(Rules, Linear) {
  expect_all({
      {"f32", LinearForm{}, nullptr},
      {"bf16 into f32", LinearForm{.x = kBF16, .w = kBF16}, nullptr},
      {"bf16 into bf16", LinearForm{.x = kBF16, .w = kBF16, .out = kBF16}, nullptr},
      {"double with stored weights",
       LinearForm{.x = kF64, .w = kBF16, .out = kF64, .bias = kF64, .residual = kF64}, nullptr},
      {"mixed operands", LinearForm{.w = kBF16}, "linear: w is bf16, expected f32"},
      {"inner sizes", LinearForm{.w_shape = {6, 7}}, "w has shape [6,7], expected [6,8]"},
      {"out rows", LinearForm{.out_shape = {3, 6}}, "out has shape [3,6], expected [4,6]"},
      {"out dtype", LinearForm{.out = kF64}, "out is f64, expected f32"},
      {"f32 operands with a bf16 result", LinearForm{.out = kBF16}, "out is bf16, expected f32"},
      {"bf16 operands with a double result", LinearForm{.x = kBF16, .w = kBF16, .out = kF64},
       "expected f32 or bf16"},
      {"double out", LinearForm{.x = kF64, .w = kF64, .out = kF32, .bias = kF64, .residual = kF64},
       "out is f32, expected f64"},
      {"bias shape", LinearForm{.bias_shape = {5}}, "bias has shape [5], expected [6]"},
      {"bias dtype", LinearForm{.bias = kBF16}, "bias is bf16, expected f32"},
      {"residual shape", LinearForm{.residual_shape = {1, 6}}, "residual has shape [1,6], expected [4,6]"},
      {"residual dtype", LinearForm{.residual = kBF16}, "residual is bf16, expected f32"},
      {"rank", LinearForm{.x_shape = {1, 4, 8}}, "expected 2 axes"},
      {"integers", LinearForm{.x = DType::kI32, .w = DType::kI32}, "x is i32, expected f32 or bf16 or f64"},
  });
}

struct NormForm {
  DType x = kF32, gamma = kF32, out = kF32;
  Shape gamma_shape = {8};
  double eps = 1e-6;

  void operator()(ProgramBuilder& b) const {
    LayerNorm op;
    op.x = b.input("x", x, {4, 8});
    op.gamma = b.weight("gamma", gamma, gamma_shape);
    op.beta = b.weight("beta", x, {8});
    op.out = b.output("out", out, {4, 8});
    op.eps = eps;
    b.add(op);
  }
};

TEST(Rules, LayerNorm) {
  expect_all({
      {"f32", NormForm{}, nullptr},
      {"f32 to bf16", NormForm{.out = kBF16}, nullptr},
      {"double", NormForm{.x = kF64, .gamma = kF64, .out = kF64}, nullptr},
      {"bf16 stream", NormForm{.x = kBF16, .gamma = kBF16}, "x is bf16, expected f32 or f64"},
      {"gamma dtype", NormForm{.gamma = kBF16}, "gamma is bf16, expected f32"},
      {"gamma shape", NormForm{.gamma_shape = {4}}, "gamma has shape [4], expected [8]"},
      {"double out", NormForm{.x = kF64, .gamma = kF64, .out = kF32}, "out is f32, expected f64"},
      {"eps", NormForm{.eps = 0}, "eps must be positive"},
  });
}

struct AttentionForm {
  std::int64_t heads = 2, head_dim = 4, k_column = 8, q_column = 0;
  DType q = kF32, out = kF32;
  Shape v_shape = {6, 24}, out_shape = {6, 8};

  void operator()(ProgramBuilder& b) const {
    Attention op;
    op.q = {b.input("q", q, {6, 24}), q_column};
    op.k = {b.input("k", kF32, {6, 24}), k_column};
    op.v = {b.input("v", kF32, v_shape), 16};
    op.heads = heads;
    op.head_dim = head_dim;
    op.out = b.output("out", out, out_shape);
    b.add(op);
  }
};

TEST(Rules, Attention) {
  expect_all({
      {"one matrix in thirds", AttentionForm{}, nullptr},
      {"heads beyond the columns", AttentionForm{.k_column = 17}, "k [6,24]: the heads do not fit"},
      {"negative column", AttentionForm{.q_column = -1}, "the heads do not fit"},
      {"no heads", AttentionForm{.heads = 0}, "must be positive"},
      {"keys and values", AttentionForm{.v_shape = {5, 24}},
       "v [5,24]: needs as many rows as there are keys"},
      {"dtypes", AttentionForm{.q = kBF16, .out = kBF16}, "k is f32, expected bf16"},
      {"out shape", AttentionForm{.out_shape = {6, 24}}, "out has shape [6,24], expected [6,8]"},
      {"out dtype", AttentionForm{.out = kBF16}, "out is bf16, expected f32"},
  });
}

struct PatchForm {
  DType image = kF32, out = kF32;
  Shape shape = {3, 32, 16}, out_shape = {2, 768};
  std::vector<int> offset = {};
  std::int64_t patch = 16, padding = 2;

  void operator()(ProgramBuilder& b) const {
    PatchColumns op;
    op.image = b.input("image", image, shape);
    op.grid = {patch, padding};
    op.offset = offset;
    op.out = b.output("out", out, out_shape);
    b.add(op);
  }
};

TEST(Rules, PatchColumns) {
  expect_all({
      {"float", PatchForm{}, nullptr},
      {"bytes", PatchForm{.image = DType::kU8, .out = kBF16, .offset = {1, 2, 3}}, nullptr},
      {"bytes without offsets", PatchForm{.image = DType::kU8}, "needs one offset per channel"},
      {"float with offsets", PatchForm{.offset = {1, 2, 3}}, "a float image none"},
      {"offset range", PatchForm{.image = DType::kU8, .offset = {1, 2, 256}}, "offsets lie in 0..255"},
      {"out shape", PatchForm{.out_shape = {2, 767}}, "out has shape [2,767], expected [2,768]"},
      {"no patch", PatchForm{.patch = 0}, "patch must be positive"},
      {"too small", PatchForm{.shape = {3, 32, 8}}, "smaller than one patch"},
      {"double to f32", PatchForm{.image = kF64}, "out is f32, expected f64"},
  });
}

struct ConvolutionForm {
  DType image = kF32, weight = kF32;
  Shape weight_shape = {5, 3, 16, 16}, out_shape = {2, 5};

  void operator()(ProgramBuilder& b) const {
    PatchConvolution op;
    op.image = b.input("image", image, {3, 32, 16});
    op.weight = b.weight("weight", weight, weight_shape);
    op.bias = b.weight("bias", image, {weight_shape[0]});
    op.grid = {16, 2};
    op.out = b.output("out", image, out_shape);
    b.add(op);
  }
};

TEST(Rules, PatchConvolution) {
  expect_all({
      {"f32", ConvolutionForm{}, nullptr},
      {"double with stored weights", ConvolutionForm{.image = kF64, .weight = kBF16}, nullptr},
      {"weight dtype", ConvolutionForm{.weight = kBF16}, "weight is bf16, expected f32"},
      {"channels", ConvolutionForm{.weight_shape = {5, 1, 16, 16}}, "expected [5,3,16,16]"},
      {"out", ConvolutionForm{.out_shape = {3, 5}}, "out has shape [3,5], expected [2,5]"},
  });
}

template <typename T>
std::function<void(ProgramBuilder&)> unary(DType x, const Shape& x_shape, DType out, const Shape& out_shape) {
  return [=](ProgramBuilder& b) {
    T op;
    op.x = b.input("x", x, x_shape);
    op.out = b.output("out", out, out_shape);
    b.add(op);
  };
}

TEST(Rules, OneOperand) {
  expect_all({
      {"gelu", unary<Gelu>(kF32, {4, 8}, kBF16, {4, 8}), nullptr},
      {"gelu of bf16", unary<Gelu>(kBF16, {4, 8}, kBF16, {4, 8}), "x is bf16, expected f32 or f64"},
      {"gelu shape", unary<Gelu>(kF32, {4, 8}, kF32, {8, 4}), "out has shape [8,4]"},
      {"convert", unary<Convert>(kBF16, {4, 8}, kF32, {4, 8}), nullptr},
      {"convert integers", unary<Convert>(DType::kI32, {4, 8}, kF32, {4, 8}),
       "x [4,8]: must be f32, bf16 or f64"},
      {"convert shape", unary<Convert>(kF32, {4, 8}, kF32, {4, 7}), "out has shape [4,7]"},
      {"rotation", unary<Rotation6dToMatrix>(kF32, {1, 96}, kF32, {1, 144}), nullptr},
      {"rotation of five numbers", unary<Rotation6dToMatrix>(kF32, {1, 5}, kF32, {1, 9}),
       "must be [1, 6 * joints]"},
      {"rotation rows", unary<Rotation6dToMatrix>(kF32, {2, 6}, kF32, {2, 9}), "must be [1, 6 * joints]"},
      {"slice", unary<SliceColumns>(kBF16, {4, 8}, kBF16, {4, 3}), nullptr},
      {"slice dtype", unary<SliceColumns>(kBF16, {4, 8}, kF32, {4, 3}), "out is f32, expected bf16"},
      {"slice width", unary<SliceColumns>(kF32, {4, 8}, kF32, {4, 9}), "reaches beyond"},
      {"slice rows", unary<SliceColumns>(kF32, {4, 8}, kF32, {3, 8}), "as many rows as its source"},
  });
}

std::function<void(ProgramBuilder&)> add_form(DType a, const Shape& b_shape) {
  return [=](ProgramBuilder& b) {
    Add op;
    op.a = b.input("a", a, {4, 8});
    op.b = b.input("b", kF32, b_shape);
    op.out = b.output("out", kF32, {4, 8});
    b.add(op);
  };
}

std::function<void(ProgramBuilder&)> concat_form(DType second, const Shape& second_shape, const Shape& out) {
  return [=](ProgramBuilder& b) {
    ConcatColumns op;
    op.parts = {b.input("first", kF32, {4, 8}), b.input("second", second, second_shape)};
    op.out = b.output("out", kF32, out);
    b.add(op);
  };
}

TEST(Rules, SeveralOperands) {
  expect_all({
      {"add", add_form(kF32, {4, 8}), nullptr},
      {"add a row", add_form(kF32, {1, 8}), nullptr},
      {"add two rows", add_form(kF32, {2, 8}), "needs one row or as many"},
      {"add columns", add_form(kF32, {4, 7}), "as many columns"},
      {"add dtypes", add_form(kF64, {4, 8}), "b is f32, expected f64"},
      {"concat", concat_form(kF32, {4, 2}, {4, 10}), nullptr},
      {"concat rows", concat_form(kF32, {3, 2}, {4, 10}), "as many rows as the result"},
      {"concat dtypes", concat_form(kBF16, {4, 2}, {4, 10}), "second is bf16, expected f32"},
      {"concat width", concat_form(kF32, {4, 2}, {4, 11}), "expected [4,10]"},
      {"concat nothing",
       [](ProgramBuilder& b) {
         ConcatColumns op;
         op.out = b.output("out", kF32, {4, 8});
         b.add(op);
       },
       "has no parts"},
  });
}

}  // namespace
}  // namespace sinew

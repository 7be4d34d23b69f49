// Each op's fast form against its meaning, over shapes; bounds follow from dtype and inner size, not from
// taste.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops_test_support.h"
#include "program/attention.h"
#include "program/columns.h"
#include "program/elementwise.h"
#include "program/linear.h"
#include "program/norm.h"
#include "program/patch.h"
#include "program/rotation.h"

namespace sinew {
namespace {

using test::kF32Unit;
using test::linear_scale;
using test::OpCase;
using test::random_tensor;
using test::unit_of;
using Ops = test::OpsTest;

struct LinearShape {
  std::int64_t m, n, k;
};

TEST_F(Ops, Linear) {
  const std::vector<LinearShape> shapes = {{1, 1, 1},      {1, 109, 1024}, {1, 512, 80},  {7, 3, 37},
                                           {32, 64, 320},  {41, 109, 65},  {49, 192, 96}, {64, 160, 160},
                                           {192, 240, 80}, {300, 48, 128}, {192, 80, 768}};
  for (const DType type : product_types()) {
    for (const DType out : {DType::kF32, DType::kBF16}) {
      if (type == DType::kF32 && out == DType::kBF16) continue;  // not a legal form
      for (const LinearShape& s : shapes) {
        for (int form = 0; form < 8; ++form) {
          const bool bias = (form & 1) != 0;
          const bool residual = (form & 2) != 0;
          const bool gelu = (form & 4) != 0;
          OpCase c;
          c.inputs.emplace("x", random_tensor(random_, type, {s.m, s.k}));
          c.inputs.emplace("residual", random_tensor(random_, DType::kF32, {s.m, s.n}));
          c.weights.tensors.emplace(
              "w", random_tensor(random_, type, {s.n, s.k}, 1 / std::sqrt(static_cast<double>(s.k))));
          c.weights.tensors.emplace("bias", random_tensor(random_, DType::kF32, {s.n}));
          c.out_dtype = out;
          c.out_shape = {s.m, s.n};
          const auto with = [=](bool act) {
            return [=](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
              Linear op;
              op.x = value("x");
              op.weight = value("w");
              if (bias) op.bias = value("bias");
              if (residual) op.residual = value("residual");
              op.activation = act ? Activation::kGelu : Activation::kNone;
              op.out = result;
              b.add(op);
            };
          };
          c.add = with(false);
          OpCase scale_case;
          const Tensor scale = linear_scale(scale_case, c, *reference_);
          c.add = with(gelu);
          const std::string what = fmt::format("{} -> {}, {} x {} x {}, form {}", to_string(type),
                                               to_string(out), s.m, s.n, s.k, form);
          compare(c, what, [&](std::size_t i, double expected) {
            const double size = scale.as<double>()[i];
            // K products and up to three more additions in f32. GELU's slope is at most 1.13; its erf is good
            // to 1.5e-7 (oneDNN's and ours) plus the roundings of its polynomial and exponential, about 16
            // units.
            double error = (static_cast<double>(s.k) + 4) * kF32Unit * size;
            if (gelu) error = 1.13 * error + (1.5e-7 + 16 * kF32Unit) * size;
            return error + 2 * unit_of(out) * std::fabs(expected) + 1e-30;
          });
        }
      }
    }
  }
}

TEST_F(Ops, LayerNorm) {
  for (const DType out : {DType::kF32, DType::kBF16}) {
    for (const auto& [rows, channels] : {std::pair{1, 1024}, {7, 80}, {33, 37}, {192, 320}}) {
      OpCase c;
      c.inputs.emplace("x", random_tensor(random_, DType::kF32, {rows, channels}, 3));
      c.weights.tensors.emplace("gamma", random_tensor(random_, DType::kF32, {channels}));
      c.weights.tensors.emplace("beta", random_tensor(random_, DType::kF32, {channels}));
      c.out_dtype = out;
      c.out_shape = {rows, channels};
      c.add = [](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
        LayerNorm op;
        op.x = value("x");
        op.gamma = value("gamma");
        op.beta = value("beta");
        op.eps = 1e-6;
        op.out = result;
        b.add(op);
      };
      // |x|/deviation stays below 6 here; see vector_kernels_test.cc for the general bound.
      const double relative = (static_cast<double>(channels) / 4 + 16) * kF32Unit * 6 * 7 * 5;
      compare(c, fmt::format("{} x {}", rows, channels),
              [&](std::size_t, double e) { return relative + 2 * unit_of(out) * std::fabs(e); });
    }
  }
}

TEST_F(Ops, AttentionOverColumnsOfSharedMatrices) {
  for (const DType type : {DType::kF32, DType::kBF16}) {
    for (const auto& [queries, keys, heads] : {std::tuple{192, 192, 2}, {1, 192, 8}, {5, 7, 3}}) {
      const std::int64_t dim = 16;
      OpCase c;
      c.inputs.emplace("q", random_tensor(random_, type, {queries, heads * dim + 3}));
      c.inputs.emplace("kv", random_tensor(random_, type, {keys, 2 * heads * dim + 4}));
      c.out_dtype = type;
      c.out_shape = {queries, heads * dim};
      c.add = [=, heads = heads](ProgramBuilder& b, const std::function<ValueId(const char*)>& value,
                                 ValueId result) {
        Attention op;
        op.q = {value("q"), 3};
        const ValueId kv = value("kv");
        op.k = {kv, 1};
        op.v = {kv, heads * dim + 4};
        op.heads = heads;
        op.head_dim = dim;
        op.scale = 0.25;
        op.out = result;
        b.add(op);
      };
      // Scores reach about 20 in magnitude sums, values about 5: 2 (dim + 3) u 20, exp 4e-7, sums of `keys`
      // terms.
      const double relative =
          2 * (dim + 3) * kF32Unit * 20 + 4e-7 + (static_cast<double>(keys) + 8) * kF32Unit;
      compare(c, fmt::format("{} {} queries {} keys", to_string(type), queries, keys),
              [&](std::size_t, double e) { return 5 * relative + 2 * unit_of(type) * std::fabs(e); });
    }
  }
}

TEST_F(Ops, PatchColumnsMovePixelsExactly) {
  for (const DType out : {DType::kF32, DType::kBF16}) {
    OpCase floats;
    floats.inputs.emplace("image", random_tensor(random_, DType::kF32, {3, 40, 27}));
    OpCase bytes;
    bytes.inputs.emplace("image", Tensor(DType::kU8, {3, 40, 27}));
    std::uint32_t next = 1;
    for (std::uint8_t& v : bytes.inputs.at("image").as<std::uint8_t>())
      v = static_cast<std::uint8_t>((next = next * 1664525 + 1013904223) >> 24);
    for (OpCase* c : {&floats, &bytes}) {
      const bool u8 = c == &bytes;
      c->out_dtype = out;
      c->out_shape = {5 * 3, 3 * 64};
      c->add = [u8](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
        PatchColumns op;
        op.image = value("image");
        op.grid = {8, 2};
        if (u8) op.offset = {124, 116, 104};
        op.out = result;
        b.add(op);
      };
      compare_exactly(*c, u8 ? "bytes" : "floats");
    }
  }
}

TEST_F(Ops, PatchConvolution) {
  OpCase c;
  c.inputs.emplace("image", random_tensor(random_, DType::kF32, {3, 64, 48}));
  c.weights.tensors.emplace("w", random_tensor(random_, DType::kF32, {20, 3, 16, 16}, 0.04));
  c.weights.tensors.emplace("bias", random_tensor(random_, DType::kF32, {20}));
  c.out_shape = {4 * 3, 20};
  c.add = [](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
    PatchConvolution op;
    op.image = value("image");
    op.weight = value("w");
    op.bias = value("bias");
    op.grid = {16, 2};
    op.out = result;
    b.add(op);
  };
  OpCase scale_case;
  const Tensor scale = linear_scale(scale_case, c, *reference_);
  compare(c, "convolution",
          [&](std::size_t i, double) { return (768 + 4) * kF32Unit * scale.as<double>()[i]; });
}

/// An op with operands x (and b) and no attributes but `column`.
template <typename T>
std::function<void(ProgramBuilder&, const std::function<ValueId(const char*)>&, ValueId)> unary(
    std::int64_t column = 0) {
  return [column](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
    T op;
    op.x = value("x");
    if constexpr (std::is_same_v<T, SliceColumns>) {
      op.column = column;
    } else {
      static_cast<void>(column);  // clang: captured for nothing
    }
    op.out = result;
    b.add(op);
  };
}

TEST_F(Ops, Elementwise) {
  const Shape shape = {37, 1291};  // three tasks, the last one short
  OpCase add;
  add.inputs.emplace("a", random_tensor(random_, DType::kF32, shape));
  add.out_shape = shape;
  add.add = [](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
    Add op;
    op.a = value("a");
    op.b = value("b");
    op.out = result;
    b.add(op);
  };
  for (const Shape& other : {shape, Shape{1, 1291}}) {
    add.inputs.insert_or_assign("b", random_tensor(random_, DType::kF32, other));
    compare_exactly(
        add,
        "add " + to_string(other));  // one f32 addition and one double one rounded to f32 are the same number
  }
  for (const DType out : {DType::kF32, DType::kBF16}) {
    OpCase gelu;
    gelu.inputs.emplace("x", random_tensor(random_, DType::kF32, shape, 3));
    gelu.out_dtype = out;
    gelu.out_shape = shape;
    gelu.add = unary<Gelu>();
    compare(gelu, "gelu",
            [&](std::size_t, double e) { return 16 * kF32Unit * 10 + 2 * unit_of(out) * std::fabs(e); });
  }
  for (const auto& [from, to] : {std::pair{DType::kF32, DType::kBF16},
                                 {DType::kBF16, DType::kF32},
                                 {DType::kF32, DType::kF32},
                                 {DType::kBF16, DType::kBF16}}) {
    OpCase convert;
    convert.inputs.emplace("x", random_tensor(random_, from, shape));
    convert.out_dtype = to;
    convert.out_shape = shape;
    convert.add = unary<Convert>();
    compare_exactly(convert, "convert");
  }
}

TEST_F(Ops, Columns) {
  OpCase slice;
  slice.inputs.emplace("x", random_tensor(random_, DType::kBF16, {5, 19}));
  slice.out_dtype = DType::kBF16;
  slice.out_shape = {5, 7};
  slice.add = unary<SliceColumns>(11);
  compare_exactly(slice, "slice");

  OpCase concat;
  for (const auto& [name, columns] : {std::pair{"a", 3}, {"b", 1}, {"c", 10}}) {
    concat.inputs.emplace(name, random_tensor(random_, DType::kF32, {4, columns}));
  }
  concat.out_shape = {4, 14};
  concat.add = [](ProgramBuilder& b, const std::function<ValueId(const char*)>& value, ValueId result) {
    ConcatColumns op;
    op.parts = {value("a"), value("b"), value("c")};
    op.out = result;
    b.add(op);
  };
  compare_exactly(concat, "concat");
}

TEST_F(Ops, Rotation) {
  OpCase c;
  c.inputs.emplace("x", random_tensor(random_, DType::kF32, {1, 96}));
  c.out_shape = {1, 144};
  c.add = unary<Rotation6dToMatrix>();
  // Gram-Schmidt of two random vectors: the condition is |a2|/|a2 - projection|, below 50 for these 16
  // joints; about 10 roundings.
  compare(c, "rotation", [](std::size_t, double) { return 10 * 50 * kF32Unit; });
}

}  // namespace
}  // namespace sinew

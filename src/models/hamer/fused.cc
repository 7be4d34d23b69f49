// The fused form: every reformulation is exact and proved in double by fused_test.cc (spec hamer 7).
#include <fmt/format.h>

#include <cmath>

#include "image/crop.h"
#include "models/hamer/builder.h"
#include "models/hamer/folding.h"
#include "plan/transforms.h"
#include "program/attention.h"
#include "program/patch.h"

namespace sinew::hamer {
namespace {

class Fused {
 public:
  explicit Fused(Builder& builder) : b_(builder), c_(builder.config()) {}

  void build() {
    ValueId x = embed();
    for (std::int64_t i = 0; i < c_.depth; ++i) x = block(i, x);
    const ValueId features = b_.layer_norm(
        "norm", "backbone.last_norm", x,
        b_.stage("features", b_.product(), {kTokens, c_.embed}, tokens_shape(c_.embed)), kBackboneEps);
    const ValueId kv = project_keys_and_values(features);
    ValueId token;
    for (std::int64_t j = 0; j < c_.head_depth; ++j) token = layer(j, token, kv);
    read_out(token);
  }

 private:
  ValueId tokens(const std::string& name, DType dtype, std::int64_t columns) {
    return b_.stage(name, dtype, {kTokens, columns}, tokens_shape(columns));
  }
  ValueId query(const std::string& name, DType dtype, std::int64_t columns) {
    return b_.stage(name, dtype, {1, columns}, query_shape(columns));
  }

  /// tokens = im2col(image) * W + constant (7.1 to 7.3).
  ValueId embed() {
    const bool u8 = b_.options().u8_input;
    PatchColumns columns;
    columns.image = b_.image();
    columns.grid = {kPatch, kPadding};
    if (u8) columns.offset.assign(std::begin(kGreyPad), std::end(kGreyPad));
    columns.out = b_.local("patch.columns", b_.product(), {kTokens, 3 * kPatch * kPatch});
    b_.ops().add(columns);

    const std::vector<std::string> sources = {"backbone.patch_embed.proj.weight",
                                              "backbone.patch_embed.proj.bias", "backbone.pos_embed"};
    Linear op;
    op.x = columns.out;
    op.weight = b_.product_weight({"patch.weight",
                                   "patch",
                                   b_.product(),
                                   {c_.embed, 3 * kPatch * kPatch},
                                   {sources[0]},
                                   patch_weight(c_, u8)});
    op.residual = b_.made_weight(
        {"patch.constant", "patch", b_.stream(), {kTokens, c_.embed}, sources, patch_constant(c_, u8, true)});
    op.out = tokens("tokens.pos", b_.stream(), c_.embed);
    b_.ops().add(op);
    const ValueId x = op.out;
    if (b_.trace()) {  // before the position table is added
      op.residual = b_.made_weight({"patch.constant_without_position",
                                    "patch",
                                    b_.stream(),
                                    {kTokens, c_.embed},
                                    sources,
                                    patch_constant(c_, u8, false)});
      op.out = tokens("tokens.patch", b_.stream(), c_.embed);
      b_.ops().add(op);
    }
    return x;
  }

  ValueId block(std::int64_t i, ValueId x) {
    const std::string source = block_prefix(i);
    const std::string stage = fmt::format("block.{}.", i);
    const ValueId norm1 = b_.layer_norm("norm", source + "norm1", x,
                                        tokens(stage + "norm1", b_.product(), c_.embed), kBackboneEps);
    const ValueId qkv = b_.linear({"attention", source + "attn.qkv"}, norm1,
                                  tokens(stage + "qkv", b_.product(), 3 * c_.embed));
    Attention attend;
    attend.q = {qkv, 0};
    attend.k = {qkv, c_.embed};
    attend.v = {qkv, 2 * c_.embed};
    attend.heads = c_.heads();
    attend.head_dim = kBackboneHeadDim;
    attend.scale = 1 / std::sqrt(static_cast<double>(kBackboneHeadDim));
    attend.out = tokens(stage + "attn_ctx", b_.product(), c_.embed);
    b_.ops().add(attend);
    if (b_.trace()) {
      b_.linear({"attention", source + "attn.proj"}, attend.out,
                tokens(stage + "attn_out", b_.stream(), c_.embed));
    }
    const ValueId middle =
        b_.linear({.category = "attention", .source = source + "attn.proj", .residual = x}, attend.out,
                  b_.local(stage + "after_attn", b_.stream(), {kTokens, c_.embed}));
    const ValueId norm2 = b_.layer_norm("norm", source + "norm2", middle,
                                        tokens(stage + "norm2", b_.product(), c_.embed), kBackboneEps);
    if (b_.trace()) b_.linear({"mlp", source + "mlp.fc1"}, norm2, tokens(stage + "fc1", b_.stream(), c_.mlp));
    const ValueId hidden =
        b_.linear({.category = "mlp", .source = source + "mlp.fc1", .activation = Activation::kGelu}, norm2,
                  tokens(stage + "gelu", b_.product(), c_.mlp));
    if (b_.trace())
      b_.linear({"mlp", source + "mlp.fc2"}, hidden, tokens(stage + "mlp_out", b_.stream(), c_.embed));
    return b_.linear({.category = "mlp", .source = source + "mlp.fc2", .residual = middle}, hidden,
                     tokens(stage + "out", b_.stream(), c_.embed));
  }

  /// Columns K_0, V_0, K_1, V_1, ... of all layers in one product (7.9).
  ValueId project_keys_and_values(ValueId features) {
    const std::int64_t pair = 2 * c_.head_inner;
    std::vector<std::string> sources;
    sources.reserve(static_cast<std::size_t>(c_.head_depth));
    for (std::int64_t j = 0; j < c_.head_depth; ++j) sources.push_back(layer_prefix(j) + "1.fn.to_kv.weight");
    Linear op;
    op.x = features;
    op.weight = b_.product_weight({"head.kv.weight",
                                   "head",
                                   b_.product(),
                                   {c_.head_depth * pair, c_.embed},
                                   sources,
                                   transforms::stacked(sources)});
    op.out = b_.local("head.kv", b_.product(), {kTokens, c_.head_depth * pair});
    b_.ops().add(op);
    for (std::int64_t j = 0; b_.trace() && j < c_.head_depth; ++j) {
      b_.slice(op.out, j * pair, tokens(fmt::format("head.{}.kv", j), b_.product(), pair));
    }
    return op.out;
  }

  /// Layer 0 up to its query does not depend on the image: two constants (7.7, 7.8).
  std::pair<ValueId, ValueId> constants_of_layer0() {
    const auto constant = [&](const std::string& name, DType dtype, std::int64_t columns,
                              Transform transform) {
      return b_.made_weight({name, "head", dtype, {1, columns}, layer0_sources(), std::move(transform)});
    };
    const ValueId x1 = constant("head.x1", b_.stream(), c_.head_dim, token_after_layer0(c_));
    const ValueId q0 = constant("head.q0", b_.product(), c_.head_inner, query_of_layer0(c_));
    if (b_.trace()) {
      b_.copy(constant("head.x0", b_.stream(), c_.head_dim, initial_token(c_)),
              query("head.0.x_in", b_.stream(), c_.head_dim));
      b_.copy(x1, query("head.0.after_sa", b_.stream(), c_.head_dim));
      b_.copy(q0, query("head.0.q", b_.product(), c_.head_inner));
    }
    return {x1, q0};
  }

  /// Self-attention of one token is to_out(Wv LN(x)) (7.5). Returns the token after it and the
  /// cross-attention query.
  std::pair<ValueId, ValueId> self_attention_and_query(std::int64_t j, ValueId x) {
    const std::string source = layer_prefix(j);
    const std::string stage = fmt::format("head.{}.", j);
    const ValueId norm = b_.layer_norm("norm", source + "0.norm", x,
                                       b_.local(stage + "norm0", b_.product(), {1, c_.head_dim}), kHeadEps);
    const std::string to_qkv = source + "0.fn.to_qkv.weight";
    Linear to_value;
    to_value.x = norm;
    to_value.weight = b_.product_weight({stage + "to_v.weight",
                                         "head",
                                         b_.product(),
                                         {c_.head_inner, c_.head_dim},
                                         {to_qkv},
                                         transforms::source_rows(to_qkv, 2 * c_.head_inner, c_.head_inner)});
    to_value.out = b_.local(stage + "value", b_.product(), {1, c_.head_inner});
    b_.ops().add(to_value);
    const ValueId after = b_.linear({.category = "head", .source = source + "0.fn.to_out.0", .residual = x},
                                    to_value.out, query(stage + "after_sa", b_.stream(), c_.head_dim));
    const ValueId norm1 = b_.layer_norm("norm", source + "1.norm", after,
                                        b_.local(stage + "norm1", b_.product(), {1, c_.head_dim}), kHeadEps);
    const ValueId q = b_.linear({.category = "head", .source = source + "1.fn.to_q", .has_bias = false},
                                norm1, query(stage + "q", b_.product(), c_.head_inner));
    return {after, q};
  }

  ValueId layer(std::int64_t j, ValueId x, ValueId kv) {
    const std::string source = layer_prefix(j);
    const std::string stage = fmt::format("head.{}.", j);
    const auto [after_sa, q] = j == 0 ? constants_of_layer0() : self_attention_and_query(j, x);
    Attention attend;
    attend.q = {q, 0};
    attend.k = {kv, 2 * j * c_.head_inner};
    attend.v = {kv, (2 * j + 1) * c_.head_inner};
    attend.heads = c_.head_heads;
    attend.head_dim = c_.head_inner / c_.head_heads;
    attend.scale = 1 / std::sqrt(static_cast<double>(attend.head_dim));
    attend.out = b_.local(stage + "ctx", b_.product(), {1, c_.head_inner});
    b_.ops().add(attend);
    const ValueId after_ca =
        b_.linear({.category = "head", .source = source + "1.fn.to_out.0", .residual = after_sa}, attend.out,
                  query(stage + "after_ca", b_.stream(), c_.head_dim));
    const ValueId norm2 = b_.layer_norm("norm", source + "2.norm", after_ca,
                                        b_.local(stage + "norm2", b_.product(), {1, c_.head_dim}), kHeadEps);
    const ValueId hidden =
        b_.linear({.category = "head", .source = source + "2.fn.net.0", .activation = Activation::kGelu},
                  norm2, b_.local(stage + "hidden", b_.product(), {1, c_.head_mlp}));
    const bool last = j + 1 == c_.head_depth;
    const std::string name = last ? "head.token" : fmt::format("head.{}.x_in", j + 1);
    return b_.linear({.category = "head", .source = source + "2.fn.net.3", .residual = after_ca}, hidden,
                     query(name, b_.stream(), c_.head_dim));
  }

  /// One product for the three regressors (7.11), in the stream's type: 0.1 M weights whose error would go
  /// straight into the result.
  void read_out(ValueId token) {
    const std::vector<std::string> parts = {"mano_head.decpose", "mano_head.decshape", "mano_head.deccam"};
    std::vector<std::string> weights;
    std::vector<std::string> biases;
    for (const std::string& part : parts) {
      weights.push_back(part + ".weight");
      biases.push_back(part + ".bias");
    }
    Linear op;
    op.x = token;
    op.weight = b_.made_weight({"readout.weight",
                                "readout",
                                b_.stream(),
                                {kReadout, c_.head_dim},
                                weights,
                                transforms::stacked(weights)});
    op.bias = b_.made_weight(
        {"readout.bias", "readout", b_.stream(), {kReadout}, biases, transforms::stacked(biases)});
    op.out = b_.local("readout", b_.stream(), {1, kReadout});
    b_.ops().add(op);
    const auto part = [&](const std::string& name, std::int64_t column, std::int64_t columns) {
      const ValueId out = b_.stage(name, b_.stream(), {1, columns}, {1, columns});
      b_.slice(op.out, column, out);
      return out;
    };
    const ValueId pose = part("dec.decpose", 0, kPose);
    const ValueId shape = part("dec.decshape", kPose, kBetas);
    const ValueId cam = part("dec.deccam", kPose + kBetas, kCam);
    b_.finalise(pose, shape, cam);
  }

  Builder& b_;
  const Config& c_;
};

}  // namespace

void build_fused(Builder& builder) { Fused(builder).build(); }

}  // namespace sinew::hamer

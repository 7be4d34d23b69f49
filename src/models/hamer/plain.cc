// The plain form: op by op as the original code, nothing folded.
#include <fmt/format.h>

#include <cmath>

#include "models/hamer/builder.h"
#include "plan/transforms.h"
#include "program/attention.h"
#include "program/elementwise.h"
#include "program/patch.h"

namespace sinew::hamer {
namespace {

class Plain {
 public:
  explicit Plain(Builder& builder) : b_(builder), c_(builder.config()) {}

  void build() {
    ValueId x = embed();
    for (std::int64_t i = 0; i < c_.depth; ++i) x = block(i, x);
    const ValueId features = b_.layer_norm("norm", "backbone.last_norm", x,
                                           tokens("features", b_.product(), c_.embed), kBackboneEps);
    ValueId token = initial();
    for (std::int64_t j = 0; j < c_.head_depth; ++j) token = layer(j, token, features);
    b_.finalise(regress("decpose", token, kPose), regress("decshape", token, kBetas),
                regress("deccam", token, kCam));
  }

 private:
  ValueId tokens(const std::string& name, DType dtype, std::int64_t columns) {
    return b_.stage(name, dtype, {kTokens, columns}, tokens_shape(columns));
  }
  ValueId query(const std::string& name, DType dtype, std::int64_t columns) {
    return b_.stage(name, dtype, {1, columns}, query_shape(columns));
  }
  ValueId sum(ValueId a, ValueId b, ValueId out) { return b_.add(a, b, out); }

  /// The convolution stays in the stream's type, also under bf16: it is the one product whose operand is not
  /// a normalised activation.
  ValueId embed() {
    PatchConvolution conv;
    const std::string source = "backbone.patch_embed.proj";
    conv.image = b_.image();
    conv.weight = b_.made_weight(
        {"patch.convolution", "patch", b_.stream(), {c_.embed, 3, kPatch, kPatch}, {source + ".weight"}, {}});
    conv.bias = b_.stream_weight("patch", source + ".bias", {c_.embed});
    conv.grid = {kPatch, kPadding};
    conv.out = tokens("tokens.patch", b_.stream(), c_.embed);
    b_.ops().add(conv);
    const std::string pos = "backbone.pos_embed";
    const auto rows = [&](const std::string& name, std::int64_t first, std::int64_t count) {
      return b_.made_weight(
          {name, "patch", b_.stream(), {count, c_.embed}, {pos}, transforms::source_rows(pos, first, count)});
    };
    const ValueId placed = sum(conv.out, rows("pos.tokens", 1, kTokens),
                               b_.local("tokens.table", b_.stream(), {kTokens, c_.embed}));
    return sum(placed, rows("pos.class_slot", 0, 1), tokens("tokens.pos", b_.stream(), c_.embed));
  }

  ValueId block(std::int64_t i, ValueId x) {
    const std::string source = block_prefix(i);
    const std::string stage = fmt::format("block.{}.", i);
    const ValueId norm1 = b_.layer_norm("norm", source + "norm1", x,
                                        tokens(stage + "norm1", b_.product(), c_.embed), kBackboneEps);
    const ValueId qkv = b_.linear({"attention", source + "attn.qkv"}, norm1,
                                  tokens(stage + "qkv", b_.product(), 3 * c_.embed));
    const ValueId ctx = attention({qkv, 0}, {qkv, c_.embed}, {qkv, 2 * c_.embed}, c_.heads(),
                                  kBackboneHeadDim, tokens(stage + "attn_ctx", b_.product(), c_.embed));
    const ValueId attn_out = b_.linear({"attention", source + "attn.proj"}, ctx,
                                       tokens(stage + "attn_out", b_.stream(), c_.embed));
    const ValueId middle = sum(x, attn_out, b_.local(stage + "after_attn", b_.stream(), {kTokens, c_.embed}));
    const ValueId norm2 = b_.layer_norm("norm", source + "norm2", middle,
                                        tokens(stage + "norm2", b_.product(), c_.embed), kBackboneEps);
    const ValueId fc1 =
        b_.linear({"mlp", source + "mlp.fc1"}, norm2, tokens(stage + "fc1", b_.stream(), c_.mlp));
    const ValueId hidden = gelu(fc1, tokens(stage + "gelu", b_.product(), c_.mlp));
    const ValueId mlp =
        b_.linear({"mlp", source + "mlp.fc2"}, hidden, tokens(stage + "mlp_out", b_.stream(), c_.embed));
    return sum(middle, mlp, tokens(stage + "out", b_.stream(), c_.embed));
  }

  ValueId attention(HeadColumns q, HeadColumns k, HeadColumns v, std::int64_t heads, std::int64_t head_dim,
                    ValueId out) {
    Attention op;
    op.q = q;
    op.k = k;
    op.v = v;
    op.heads = heads;
    op.head_dim = head_dim;
    op.scale = 1 / std::sqrt(static_cast<double>(head_dim));
    op.out = out;
    b_.ops().add(op);
    return out;
  }

  ValueId gelu(ValueId x, ValueId out) {
    Gelu op;
    op.x = x;
    op.out = out;
    b_.ops().add(op);
    return out;
  }

  /// The scalar 0 through to_token_embedding, plus the position.
  ValueId initial() {
    const std::string source = "mano_head.transformer.";
    Linear op;
    op.x =
        b_.made_weight({"head.zero", "head", b_.stream(), {1, 1}, {}, {"zero", [](const Sources&) {
                                                                         return Tensor(DType::kF64, {1, 1});
                                                                       }}});
    op.weight = b_.stream_weight("head", source + "to_token_embedding.weight", {c_.head_dim, 1});
    op.bias = b_.stream_weight("head", source + "to_token_embedding.bias", {c_.head_dim});
    op.out = b_.local("head.embedding", b_.stream(), {1, c_.head_dim});
    b_.ops().add(op);
    return sum(op.out, b_.stream_weight("head", source + "pos_embedding", {1, c_.head_dim}),
               query("head.0.x_in", b_.stream(), c_.head_dim));
  }

  ValueId layer(std::int64_t j, ValueId x, ValueId features) {
    const std::string source = layer_prefix(j);
    const std::string stage = fmt::format("head.{}.", j);
    const std::int64_t inner = c_.head_inner;
    const std::int64_t dim = inner / c_.head_heads;
    const auto row = [&](const std::string& name, DType dtype, std::int64_t columns) {
      return b_.local(stage + name, dtype, {1, columns});
    };

    const ValueId norm0 =
        b_.layer_norm("norm", source + "0.norm", x, row("norm0", b_.product(), c_.head_dim), kHeadEps);
    const ValueId qkv = b_.linear({.category = "head", .source = source + "0.fn.to_qkv", .has_bias = false},
                                  norm0, row("self_qkv", b_.product(), 3 * inner));
    const ValueId self = attention({qkv, 0}, {qkv, inner}, {qkv, 2 * inner}, c_.head_heads, dim,
                                   row("self_ctx", b_.product(), inner));
    const ValueId self_out =
        b_.linear({"head", source + "0.fn.to_out.0"}, self, row("self_out", b_.stream(), c_.head_dim));
    const ValueId after_sa = sum(x, self_out, query(stage + "after_sa", b_.stream(), c_.head_dim));

    const ValueId norm1 =
        b_.layer_norm("norm", source + "1.norm", after_sa, row("norm1", b_.product(), c_.head_dim), kHeadEps);
    const ValueId q = b_.linear({.category = "head", .source = source + "1.fn.to_q", .has_bias = false},
                                norm1, query(stage + "q", b_.product(), inner));
    const ValueId kv = b_.linear({.category = "head", .source = source + "1.fn.to_kv", .has_bias = false},
                                 features, tokens(stage + "kv", b_.product(), 2 * inner));
    const ValueId ctx =
        attention({q, 0}, {kv, 0}, {kv, inner}, c_.head_heads, dim, row("ctx", b_.product(), inner));
    const ValueId cross =
        b_.linear({"head", source + "1.fn.to_out.0"}, ctx, row("cross", b_.stream(), c_.head_dim));
    const ValueId after_ca = sum(after_sa, cross, query(stage + "after_ca", b_.stream(), c_.head_dim));

    const ValueId norm2 =
        b_.layer_norm("norm", source + "2.norm", after_ca, row("norm2", b_.product(), c_.head_dim), kHeadEps);
    const ValueId hidden =
        b_.linear({"head", source + "2.fn.net.0"}, norm2, row("hidden", b_.stream(), c_.head_mlp));
    const ValueId active = gelu(hidden, row("active", b_.product(), c_.head_mlp));
    const ValueId mlp =
        b_.linear({"head", source + "2.fn.net.3"}, active, row("mlp", b_.stream(), c_.head_dim));
    const bool last = j + 1 == c_.head_depth;
    return sum(after_ca, mlp,
               query(last ? "head.token" : fmt::format("head.{}.x_in", j + 1), b_.stream(), c_.head_dim));
  }

  ValueId regress(const std::string& name, ValueId token, std::int64_t columns) {
    Linear op;
    op.x = token;
    op.weight = b_.stream_weight("readout", "mano_head." + name + ".weight", {columns, c_.head_dim});
    op.bias = b_.stream_weight("readout", "mano_head." + name + ".bias", {columns});
    op.out = b_.stage("dec." + name, b_.stream(), {1, columns}, {1, columns});
    b_.ops().add(op);
    return op.out;
  }

  Builder& b_;
  const Config& c_;
};

}  // namespace

void build_plain(Builder& builder) { Plain(builder).build(); }

}  // namespace sinew::hamer

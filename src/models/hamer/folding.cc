#include "models/hamer/folding.h"

#include <fmt/format.h>

#include <cmath>

#include "image/crop.h"
#include "models/hamer/builder.h"

namespace sinew::hamer {
namespace {

using Vector = std::vector<double>;

Vector load(const Sources& sources, const std::string& name) {
  const Tensor tensor = sources.f64(name);
  const auto values = tensor.as<double>();
  return {values.begin(), values.end()};
}

Tensor as_tensor(const Vector& values, const Shape& shape) { return Tensor::of<double>(shape, values); }

/// weight [rows, x.size()] starting at row `first`, times x, plus bias.
Vector product(const Vector& weight, std::int64_t first, std::int64_t rows, const Vector& x,
               const Vector& bias = {}) {
  Vector out(static_cast<std::size_t>(rows), 0.0);
  for (std::size_t r = 0; r < out.size(); ++r) {
    const double* w = &weight[(static_cast<std::size_t>(first) + r) * x.size()];
    for (std::size_t k = 0; k < x.size(); ++k) out[r] += w[k] * x[k];
    if (!bias.empty()) out[r] += bias[r];
  }
  return out;
}

Vector layer_norm(const Vector& x, const Vector& gamma, const Vector& beta) {
  const auto n = static_cast<double>(x.size());
  double mean = 0;
  for (const double v : x) mean += v / n;
  double variance = 0;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  Vector out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = (x[i] - mean) / std::sqrt(variance + kHeadEps) * gamma[i] + beta[i];
  }
  return out;
}

Vector x0(const Sources& sources) {
  Vector token = load(sources, "mano_head.transformer.to_token_embedding.bias");
  const Vector position = load(sources, "mano_head.transformer.pos_embedding");
  for (std::size_t i = 0; i < token.size(); ++i) token[i] += position[i];
  return token;
}

// Softmax over one key is 1, so self-attention of the single token is to_out(Wv LN(x)); Wv is the last third
// of to_qkv (7.5).
Vector x1(const Sources& sources, const Config& config) {
  const std::string layer = layer_prefix(0);
  Vector token = x0(sources);
  const Vector normed =
      layer_norm(token, load(sources, layer + "0.norm.weight"), load(sources, layer + "0.norm.bias"));
  const Vector value =
      product(load(sources, layer + "0.fn.to_qkv.weight"), 2 * config.head_inner, config.head_inner, normed);
  const Vector out = product(load(sources, layer + "0.fn.to_out.0.weight"), 0, config.head_dim, value,
                             load(sources, layer + "0.fn.to_out.0.bias"));
  for (std::size_t i = 0; i < token.size(); ++i) token[i] += out[i];
  return token;
}

/// Adds, for every token, W applied to the im2col of an image whose channel c is the constant beta[c] and
/// whose padding is 0: border tokens see fewer pixels than inner ones.
void add_constant_image(const Config& config, const Vector& weight, const std::array<double, 3>& beta,
                        Vector& out) {
  constexpr std::int64_t kGridColumns = 12;
  const auto inside = [](std::int64_t grid, std::int64_t pixel, std::int64_t extent) {
    const std::int64_t at = grid * kPatch + pixel - kPadding;
    return at >= 0 && at < extent;
  };
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t n = 0; n < config.embed; ++n) {
      const double* w = &weight[static_cast<std::size_t>(n * 3 * kPatch * kPatch)];
      double sum = 0;
      for (std::int64_t c = 0; c < 3; ++c) {
        for (std::int64_t r = 0; r < kPatch; ++r) {
          const bool row_inside = inside(token / kGridColumns, r, kImageRows);
          for (std::int64_t x = 0; x < kPatch; ++x, ++w) {
            if (row_inside && inside(token % kGridColumns, x, kImageColumns))
              sum += *w * beta[static_cast<std::size_t>(c)];
          }
        }
      }
      out[static_cast<std::size_t>(token * config.embed + n)] += sum;
    }
  }
}

}  // namespace

PixelStats pixel_stats(const Config& config) {
  PixelStats stats;
  for (std::size_t c = 0; c < 3; ++c) {
    stats.mean[c] = 255 * config.image_mean[c];
    stats.std[c] = 255 * config.image_std[c];
  }
  return stats;
}

Transform patch_weight(const Config& config, bool u8_input) {
  return {u8_input ? "reshape, divide by channel deviation" : "reshape",
          [config, u8_input](const Sources& sources) {
            Vector weight = load(sources, "backbone.patch_embed.proj.weight");
            constexpr std::size_t kPixels = kPatch * kPatch;
            const PixelStats stats = pixel_stats(config);
            for (std::size_t i = 0; u8_input && i < weight.size(); ++i)
              weight[i] /= stats.std[i / kPixels % 3];
            return as_tensor(weight, {config.embed, 3 * kPatch * kPatch});
          }};
}

Transform patch_constant(const Config& config, bool u8_input, bool with_position) {
  return {fmt::format("bias{}{}", with_position ? " + position" : "", u8_input ? " + constant image" : ""),
          [config, u8_input, with_position](const Sources& sources) {
            const Vector bias = load(sources, "backbone.patch_embed.proj.bias");
            const Vector position = load(sources, "backbone.pos_embed");
            const std::size_t width = bias.size();
            Vector out(static_cast<std::size_t>(kTokens) * width);
            for (std::size_t i = 0; i < out.size(); ++i) {
              out[i] = bias[i % width];
              // Row 0 belongs to the class token of pre-training and is added to every token (1.2).
              if (with_position) out[i] += position[width + i] + position[i % width];
            }
            if (u8_input) {
              const PixelStats stats = pixel_stats(config);
              std::array<double, 3> beta{};
              for (std::size_t c = 0; c < 3; ++c) beta[c] = (kGreyPad[c] - stats.mean[c]) / stats.std[c];
              add_constant_image(config, load(sources, "backbone.patch_embed.proj.weight"), beta, out);
            }
            return as_tensor(out, {kTokens, config.embed});
          }};
}

Transform initial_token(const Config& config) {
  return {"token bias + position",
          [config](const Sources& sources) { return as_tensor(x0(sources), {1, config.head_dim}); }};
}

Transform token_after_layer0(const Config& config) {
  return {"token after layer 0's self-attention",
          [config](const Sources& sources) { return as_tensor(x1(sources, config), {1, config.head_dim}); }};
}

Transform query_of_layer0(const Config& config) {
  return {"query of layer 0", [config](const Sources& sources) {
            const std::string layer = layer_prefix(0);
            const Vector normed = layer_norm(x1(sources, config), load(sources, layer + "1.norm.weight"),
                                             load(sources, layer + "1.norm.bias"));
            return as_tensor(product(load(sources, layer + "1.fn.to_q.weight"), 0, config.head_inner, normed),
                             {1, config.head_inner});
          }};
}

std::vector<std::string> layer0_sources() {
  const std::string layer = layer_prefix(0);
  return {"mano_head.transformer.to_token_embedding.bias",
          "mano_head.transformer.pos_embedding",
          layer + "0.norm.weight",
          layer + "0.norm.bias",
          layer + "0.fn.to_qkv.weight",
          layer + "0.fn.to_out.0.weight",
          layer + "0.fn.to_out.0.bias",
          layer + "1.norm.weight",
          layer + "1.norm.bias",
          layer + "1.fn.to_q.weight"};
}

}  // namespace sinew::hamer

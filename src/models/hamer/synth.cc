#include "models/hamer/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/progress.h"
#include "io/safetensors.h"
#include "io/torch_archive.h"
#include "tensor/tensor.h"

namespace sinew::hamer {
namespace {

/// How the random part of a tensor's elements is scaled and what it is added to.
struct Recipe {
  enum class Base : std::uint8_t { kZero, kOne, kIdentityPose, kCam } base = Base::kZero;
  double base_scale = 1;  // of kCam: the first of three
  double scale = 1;
  bool norm_weight = false;  // HPG1 draws these from five bits
};

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

bool is_norm(std::string_view name, std::string_view leaf) {
  for (const std::string_view norm : {"norm", "norm1", "norm2", "last_norm"}) {
    const std::string end = fmt::format("{}.{}", norm, leaf);
    if (name.ends_with(end) && (name.size() == end.size() || name[name.size() - end.size() - 1] == '.'))
      return true;
  }
  return false;
}

/// Golden README, section 2: the first rule that matches. Everything is r/2^n with odd integer r in [-255,
/// 255].
Recipe hpg1_recipe(std::string_view name) {
  using Base = Recipe::Base;
  const auto shift = [](int n) { return std::ldexp(1.0, -n); };
  if (name.ends_with("init_hand_pose")) return {Base::kIdentityPose, 1, shift(11)};
  if (name.ends_with("init_betas")) return {Base::kZero, 1, shift(10)};
  if (name.ends_with("init_cam")) return {Base::kCam, 0.875, shift(13)};
  if (is_norm(name, "weight")) return {Base::kOne, 1, shift(7), true};
  if (is_norm(name, "bias")) return {Base::kZero, 1, shift(11)};
  if (ends_with_any(name,
                    {"patch_embed.proj.weight", "attn.proj.weight", "mlp.fc2.weight", "fn.net.3.weight"})) {
    return {Base::kZero, 1, shift(13)};
  }
  if (ends_with_any(name, {"attn.qkv.weight", "mlp.fc1.weight", "fn.to_qkv.weight", "fn.to_kv.weight",
                           "fn.to_q.weight", "fn.to_out.0.weight", "fn.net.0.weight", "pos_embed"})) {
    return {Base::kZero, 1, shift(12)};
  }
  if (ends_with_any(name, {"decpose.weight", "deccam.weight"})) return {Base::kZero, 1, shift(15)};
  if (name.ends_with("decshape.weight")) return {Base::kZero, 1, shift(14)};
  if (ends_with_any(name, {"pos_embedding", "to_token_embedding.weight"})) return {Base::kZero, 1, shift(7)};
  if (name.ends_with("to_token_embedding.bias")) return {Base::kZero, 1, shift(8)};
  return {Base::kZero, 1, shift(12)};
}

/// Standard deviations that keep activations of a random network in a trained one's range (golden README,
/// section 1).
Recipe normal_recipe(const ExpectedTensor& tensor) {
  using Base = Recipe::Base;
  const std::string_view name = tensor.name;
  if (name.ends_with("init_hand_pose")) return {Base::kIdentityPose, 1, 0.15};
  if (name.ends_with("init_betas")) return {Base::kZero, 1, 0.2};
  if (name.ends_with("init_cam")) return {Base::kCam, 0.9, 0.02};
  if (is_norm(name, "weight")) return {Base::kOne, 1, 0.15};
  if (is_norm(name, "bias")) return {Base::kZero, 1, 0.1};
  if (name.ends_with("pos_embed")) return {Base::kZero, 1, 0.05};
  if (name.ends_with("pos_embedding")) return {Base::kZero, 1, 1};
  if (name.find("to_token_embedding") != std::string_view::npos) return {Base::kZero, 1, 0.5};
  // A hand in the middle half of its crop has a scale of about 4 (the crop is 2/s metres wide); the mean says
  // 0.9.
  if (name.ends_with("deccam.bias")) return {Base::kCam, 3, 0.005};
  if (name.ends_with(".bias")) return {Base::kZero, 1, 0.05};
  const double fan_in = static_cast<double>(tensor.shape.count()) / static_cast<double>(tensor.shape[0]);
  // The token's entries deviate by about 2: the pose strays by 0.2 from the mean hand, the camera by 1 cm.
  if (ends_with_any(name, {"decpose.weight", "decshape.weight"}))
    return {Base::kZero, 1, 0.1 / std::sqrt(fan_in)};
  if (name.ends_with("deccam.weight")) return {Base::kZero, 1, 0.004 / std::sqrt(fan_in)};
  const bool to_scores = ends_with_any(name, {"qkv.weight", "to_q.weight", "to_kv.weight"});
  return {Base::kZero, 1, (to_scores ? 1.2 : 0.7) / std::sqrt(fan_in)};
}

double base_of(const Recipe& recipe, std::int64_t i) {
  switch (recipe.base) {
    case Recipe::Base::kZero:
      return 0;
    case Recipe::Base::kOne:
      return 1;
    case Recipe::Base::kIdentityPose:
      return i % 6 == 0 || i % 6 == 4 ? 1 : 0;
    case Recipe::Base::kCam:
      return i == 0 ? recipe.base_scale : 0;
  }
  return 0;
}

std::uint64_t draw(std::uint64_t start, std::int64_t i) {
  return mix64(start + (static_cast<std::uint64_t>(i) + 1) * kGoldenGamma);
}

std::uint64_t start_of(std::string_view name, std::uint64_t seed) {
  return fnv1a64(name) ^ (seed * kGoldenGamma);
}

double hpg1_random(std::uint64_t z, const Recipe& recipe) {
  if (recipe.norm_weight) return static_cast<double>(static_cast<std::int64_t>(z >> 59) - 16);
  return static_cast<double>(2 * static_cast<std::int64_t>(z >> 56) - 255);
}

/// Sum of the draw's four 16-bit parts, to mean 0 and deviation 1: close to a normal out to 3.4 deviations,
/// and one multiply a value.
double bell_random(std::uint64_t z) {
  const auto total = static_cast<double>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
  return (total / 65536.0 - 2.0 + 2.0 / 65536.0) * 1.7320508075688772;
}

/// Makes the tensors one after the other, a few million elements at a time.
void stream_values(const SynthOptions& options, const std::vector<ExpectedTensor>& tensors, ThreadPool& pool,
                   const std::function<void(std::span<const std::byte>)>& write, Progress& progress) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 22;
  constexpr std::int64_t kPiece = std::int64_t{1} << 16;
  std::vector<float> values(static_cast<std::size_t>(kChunk));
  std::vector<BF16> narrow(options.dtype == DType::kBF16 ? values.size() : 0);
  for (const ExpectedTensor& tensor : tensors) {
    for (std::int64_t first = 0; first < tensor.shape.count(); first += kChunk) {
      const std::int64_t count = std::min(kChunk, tensor.shape.count() - first);
      pool.parallel_for(static_cast<int>((count + kPiece - 1) / kPiece), [&](int piece, int) {
        const std::int64_t at = piece * kPiece;
        const std::int64_t n = std::min(kPiece, count - at);
        synth_values(options.generator, options.seed, tensor, first + at, n,
                     &values[static_cast<std::size_t>(at)]);
        for (std::int64_t i = at; i < at + n && !narrow.empty(); ++i) {
          narrow[static_cast<std::size_t>(i)] = to_bf16(values[static_cast<std::size_t>(i)]);
        }
      });
      const auto n = static_cast<std::size_t>(count);
      const auto bytes = narrow.empty() ? std::as_bytes(std::span(values).first(n))
                                        : std::as_bytes(std::span(narrow).first(n));
      write(bytes);
      progress.advance(bytes.size());
    }
  }
}

template <typename Writer>
void write_with(const std::string& path, const SynthOptions& options, ThreadPool& pool) {
  const std::vector<ExpectedTensor> tensors = expected_tensors(options.config);
  std::vector<typename Writer::Entry> entries;
  std::uint64_t bytes = 0;
  for (const ExpectedTensor& tensor : tensors) {
    entries.push_back({tensor.name, options.dtype, tensor.shape});
    bytes += static_cast<std::uint64_t>(tensor.shape.count()) * size_of(options.dtype);
  }
  Writer writer(path, entries);
  Progress progress("writing " + path, bytes, ProgressUnit::kBytes);
  stream_values(
      options, tensors, pool, [&](std::span<const std::byte> part) { writer.write(part); }, progress);
  writer.commit();
}

}  // namespace

void synth_values(Generator generator, std::uint64_t seed, const ExpectedTensor& tensor, std::int64_t first,
                  std::int64_t count, float* out) {
  const bool hpg1 = generator == Generator::kHpg1;
  const Recipe recipe = hpg1 ? hpg1_recipe(tensor.name) : normal_recipe(tensor);
  const std::uint64_t start = start_of(tensor.name, seed);
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::uint64_t z = draw(start, i);
    const double random = hpg1 ? hpg1_random(z, recipe) : bell_random(z);
    *out++ = static_cast<float>(base_of(recipe, i) + recipe.scale * random);
  }
}

std::uint8_t hpg1_pixel(std::uint64_t seed, std::uint64_t i) {
  return static_cast<std::uint8_t>(draw(start_of("input.u8", seed), static_cast<std::int64_t>(i)) >> 56);
}

void check_synthetic_sizes(const Config& c) {
  const bool good = c.embed > 0 && c.embed <= 16384 && c.embed % kBackboneHeadDim == 0 && c.mlp > 0 &&
                    c.mlp <= 65536 && c.depth > 0 && c.depth < 1000 && c.head_depth > 0 &&
                    c.head_depth < 1000;
  if (!good) {
    throw fail(ErrorCode::kUsage,
               "width {} (a multiple of {} up to 16384), mlp {} (1 to 65536), depth {} and head depth {} (1 "
               "to 999) are not sizes "
               "the network can have",
               c.embed, kBackboneHeadDim, c.mlp, c.depth, c.head_depth);
  }
}

void write_synthetic_checkpoint(const std::string& path, const SynthOptions& options, ThreadPool& pool) {
  check_synthetic_sizes(options.config);
  if (options.format == CheckpointFormat::kTorch) {
    write_with<TorchArchiveWriter>(path, options, pool);
  } else {
    write_with<SafetensorsWriter>(path, options, pool);
  }
}

std::string synthetic_config_yaml(const Config& c) {
  return fmt::format(
      "# made by `sinew synth hamer`: the weights beside it are random\n"
      "MODEL:\n"
      "  IMAGE_SIZE: {}\n"
      "  IMAGE_MEAN: [{}, {}, {}]\n"
      "  IMAGE_STD: [{}, {}, {}]\n"
      "  BACKBONE:\n"
      "    TYPE: vit\n"
      "  MANO_HEAD:\n"
      "    TYPE: transformer_decoder\n"
      "    TRANSFORMER_DECODER:\n"
      "      depth: {}\n"
      "      heads: {}\n"
      "      mlp_dim: {}\n"
      "      dim_head: {}\n"
      "      context_dim: {}\n"
      "EXTRA:\n"
      "  FOCAL_LENGTH: {}\n",
      kImageRows, c.image_mean[0], c.image_mean[1], c.image_mean[2], c.image_std[0], c.image_std[1],
      c.image_std[2], c.head_depth, c.head_heads, c.head_mlp, c.head_inner / c.head_heads, c.embed,
      c.focal_length);
}

}  // namespace sinew::hamer

#include "models/hamer/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/log.h"

namespace sinew::hamer {
namespace {

/// 1 + the largest N in names `<prefix>N.`; 0 when there is none. Gaps are left to check_tensors.
std::int64_t count_numbered(const Sources& sources, const std::string& prefix) {
  std::int64_t count = 0;
  for (auto at = sources.entries().lower_bound(prefix); at != sources.entries().end(); ++at) {
    const std::string_view name = at->first;
    if (!name.starts_with(prefix)) break;
    std::int64_t number = 0;
    const char* first = name.data() + prefix.size();
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), number);
    if (error != std::errc{} || end == name.data() + name.size() || *end != '.') continue;
    // A checkpoint that names block 10^9 is damaged, and every block would be reported missing.
    if (number >= 0 && number < 1000) count = std::max(count, number + 1);
  }
  return count;
}

/// Extent `axis` of a tensor, when it is there with that many axes; else leaves the value alone.
void read_extent(const Sources& sources, const std::string& file, const std::string& name, int rank, int axis,
                 std::int64_t& value) {
  const TensorView* view = sources.find(name);
  if (view == nullptr || view->shape.rank() != rank || view->shape[axis] <= 0) return;
  // Far above any network, and far below where products of two widths overflow: a shape costs a file nothing.
  constexpr std::int64_t kMaxWidth = 1 << 20;
  if (view->shape[axis] > kMaxWidth) {
    throw fail(ErrorCode::kMismatch, "{}: {} has shape {}, no width of the network is above {}", file, name,
               to_string(view->shape), kMaxWidth);
  }
  value = view->shape[axis];
}

void expect_pair(std::vector<ExpectedTensor>& list, const std::string& prefix, const Shape& weight) {
  list.push_back({prefix + ".weight", weight});
  list.push_back({prefix + ".bias", {weight[0]}});
}

void expect_backbone(std::vector<ExpectedTensor>& list, const Config& c) {
  list.push_back({"backbone.pos_embed", {1, kTokens + 1, c.embed}});
  expect_pair(list, "backbone.patch_embed.proj", {c.embed, 3, kPatch, kPatch});
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const std::string block = fmt::format("backbone.blocks.{}.", i);
    expect_pair(list, block + "norm1", {c.embed});
    expect_pair(list, block + "attn.qkv", {3 * c.embed, c.embed});
    expect_pair(list, block + "attn.proj", {c.embed, c.embed});
    expect_pair(list, block + "norm2", {c.embed});
    expect_pair(list, block + "mlp.fc1", {c.mlp, c.embed});
    expect_pair(list, block + "mlp.fc2", {c.embed, c.mlp});
  }
  expect_pair(list, "backbone.last_norm", {c.embed});
}

void expect_head(std::vector<ExpectedTensor>& list, const Config& c) {
  const std::string head = "mano_head.";
  list.push_back({head + "init_hand_pose", {1, kPose}});
  list.push_back({head + "init_betas", {1, kBetas}});
  list.push_back({head + "init_cam", {1, kCam}});
  list.push_back({head + "transformer.pos_embedding", {1, 1, c.head_dim}});
  expect_pair(list, head + "transformer.to_token_embedding", {c.head_dim, 1});
  for (std::int64_t j = 0; j < c.head_depth; ++j) {
    const std::string layer = fmt::format("{}transformer.transformer.layers.{}.", head, j);
    expect_pair(list, layer + "0.norm", {c.head_dim});
    list.push_back({layer + "0.fn.to_qkv.weight", {3 * c.head_inner, c.head_dim}});
    expect_pair(list, layer + "0.fn.to_out.0", {c.head_dim, c.head_inner});
    expect_pair(list, layer + "1.norm", {c.head_dim});
    list.push_back({layer + "1.fn.to_kv.weight", {2 * c.head_inner, c.embed}});
    list.push_back({layer + "1.fn.to_q.weight", {c.head_inner, c.head_dim}});
    expect_pair(list, layer + "1.fn.to_out.0", {c.head_dim, c.head_inner});
    expect_pair(list, layer + "2.norm", {c.head_dim});
    expect_pair(list, layer + "2.fn.net.0", {c.head_mlp, c.head_dim});
    expect_pair(list, layer + "2.fn.net.3", {c.head_dim, c.head_mlp});
  }
  expect_pair(list, head + "decpose", {kPose, c.head_dim});
  expect_pair(list, head + "decshape", {kBetas, c.head_dim});
  expect_pair(list, head + "deccam", {kCam, c.head_dim});
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const Config& config) {
  std::vector<ExpectedTensor> list;
  expect_backbone(list, config);
  expect_head(list, config);
  return list;
}

Config derive_config(const Sources& sources, const std::string& file) {
  const auto is_ours = [](const auto& entry) {
    return entry.first.starts_with("backbone.") || entry.first.starts_with("mano_head.");
  };
  if (std::ranges::none_of(sources.entries(), is_ours)) {
    throw Error(
        ErrorCode::kMismatch,
        fmt::format(
            "{}: none of its {} tensors is named backbone.* or mano_head.*, so this is no HaMeR checkpoint",
            file, sources.entries().size()),
        "`sinew inspect` lists the tensors of a file");
  }
  Config config;
  read_extent(sources, file, "backbone.pos_embed", 3, 2, config.embed);
  read_extent(sources, file, "backbone.blocks.0.mlp.fc1.weight", 2, 0, config.mlp);
  read_extent(sources, file, "mano_head.transformer.pos_embedding", 3, 2, config.head_dim);
  const std::string layer = "mano_head.transformer.transformer.layers.";
  read_extent(sources, file, layer + "0.1.fn.to_q.weight", 2, 0, config.head_inner);
  read_extent(sources, file, layer + "0.2.fn.net.0.weight", 2, 0, config.head_mlp);
  config.depth = count_numbered(sources, "backbone.blocks.");
  config.head_depth = count_numbered(sources, layer);
  if (config.depth == 0)
    throw fail(ErrorCode::kMismatch, "{}: no backbone.blocks.*, expected at least one", file);
  if (config.head_depth == 0)
    throw fail(ErrorCode::kMismatch, "{}: no {}*, expected at least one", file, layer);
  if (config.embed % kBackboneHeadDim != 0) {
    throw fail(ErrorCode::kMismatch,
               "{}: backbone.pos_embed has {} channels, expected a multiple of {} (one head)", file,
               config.embed, kBackboneHeadDim);
  }
  // 64 per head in the published network; a config file may say otherwise.
  config.head_heads = std::max<std::int64_t>(config.head_inner / 64, 1);
  if (config.head_inner % config.head_heads != 0) {
    throw fail(ErrorCode::kMismatch,
               "{}: {}0.1.fn.to_q.weight has {} rows, expected a multiple of 64 (one head)", file, layer,
               config.head_inner);
  }
  return config;
}

void check_tensors(const Sources& sources, const Config& config, const std::string& file) {
  std::vector<std::string> problems;
  std::set<std::string> used;
  std::size_t missing = 0;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    used.insert(expected.name);
    const TensorView* view = sources.find(expected.name);
    if (view == nullptr) {
      ++missing;
      problems.push_back(fmt::format("{} {} is missing", expected.name, to_string(expected.shape)));
    } else if (!(view->shape == expected.shape)) {
      problems.push_back(fmt::format("{} has shape {}, expected {}", expected.name, to_string(view->shape),
                                     to_string(expected.shape)));
    } else if (!is_float(view->dtype)) {
      problems.push_back(
          fmt::format("{} has dtype {}, expected a float type", expected.name, to_string(view->dtype)));
    }
  }
  for (const auto& [name, entry] : sources.entries()) {
    if (!used.contains(name)) log(LogLevel::kDebug, "{}: tensor {} is not used", file, name);
  }
  if (!problems.empty()) {
    throw fail(ErrorCode::kMismatch, "{}: {} of {} tensors missing, {} unusable: {}", file, missing,
               used.size(), problems.size() - missing, fmt::join(problems, "; "));
  }
}

}  // namespace sinew::hamer

// sinew plan show MODEL
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/support.h"
#include "io/text_table.h"
#include "models/hamer/load.h"
#include "models/hamer/program.h"
#include "plan/selection.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string policy;
  std::string backend = "cpu";
  std::string categories;
  std::string names;
  bool json = false;
};

Json share_json(const PlanShare& share) { return {{"count", share.count}, {"bytes", share.bytes}}; }

std::string as_json(const std::vector<const PlanEntry*>& entries, const PlanSummary& summary, Policy policy) {
  Json tensors = Json::array();
  for (const PlanEntry* entry : entries) {
    Json shape = Json::array();
    for (int axis = 0; axis < entry->shape.rank(); ++axis) shape.push_back(entry->shape[axis]);
    tensors.push_back({{"name", entry->name},
                       {"category", entry->category},
                       {"dtype", to_string(entry->dtype)},
                       {"shape", std::move(shape)},
                       {"bytes", entry->bytes()},
                       {"transform", entry->transform.name()},
                       {"sources", entry->sources}});
  }
  Json json = {{"policy", to_string(policy)}, {"total", share_json(summary.total)}};
  for (const auto& [category, share] : summary.by_category) json["by_category"][category] = share_json(share);
  for (const auto& [dtype, share] : summary.by_dtype) json["by_dtype"][dtype] = share_json(share);
  json["tensors"] = std::move(tensors);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string sources_text(const PlanEntry& entry) {
  if (entry.sources.empty()) return "";
  if (entry.sources.size() == 1) return entry.sources.front();
  return fmt::format("{} and {} more", entry.sources.front(), entry.sources.size() - 1);
}

void add_sums(const std::string& title, const std::map<std::string, PlanShare>& shares,
              std::vector<std::vector<std::string>>& rows) {
  for (const auto& [word, share] : shares) {
    rows.push_back({title, word, std::to_string(share.count), human_bytes(static_cast<double>(share.bytes))});
  }
}

std::string as_text(const std::vector<const PlanEntry*>& entries, const PlanSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(entries.size());
  for (const PlanEntry* entry : entries) {
    rows.push_back({entry->category, entry->name, std::string(to_string(entry->dtype)),
                    to_string(entry->shape), human_bytes(static_cast<double>(entry->bytes())),
                    entry->transform.name(), sources_text(*entry)});
  }
  std::string text = render_table(
      {{"category"}, {"tensor"}, {"dtype"}, {"shape"}, {"size", true}, {"transform"}, {"sources"}}, rows);
  std::vector<std::vector<std::string>> sums;
  add_sums("category", summary.by_category, sums);
  add_sums("dtype", summary.by_dtype, sums);
  add_sums("total", {{"", summary.total}}, sums);
  return text + "\n" + render_table({{"sum over"}, {""}, {"tensors", true}, {"size", true}}, sums);
}

std::vector<std::string> words_of(const std::string& list) {
  return list.empty() ? std::vector<std::string>() : split(list, ',');
}

/// Enumerates from headers: no weight is read.
int show(const Options& options) {
  hamer::BuildOptions build;
  build.policy = policy_option(options.policy).value_or(default_policy(options.backend));
  const hamer::Model model = hamer::load_model(options.model);
  const hamer::Graph graph = hamer::build(model.config, model.sources, build);
  const auto entries = select_entries(graph.plan, {words_of(options.categories), words_of(options.names)});
  const PlanSummary summary = summarise(entries);
  fmt::print("{}{}", options.json ? as_json(entries, summary, build.policy) : as_text(entries, summary),
             options.json ? "\n" : "");
  return 0;
}

std::function<int()> declare_show(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positional("MODEL", options->model,
                     "HaMeR checkpoint: the published folder, a .ckpt or a .safetensors file");
  command.option("--policy", options->policy, "Numeric policy: f64, f32 or bf16; default: the backend's own");
  command.choice("--backend", options->backend, {"cpu", "reference"}, "For which the weights are prepared");
  command.option("--categories", options->categories, "Only these, a list");
  command.option("--names", options->names, "Only these tensors, a list");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] { return show(*options); };
}

}  // namespace

std::function<int()> declare_plan(Command& command) {
  command.verb("show", "What the weights of a model become: tensors, types, sizes, sources", declare_show);
  return {};
}

}  // namespace sinew::cli

// sinew plan show MODEL
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/machine_options.h"
#include "cli/plan_build.h"
#include "cli/plan_cache.h"
#include "cli/support.h"
#include "io/text_table.h"
#include "plan/selection.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string policy;
  std::string backend = "cpu";
  std::string isa;
  std::string categories;
  std::string names;
  bool json = false;
};

Json share_json(const PlanShare& share) { return {{"count", share.count}, {"bytes", share.bytes}}; }

using FormsByName = std::map<std::string, std::vector<WeightForm>>;

/// Only of the entries.
FormsByName forms_by_name(std::vector<FormRequest> requests, const std::vector<const PlanEntry*>& entries) {
  FormsByName all, out;
  for (FormRequest& request : requests) all[request.name].push_back(std::move(request.form));
  for (const PlanEntry* entry : entries) {
    if (const auto found = all.find(entry->name); found != all.end()) out.insert(*found);
  }
  return out;
}

std::map<std::string, PlanShare> device_shares(const FormsByName& forms) {
  std::map<std::string, PlanShare> out;
  for (const auto& [name, of_weight] : forms) {
    for (const WeightForm& form : of_weight) {
      PlanShare& share = out[form.dtype];
      ++share.count;
      share.bytes += form.bytes;
    }
  }
  return out;
}

std::string_view word_of(Residence residence) { return residence == Residence::kHost ? "host" : "device"; }

Json forms_json(const FormsByName& forms, const std::string& name) {
  Json out = Json::array();
  const auto found = forms.find(name);
  if (found == forms.end()) return out;
  for (const WeightForm& form : found->second)
    out.push_back({{"dtype", form.dtype}, {"layout", form.layout}, {"bytes", form.bytes}});
  return out;
}

Json as_json(const std::vector<const PlanEntry*>& entries, const FormsByName& forms,
             const PlanSummary& summary, Policy policy, const std::string& backend) {
  Json tensors = Json::array();
  for (const PlanEntry* entry : entries) {
    Json shape = Json::array();
    for (int axis = 0; axis < entry->shape.rank(); ++axis) shape.push_back(entry->shape[axis]);
    tensors.push_back({{"name", entry->name},
                       {"category", entry->category},
                       {"dtype", to_string(entry->dtype)},
                       {"shape", std::move(shape)},
                       {"bytes", entry->bytes()},
                       {"memory", word_of(entry->residence)},
                       {"device", forms_json(forms, entry->name)},
                       {"transform", entry->transform.name()},
                       {"sources", entry->sources}});
  }
  Json json = {{"policy", to_string(policy)}, {"backend", backend}, {"total", share_json(summary.total)}};
  for (const auto& [category, share] : summary.by_category) json["by_category"][category] = share_json(share);
  for (const auto& [dtype, share] : summary.by_dtype) json["by_dtype"][dtype] = share_json(share);
  for (const auto& [dtype, share] : device_shares(forms)) json["device_by_dtype"][dtype] = share_json(share);
  json["tensors"] = std::move(tensors);
  return json;
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

/// "bf16, panels of 32" of the one form, or their number.
std::string form_text(const FormsByName& forms, const PlanEntry& entry) {
  const auto found = forms.find(entry.name);
  if (found == forms.end()) return std::string(word_of(entry.residence));
  if (found->second.size() > 1) return fmt::format("{} forms", found->second.size());
  return fmt::format("{}, {}", found->second[0].dtype, found->second[0].layout);
}

std::string as_text(const std::vector<const PlanEntry*>& entries, const FormsByName& forms,
                    const PlanSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(entries.size());
  for (const PlanEntry* entry : entries) {
    rows.push_back({entry->category, entry->name, std::string(to_string(entry->dtype)),
                    to_string(entry->shape), human_bytes(static_cast<double>(entry->bytes())),
                    form_text(forms, *entry), entry->transform.name(), sources_text(*entry)});
  }
  std::string text = render_table({{"category"},
                                   {"tensor"},
                                   {"dtype"},
                                   {"shape"},
                                   {"size", true},
                                   {"on the device"},
                                   {"transform"},
                                   {"sources"}},
                                  rows);
  std::vector<std::vector<std::string>> sums;
  add_sums("category", summary.by_category, sums);
  add_sums("dtype", summary.by_dtype, sums);
  add_sums("total", {{"", summary.total}}, sums);
  add_sums("on the device", device_shares(forms), sums);
  return text + "\n" + render_table({{"sum over"}, {""}, {"tensors", true}, {"size", true}}, sums);
}

/// Enumerates from headers: no weight is read.
int show(const Options& options) {
  const auto backend = make_backend(options.backend, {.threads = 1, .isa = parse_isa(options.isa)});
  RuntimeOptions runtime;
  runtime.policy = policy_option(options.policy);
  const PlannedHamer hamer = plan_hamer(options.model, *backend, runtime);
  const PlanFilter filter{words_of(options.categories), words_of(options.names)};
  const auto entries = select_entries(hamer.graph.plan, filter);
  const FormsByName forms = forms_by_name(forms_of(hamer.planned().program(), *backend), entries);
  const PlanSummary summary = summarise(entries);
  if (options.json) {
    print_json(as_json(entries, forms, summary, hamer.build.policy, options.backend));
  } else {
    fmt::print("{}", as_text(entries, forms, summary));
  }
  return 0;
}

std::function<int()> declare_show(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positional("MODEL", options->model,
                     "HaMeR checkpoint: the published folder, a .ckpt or a .safetensors file");
  command.option("--policy", options->policy,
                 "Numeric policy: f32, bf16 or bfp8, on the reference also f64; default: the backend's own");
  command.choice("--backend", options->backend, {"cpu", "reference"}, "For which the weights are prepared");
  declare_isa(command, options->isa);
  command.option("--categories", options->categories, "Only these, a list");
  command.option("--names", options->names, "Only these tensors, a list");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] { return show(*options); };
}

}  // namespace

std::function<int()> declare_plan(Command& command) {
  command.verb("build", "Prepare the weights of a model, so that every start is warm", declare_plan_build);
  command.verb("show", "What the weights of a model become: tensors, types, sizes, sources", declare_show);
  command.verb("list", "Prepared weights in the cache: sizes, ages, last use", declare_plan_list);
  command.verb("verify", "Read prepared weights against their checksums; exit status 1 when any is damaged",
               declare_plan_verify);
  command.verb("prune", "Remove prepared weights that are of no use, old or too many; never what is in use",
               declare_plan_prune);
  return {};
}

}  // namespace sinew::cli

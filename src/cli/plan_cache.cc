// sinew plan list|verify|prune [MODEL]
#include "cli/plan_cache.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/progress.h"
#include "cli/json_output.h"
#include "cli/quantities.h"
#include "io/printable.h"
#include "io/text_table.h"
#include "models/hamer/load.h"
#include "plan/cache.h"
#include "plan/content_digest.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::optional<std::string> model;
  std::optional<std::string> cache;
  bool json = false;
};

struct PruneOptions : Options {
  std::optional<std::string> unused_for;
  std::optional<std::string> max_size;
  bool all = false;
  bool dry_run = false;
};

std::string size_text(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::uint64_t bytes_of(const std::vector<TierInfo>& tiers) {
  std::uint64_t sum = 0;
  for (const TierInfo& tier : tiers) sum += tier.bytes;
  return sum;
}

/// What an identity says under a key, as far as it says anything.
std::string said(const TierInfo& tier, const char* key) {
  const auto at = tier.identity.find(key);
  return at == tier.identity.end() || at->second.empty() ? "?" : printable(at->second);
}

std::string backend_text(const TierInfo& tier) {
  if (said(tier, "tier") == "host") return "any";
  const std::string backend = said(tier, "backend");
  const std::string isa = said(tier, "isa");
  return backend == "?" && isa == "?" ? "?" : backend + " " + isa;
}

std::string state_text(const TierInfo& tier) {
  if (!tier.complete) return "cold: " + printable(tier.why_empty);
  return tier.in_use ? "in use" : "ready";
}

std::string age_text(FileTime time) {
  const auto age = std::chrono::system_clock::now() - time;
  return human_age(std::chrono::duration_cast<std::chrono::seconds>(age));
}

const std::vector<Column> kColumns = {
    {"kind"},       {"model"},     {"checkpoint"},      {"policy"},   {"backend"}, {"tensors", true},
    {"size", true}, {"age", true}, {"last used", true}, {"identity"}, {"state"}};

std::vector<std::string> row_of(const TierInfo& tier) {
  constexpr std::size_t kShort = 12;  // digits of a digest that tell a few plans apart
  return {said(tier, "tier"),
          said(tier, "model"),
          said(tier, "checkpoint").substr(0, kShort),
          said(tier, "policy"),
          backend_text(tier),
          std::to_string(tier.tensors),
          size_text(tier.bytes),
          age_text(tier.built),
          age_text(tier.last_used) + " ago",
          std::filesystem::path(tier.folder).filename().string().substr(0, kShort),
          state_text(tier)};
}

/// Those used last first.
void sort_by_use(std::vector<TierInfo>& tiers) {
  std::ranges::sort(tiers, [](const TierInfo& a, const TierInfo& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.folder < b.folder;
  });
}

Json json_of(const TierInfo& tier) {
  Json identity = Json::object();
  for (const auto& [key, value] : tier.identity) identity[key] = value;
  return {{"folder", tier.folder},        {"identity", std::move(identity)},
          {"tensors", tier.tensors},      {"bytes", tier.bytes},
          {"built", iso_utc(tier.built)}, {"last_used", iso_utc(tier.last_used)},
          {"complete", tier.complete},    {"damaged", tier.damaged},
          {"in_use", tier.in_use},        {"being_written", tier.being_written},
          {"why", tier.why_empty}};
}

Json json_of(const std::vector<TierInfo>& tiers) {
  Json out = Json::array();
  for (const TierInfo& tier : tiers) out.push_back(json_of(tier));
  return out;
}

/// The cache, and of its plans those that were asked for.
struct Cache {
  std::string root;
  std::optional<std::string> checkpoint;  // digest, when there is a model
  std::vector<TierInfo> tiers;

  /// Whether a tier is the model's, or there is no model.
  bool is_wanted(const TierInfo& tier) const {
    if (!checkpoint) return true;
    const auto at = tier.identity.find("checkpoint");
    return at != tier.identity.end() && at->second == *checkpoint;
  }
};

std::string digest_of_files(const std::vector<std::string>& files, const std::string& root) {
  Progress progress("reading checkpoint", bytes_of_files(files), ProgressUnit::kBytes);
  return content_digest(files, root, false, [&](std::uint64_t more) { progress.advance(more); }).hex();
}

/// Throws Error (kUsage) for a text that is there but empty: from a script it would mean everything.
void refuse_empty(const char* name, const std::optional<std::string>& text) {
  if (text && text->empty()) throw fail(ErrorCode::kUsage, "{} is empty, expected a path", name);
}

/// Every plan of the cache, and which model it is about.
Cache open_cache(const Options& options) {
  refuse_empty("MODEL", options.model);
  refuse_empty("--cache", options.cache);
  Cache cache;
  cache.root = options.cache ? *options.cache : cache_root();
  cache.tiers = list_tiers(cache.root);
  if (!options.model) return cache;
  const std::vector<std::string> files = hamer::model_files(hamer::load_model(*options.model));
  // Without plans there is nothing to tell apart, and gigabytes not to read.
  cache.checkpoint = cache.tiers.empty() ? "" : digest_of_files(files, cache.root);
  return cache;
}

/// "1 plan", "3 plans of MODEL".
std::string plans_text(std::size_t count, const Options& options) {
  const std::string plans = fmt::format("{} plan{}", count, count == 1 ? "" : "s");
  return options.model ? fmt::format("{} of {}", plans, printable(*options.model)) : plans;
}

void print_nothing(const Cache& cache, const Options& options) {
  std::error_code ignored;
  const bool missing = !std::filesystem::exists(cache.root, ignored);
  fmt::print("{} in {}{}\n", plans_text(0, options), printable(cache.root),
             missing ? ": no such folder" : "");
}

// -- list

int list(const Options& options) {
  Cache cache = open_cache(options);
  std::erase_if(cache.tiers, [&](const TierInfo& tier) { return !cache.is_wanted(tier); });
  sort_by_use(cache.tiers);
  const std::uint64_t bytes = bytes_of(cache.tiers);
  if (options.json) {
    print_json({{"cache", cache.root},
                {"plans", json_of(cache.tiers)},
                {"total", {{"count", cache.tiers.size()}, {"bytes", bytes}}}});
    return 0;
  }
  if (cache.tiers.empty()) {
    print_nothing(cache, options);
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(cache.tiers.size());
  for (const TierInfo& tier : cache.tiers) rows.push_back(row_of(tier));
  fmt::print("{}\n{}, {} in {}\n", render_table(kColumns, rows), plans_text(cache.tiers.size(), options),
             size_text(bytes), printable(cache.root));
  return 0;
}

// -- verify

std::string_view verdict(const TierCheck& check) {
  if (!check.damages.empty()) return "damaged";
  return check.tier.complete ? "whole" : "cold";
}

struct Verified {
  std::vector<TierCheck> checks;
  std::size_t count(std::string_view word) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(checks, [&](const TierCheck& check) { return verdict(check) == word; }));
  }
};

void print_verified_json(const Cache& cache, const Verified& verified) {
  Json plans = Json::array();
  for (const TierCheck& check : verified.checks) {
    Json plan = json_of(check.tier);
    plan["state"] = verdict(check);
    plan["damages"] = Json::array();
    for (const Damage& damage : check.damages) {
      plan["damages"].push_back({{"path", damage.path},
                                 {"tensor", damage.key.name},
                                 {"variant", damage.key.variant},
                                 {"reason", damage.reason}});
    }
    plans.push_back(std::move(plan));
  }
  print_json({{"cache", cache.root},
              {"plans", std::move(plans)},
              {"whole", verified.count("whole")},
              {"cold", verified.count("cold")},
              {"damaged", verified.count("damaged")}});
}

void print_verified(const Cache& cache, const Options& options, const Verified& verified) {
  for (const TierCheck& check : verified.checks) {
    for (const Damage& damage : check.damages) {
      const std::string tensor = to_string(damage.key);
      fmt::print("{}: {}{}\n", printable(damage.path, std::string::npos),
                 tensor.empty() ? "" : fmt::format("tensor '{}': ", printable(tensor)),
                 printable(damage.reason));
    }
    if (verdict(check) == "cold")
      fmt::print("{}: {}\n", printable(check.tier.folder, std::string::npos), state_text(check.tier));
  }
  std::uint64_t bytes = 0;
  for (const TierCheck& check : verified.checks) bytes += check.tier.complete ? check.tier.bytes : 0;
  fmt::print("{} in {}: {} whole, {} cold, {} damaged; {} read\n",
             plans_text(verified.checks.size(), options), printable(cache.root), verified.count("whole"),
             verified.count("cold"), verified.count("damaged"), size_text(bytes));
  if (verified.count("damaged") == 0) return;
  fmt::print("the next start makes damaged tensors again; or run: sinew plan build {}\n",
             printable(options.model.value_or("MODEL")));
}

int verify(const Options& options) {
  Cache cache = open_cache(options);
  // Of what is damaged or unfinished nobody may know whose it is: it could be this model's.
  std::erase_if(cache.tiers,
                [&](const TierInfo& tier) { return !cache.is_wanted(tier) && !tier.identity.empty(); });
  sort_by_use(cache.tiers);
  Verified verified;
  {
    Progress progress("verifying", bytes_of(cache.tiers), ProgressUnit::kBytes);
    for (const TierInfo& tier : cache.tiers)
      verified.checks.push_back(check_tier(tier, [&](std::uint64_t more) { progress.advance(more); }));
  }
  if (options.json) {
    print_verified_json(cache, verified);
  } else if (cache.tiers.empty()) {
    print_nothing(cache, options);
  } else {
    print_verified(cache, options, verified);
  }
  return verified.count("damaged") == 0 ? 0 : 1;
}

// -- prune

PruneRule rule_of(const PruneOptions& options) {
  PruneRule rule;
  if (options.unused_for) rule.unused_for = parse_duration("--unused-for", *options.unused_for);
  if (options.max_size) rule.total_bytes = parse_bytes("--max-size", *options.max_size);
  if (options.all) {
    if (rule.unused_for || rule.total_bytes)
      throw Error(ErrorCode::kUsage, "--all leaves nothing for --unused-for and --max-size to choose",
                  "give --all alone, or without it");
    rule.total_bytes = 0;
  }
  rule.dry_run = options.dry_run;
  return rule;
}

void print_pruned_json(const Cache& cache, const PruneOptions& options, const PruneResult& result) {
  Json failed = Json::array();
  for (const auto& [tier, reason] : result.failed) {
    failed.push_back(json_of(tier));
    failed.back()["error"] = reason;
  }
  print_json({{"cache", cache.root},
              {"dry_run", options.dry_run},
              {"removed", json_of(result.removed)},
              {"removed_bytes", bytes_of(result.removed)},
              {"in_use", json_of(result.in_use)},
              {"failed", std::move(failed)}});
}

void print_pruned(const Cache& cache, const PruneOptions& options, const PruneResult& result) {
  std::vector<Column> columns = kColumns;
  columns.insert(columns.begin(), {""});
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* word, const TierInfo& tier) {
    rows.push_back(row_of(tier));
    rows.back().insert(rows.back().begin(), word);
  };
  for (const TierInfo& tier : result.removed) add(options.dry_run ? "would go" : "removed", tier);
  for (const TierInfo& tier : result.in_use) add("stays: in use", tier);
  for (const auto& [tier, reason] : result.failed) add("failed", tier);
  if (!rows.empty()) fmt::print("{}\n", render_table(columns, rows));
  fmt::print("{} {}, {} in {}", options.dry_run ? "would remove" : "removed",
             plans_text(result.removed.size(), options), size_text(bytes_of(result.removed)),
             printable(cache.root));
  if (!result.in_use.empty())
    fmt::print("; {} in use stay{}", result.in_use.size(), result.in_use.size() == 1 ? "s" : "");
  if (!result.failed.empty()) fmt::print("; {} failed", result.failed.size());
  fmt::print("\n");
}

int prune_plans(const PruneOptions& options) {
  PruneRule rule = rule_of(options);
  const Cache cache = open_cache(options);
  rule.only = [&](const TierInfo& tier) { return cache.is_wanted(tier); };
  const PruneResult result = prune(cache.root, rule);
  if (options.json) {
    print_pruned_json(cache, options, result);
  } else {
    print_pruned(cache, options, result);
  }
  for (const auto& [tier, reason] : result.failed)
    fmt::print(stderr, "sinew: error: {}: {}\n", printable(tier.folder, std::string::npos),
               printable(reason));
  return result.failed.empty() ? 0 : 1;
}

void declare_common(Command& command, Options& options) {
  command.positional("MODEL", options.model, "Only plans of this HaMeR checkpoint: folder or file");
  command.option("--cache", options.cache, "Folder of the cache; default: where sinew keeps it");
  command.flag("--json", options.json, "Print one JSON object");
}

}  // namespace

std::function<int()> declare_plan_list(Command& command) {
  const auto options = std::make_shared<Options>();
  declare_common(command, *options);
  return [options] { return list(*options); };
}

std::function<int()> declare_plan_verify(Command& command) {
  const auto options = std::make_shared<Options>();
  declare_common(command, *options);
  return [options] { return verify(*options); };
}

std::function<int()> declare_plan_prune(Command& command) {
  const auto options = std::make_shared<PruneOptions>();
  declare_common(command, *options);
  command.option("--unused-for", options->unused_for,
                 "Remove what was not used for this long: 90s, 15m, 12h, 30d, 2w");
  command.option("--max-size", options->max_size,
                 "Remove what was not used for longest until this much is left: 500MB, 20GB, 16GiB");
  command.flag("--all", options->all, "Remove everything that is not in use");
  command.flag("--dry-run", options->dry_run, "Say what would go and remove nothing");
  return [options] { return prune_plans(*options); };
}

}  // namespace sinew::cli

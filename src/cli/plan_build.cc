#include "cli/plan_build.h"

#include <fmt/format.h>

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "cli/cache_options.h"
#include "cli/machine_options.h"
#include "cli/support.h"
#include "plan/cache.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

struct Options {
  std::string model;
  std::string policy;
  std::string backend = "cpu";
  std::string isa;
  std::string input = "f32";
  std::string categories;
  std::string names;
  std::string verify = "changed";
  bool force = false;
  bool json = false;
};

int build(const Options& options) {
  const Stopwatch watch;
  CacheOptions cache;
  cache.root = cache_root();
  cache.force = options.force;
  cache.verify_full = options.verify == "full";
  RuntimeOptions runtime;
  runtime.policy = policy_option(options.policy);
  runtime.u8_input = options.input == "u8";
  const auto backend = make_backend(options.backend, {.threads = 1, .isa = parse_isa(options.isa)});
  const PlannedHamer hamer = plan_hamer(options.model, *backend, runtime);
  const PlanFilter filter{words_of(options.categories), words_of(options.names)};
  LoadStatistics statistics = build_plan(hamer.planned(), *backend, cache, filter, progress_observer());
  statistics.total_s = watch.elapsed_ms() / 1e3;
  if (options.json) {
    fmt::print("{}\n", to_json(statistics));
  } else {
    fmt::print("{}, policy {}: {}\n{}\n", hamer::describe(hamer.model), to_string(hamer.build.policy),
               summary(statistics), statistics.device_folder);
  }
  return 0;
}

}  // namespace

std::function<int()> declare_plan_build(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positional("MODEL", options->model,
                     "HaMeR checkpoint: the published folder, a .ckpt or a .safetensors file");
  command.option("--policy", options->policy,
                 "Numeric policy: f32, bf16 or bfp8; default: the fastest that meets its accuracy bar here");
  command.choice("--backend", options->backend, {"cpu", "reference"},
                 "For which the weights are prepared; the reference computes with them as they are");
  command.choice("--input", options->input, {"f32", "u8"}, "As in sinew hands");
  declare_isa(command, options->isa);
  command.option("--categories", options->categories, "Only these, a list");
  command.option("--names", options->names, "Only these tensors, a list");
  command.flag("--force", options->force, "Prepare all weights again, whatever the cache holds");
  command.choice("--verify", options->verify, {"changed", "full"},
                 "Check files that were written or touched since the last check, or the checkpoint and all");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] { return build(*options); };
}

}  // namespace sinew::cli

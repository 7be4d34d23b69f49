// sinew bench start MODEL: one start of a model and its first runs, in this process.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "cli/bench.h"
#include "cli/cache_options.h"
#include "cli/json_output.h"
#include "cli/support.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

struct Options : BenchOptions {
  CacheWords cache;
};

/// The same noise each time, in the range of normalised pixels: zeros would make denormals of nothing.
void fill_with_noise(Session& session) {
  const std::span<std::byte> image = session.input("image");
  std::mt19937 random(1);
  std::normal_distribution<float> pixel;
  auto* const values = reinterpret_cast<float*>(image.data());
  for (std::size_t i = 0; i < image.size() / sizeof(float); ++i) values[i] = pixel(random);
}

double run_ms(Session& session) {
  const Stopwatch watch;
  session.run();
  return watch.elapsed_ms();
}

int start(const Options& options) {
  if (options.runs < 1) throw fail(ErrorCode::kUsage, "--runs {}: expected at least 1", options.runs);
  const Stopwatch watch;
  RuntimeOptions runtime_options;
  runtime_options.policy = policy_option(options.policy);
  runtime_options.machine = machine_options(options.machine);
  runtime_options.cache = cache_options(options.cache);
  runtime_options.observer = progress_observer();
  HamerRuntime runtime = open_hamer(options.model, runtime_options);
  const double ready_s = watch.elapsed_ms() / 1e3;
  const std::size_t peak_at_start = peak_resident_bytes();
  fill_with_noise(*runtime.session);
  const double first_ms = run_ms(*runtime.session);
  std::vector<double> steady(static_cast<std::size_t>(options.runs));
  for (double& ms : steady) ms = run_ms(*runtime.session);
  std::ranges::sort(steady);
  const nlohmann::ordered_json json = {{"model", runtime.description},
                                       {"policy", to_string(runtime.policy)},
                                       {"backend", runtime.backend},
                                       {"ready_s", ready_s},
                                       {"first_run_ms", first_ms},
                                       {"steady_run_ms", steady[steady.size() / 2]},
                                       {"rss_mb", static_cast<double>(resident_bytes()) / 1e6},
                                       {"peak_rss_at_start_mb", static_cast<double>(peak_at_start) / 1e6},
                                       {"load", nlohmann::ordered_json::parse(to_json(runtime.statistics))}};
  print_json(json);
  return 0;
}

}  // namespace

void declare_start(Command& command, BenchOptions& options) {
  command.positional("MODEL", options.model,
                     "HaMeR checkpoint: the published folder, a .ckpt or a .safetensors file");
  command.option("--policy", options.policy,
                 "Numeric policy: f32, bf16 or bfp8; default: the fastest that meets its accuracy bar here");
  declare_machine(command, options.machine);
  command.option("--runs", options.runs, "Runs of a start after its first; the median counts");
}

std::function<int()> declare_bench_start(Command& command) {
  const auto options = std::make_shared<Options>();
  declare_start(command, *options);
  declare_cache(command, options->cache);
  return [options] { return start(*options); };
}

}  // namespace sinew::cli

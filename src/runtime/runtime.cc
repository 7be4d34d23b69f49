#include "runtime/runtime.h"

#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"

namespace sinew {

std::unique_ptr<Backend> make_backend(const std::string& name, int threads) {
  if (threads == 0) threads = available_cpus();
  if (name == "cpu") return make_cpu_backend(threads);
  if (name == "reference") return make_reference_backend(threads);
  throw fail(ErrorCode::kUsage, "no backend is called {}; there are cpu and reference", name);
}

Policy default_policy(const std::string& backend) {
  if (backend == "reference") return Policy::kF64;
  return cpu_prefers_bf16() ? Policy::kBF16 : Policy::kF32;
}

HamerRuntime open_hamer(const std::string& path, const RuntimeOptions& options) {
  return open_hamer(path, *make_backend(options.backend, options.threads), options);
}

HamerRuntime open_hamer(const std::string& path, Backend& backend, const RuntimeOptions& options) {
  const Stopwatch watch;
  HamerRuntime runtime;
  runtime.backend = backend.describe();
  runtime.policy = options.policy.value_or(default_policy(std::string(backend.name())));
  const hamer::Model model = hamer::load_model(path);
  runtime.description = hamer::describe(model);
  runtime.config = model.config;
  hamer::BuildOptions build;
  build.policy = runtime.policy;
  build.form = options.form;
  build.u8_input = options.u8_input;
  build.trace = options.trace;
  hamer::Graph graph = hamer::build(model.config, model.sources, build);
  runtime.outputs = std::move(graph.outputs);
  PlanWeights weights(graph.plan, model.sources);
  runtime.session = backend.compile(std::move(graph.program), weights);
  runtime.load_ms = watch.elapsed_ms();
  log(LogLevel::kInfo, "{}: {} policy {} on {}, weights {:.2f} GB, arena {:.1f} MB, {:.0f} ms",
      model.checkpoint_path, runtime.description, to_string(runtime.policy), runtime.backend,
      static_cast<double>(runtime.session->weight_bytes()) / 1e9,
      static_cast<double>(runtime.session->arena_bytes()) / 1e6, runtime.load_ms);
  return runtime;
}

}  // namespace sinew

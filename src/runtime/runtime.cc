#include "runtime/runtime.h"

#include <fmt/format.h>

#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"

namespace sinew {

std::unique_ptr<Backend> make_backend(const std::string& name, const MachineOptions& machine) {
  if (name == "cpu") return make_cpu_backend(machine);
  if (name == "reference") {
    if (machine.isa)
      throw fail(ErrorCode::kUnsupported, "backend reference has no instruction sets to choose");
    return make_reference_backend(machine.threads == 0 ? available_cpus() : machine.threads);
  }
  throw fail(ErrorCode::kUsage, "no backend is called {}; there are cpu and reference", name);
}

Policy default_policy(const Backend& backend) {
  const DType operand = backend.preferred_operand();
  if (operand == DType::kF64) return Policy::kF64;
  return operand == DType::kBF16 ? Policy::kBF16 : Policy::kF32;
}

HamerRuntime open_hamer(const std::string& path, const RuntimeOptions& options) {
  return open_hamer(path, *make_backend(options.backend, options.machine), options);
}

PlannedHamer plan_hamer(const std::string& path, const Backend& backend, const RuntimeOptions& options) {
  PlannedHamer out;
  out.model = hamer::load_model(path);
  out.build.policy = options.policy.value_or(default_policy(backend));
  out.build.form = options.form;
  out.build.u8_input = options.u8_input;
  out.build.trace = options.trace;
  out.graph = hamer::build(out.model.config, out.model.sources, out.build);
  return out;
}

PlannedModel PlannedHamer::planned() const {
  // A trace has more weights and the same ones.
  const std::string options =
      fmt::format("{} form, {} input", build.form == hamer::Form::kFused ? "fused" : "plain",
                  build.u8_input ? "u8" : "f32");
  Identity facts = {{"model", "hamer"},
                    {"policy", std::string(to_string(build.policy))},
                    {"options", options},
                    {"embodiment", "none"}};
  return {graph.plan, model.sources, {hamer::model_files(model), std::move(facts)}, [this] {
            return hamer::build(model.config, model.sources, build).program;
          }};
}

HamerRuntime open_hamer(const std::string& path, Backend& backend, const RuntimeOptions& options) {
  const Stopwatch watch;
  PlannedHamer hamer = plan_hamer(path, backend, options);
  HamerRuntime runtime;
  runtime.backend = backend.describe();
  runtime.policy = hamer.build.policy;
  runtime.description = hamer::describe(hamer.model);
  runtime.config = hamer.model.config;
  PreparedSession prepared = open_prepared(hamer.planned(), backend, options.cache, options.observer);
  runtime.outputs = std::move(hamer.graph.outputs);
  runtime.session = std::move(prepared.session);
  runtime.weights = std::move(prepared.weights);
  runtime.statistics = prepared.statistics;
  runtime.statistics.total_s = watch.elapsed_ms() / 1e3;
  log(LogLevel::kInfo, "{}: {} policy {} on {}, weights {:.2f} GB, arena {:.1f} MB; {}",
      hamer.model.checkpoint_path, runtime.description, to_string(runtime.policy), runtime.backend,
      static_cast<double>(runtime.session->weight_bytes()) / 1e9,
      static_cast<double>(runtime.session->arena_bytes()) / 1e6, summary(runtime.statistics));
  return runtime;
}

}  // namespace sinew

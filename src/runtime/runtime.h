// Where a model meets a backend: the one room, beside the edges that use it, that knows both.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/machine.h"
#include "models/hamer/load.h"
#include "models/hamer/program.h"
#include "runtime/prepared_session.h"

namespace sinew {

struct RuntimeOptions {
  std::string backend = "cpu";   // or "reference"
  std::optional<Policy> policy;  // nothing: default_policy()
  MachineOptions machine;        // threads, instruction set
  hamer::Form form = hamer::Form::kFused;
  bool u8_input = false;
  bool trace = false;
  CacheOptions cache;  // by default nothing is kept
  LoadObserver observer;
};

/// Throws Error: kUsage for an unknown backend or a senseless thread count; as make_cpu_backend();
/// kUnsupported for an instruction set asked of the reference.
std::unique_ptr<Backend> make_backend(const std::string& name, const MachineOptions& machine = {});

/// The fastest policy whose accuracy bar is met (docs/NUMERICS.md): cpu: bf16 where the processor multiplies
/// bf16 natively, else f32; reference: f64.
Policy default_policy(const Backend& backend);

/// A HaMeR checkpoint compiled and resident.
struct HamerRuntime {
  std::string description;  // of the model
  std::string backend;      // of the backend, as it describes itself
  hamer::Config config;
  Policy policy = Policy::kF32;
  std::vector<hamer::NamedOutput> outputs;
  std::unique_ptr<Session> session;
  std::shared_ptr<Residency> weights;
  LoadStatistics statistics;
};

/// A HaMeR checkpoint planned for a backend; only headers were read.
struct PlannedHamer {
  hamer::Model model;
  hamer::BuildOptions build;
  hamer::Graph graph;

  /// Refers to this object.
  PlannedModel planned() const;
};
/// Throws Error as load_model and hamer::build do. Of `options`, backend, machine, cache and observer do not
/// count.
PlannedHamer plan_hamer(const std::string& path, const Backend& backend, const RuntimeOptions& options);

/// Throws Error as make_backend, load_model, hamer::build and Backend::compile do.
HamerRuntime open_hamer(const std::string& path, const RuntimeOptions& options);
/// The same on a backend that others use too; `options.backend` and `options.machine` do not count.
HamerRuntime open_hamer(const std::string& path, Backend& backend, const RuntimeOptions& options);

}  // namespace sinew

// Sessions over weights that are prepared once.
#pragma once

#include <functional>
#include <memory>

#include "backend/backend.h"
#include "plan/prepared_weights.h"

namespace sinew {

/// A model as a program and the plan of its weights. All must outlive the call they are given to.
struct PlannedModel {
  const Plan& plan;
  const Sources& sources;
  PlanOrigin origin;
  std::function<Program()> program;  // makes it; called once or twice
};

struct PreparedSession {
  std::unique_ptr<Session> session;
  std::shared_ptr<Residency> weights;
  LoadStatistics statistics;  // all but total_s
};

/// Compiles a model over weights from the cache, or over weights that are made, and kept where they can be. A
/// cache that cannot be written is told in the log and in the statistics. Throws Error as content_digest(),
/// the transforms and Backend::compile() do.
PreparedSession open_prepared(const PlannedModel& model, Backend& backend, const CacheOptions& cache,
                              const LoadObserver& observer = {});

/// What the backend would ask for. Reads no weight.
std::vector<FormRequest> forms_of(Program program, Backend& backend);

/// Makes what is missing of a model's prepared weights, as far as `filter` names it, and no session. Throws
/// Error as open_prepared(), and kIo when it cannot be written (kUsage without a cache), kUnsupported for a
/// backend that keeps no forms.
LoadStatistics build_plan(const PlannedModel& model, Backend& backend, const CacheOptions& cache,
                          const PlanFilter& filter = {}, const LoadObserver& observer = {});

}  // namespace sinew

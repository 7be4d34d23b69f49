#include "runtime/prepared_session.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace sinew {

std::vector<FormRequest> forms_of(Program program, Backend& backend) {
  FormList list;
  backend.compile(std::move(program), list);
  return list.requests();
}

PreparedSession open_prepared(const PlannedModel& model, Backend& backend, const CacheOptions& cache,
                              const LoadObserver& observer) {
  PreparedWeights weights(model.plan, model.sources, model.origin, backend.weight_identity(), cache,
                          observer);
  if (weights.wants_build()) {
    try {
      weights.build(forms_of(model.program(), backend));
    } catch (const Error& error) {
      // A full disk keeps nobody from working; anything else would come again.
      if (error.code() != ErrorCode::kIo) throw;
      log(LogLevel::kWarning, "prepared weights are not kept: {}", error.what());
    }
  }
  PreparedSession out;
  out.session = backend.compile(model.program(), weights);
  weights.finish();
  out.weights = weights.residency();
  out.statistics = weights.statistics();
  return out;
}

LoadStatistics build_plan(const PlannedModel& model, Backend& backend, const CacheOptions& cache,
                          const PlanFilter& filter, const LoadObserver& observer) {
  if (cache.root.empty()) throw fail(ErrorCode::kUsage, "there is no cache to build a plan in");
  const Identity device = backend.weight_identity();
  if (device.empty()) {
    throw fail(ErrorCode::kUnsupported, "backend {} computes with weights as they are: nothing to build",
               backend.name());
  }
  PreparedWeights weights(model.plan, model.sources, model.origin, device, cache, observer);
  weights.build(forms_of(model.program(), backend), filter);
  LoadStatistics statistics = weights.statistics();
  if (!statistics.not_kept.empty())
    throw Error(ErrorCode::kIo, statistics.not_kept, "choose another SINEW_CACHE");
  return statistics;
}

}  // namespace sinew

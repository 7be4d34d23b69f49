#include "plan/host_plan.h"

#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace sinew {

HostPlan::HostPlan(const Plan& plan, const Sources& sources, std::shared_ptr<Tier> tier,
                   LoadStatistics& statistics)
    : plan_(plan),
      sources_(sources),
      weights_(plan, sources),
      tier_(std::move(tier)),
      statistics_(statistics) {}

const PlanEntry& HostPlan::entry(const std::string& name) const {
  const auto found = plan_.entries().find(name);
  if (found == plan_.entries().end()) throw fail(ErrorCode::kMismatch, "the plan has no tensor {}", name);
  return found->second;
}

std::vector<TierKey> HostPlan::keys() const {
  std::vector<TierKey> out;
  for (const auto& [name, planned] : plan_.entries()) {
    if (!weights_.is_stored(planned)) out.push_back({name, {}});
  }
  return out;
}

std::uint64_t HostPlan::bytes_to_write(const std::string& name, bool force) const {
  const PlanEntry& planned = entry(name);
  if (tier_ == nullptr || weights_.is_stored(planned)) return 0;
  return !force && tier_->info({name, {}}) ? 0 : planned.bytes();
}

std::optional<TensorView> HostPlan::find(const std::string& name) {
  if (tier_ == nullptr || written_.contains(name) || (keeping_ && force_)) return std::nullopt;
  const Stopwatch watch;
  std::optional<TensorView> found = tier_->find({name, {}});
  statistics_.find_s += watch.elapsed_ms() / 1e3;
  return found;
}

TensorView HostPlan::load(const std::string& name, DType dtype, const Shape& shape) {
  const PlanEntry& planned = entry(name);
  if (weights_.is_stored(planned)) {
    statistics_.in_place += counted_.insert(name).second ? 1 : 0;
    return weights_.load(name, dtype, shape);
  }
  if (const auto found = find(name); found && found->dtype == dtype && found->shape == shape) {
    statistics_.host_warm += counted_.insert(name).second ? 1 : 0;
    return *found;
  }
  Stopwatch watch;
  const TensorView made = weights_.load(name, dtype, shape);
  statistics_.make_s += watch.lap_ms() / 1e3;
  statistics_.host_cold += counted_.insert(name).second ? 1 : 0;
  statistics_.host_bytes_made += made.bytes();
  if (keeping_ && written_.insert(name).second) {
    tier_->put({name, {}}, made);
    statistics_.write_s += watch.elapsed_ms() / 1e3;
  }
  if (!keeping_ && tier_ != nullptr) unkept_.insert(name);
  return made;
}

void HostPlan::release(const std::string& name) {
  weights_.release(name);
  if (tier_ != nullptr) tier_->release({name, {}});
}

std::pair<TensorView, std::shared_ptr<const void>> HostPlan::load_lasting(const std::string& name) {
  const PlanEntry& planned = entry(name);
  const TensorView view = load(name, planned.dtype, planned.shape);
  if (weights_.is_stored(planned)) return {view, sources_.entries().at(planned.sources.at(0)).owner};
  if (const auto found = find(name); found && found->data == view.data) return {view, tier_};
  auto copy = std::make_shared<const Tensor>(convert(view, planned.dtype));
  weights_.release(name);
  return {copy->view(), copy};
}

void HostPlan::begin_keeping(std::shared_ptr<Tier> tier, bool force) {
  tier_ = std::move(tier);
  keeping_ = true;
  force_ = force;
  unkept_.clear();
}

void HostPlan::end_keeping() {
  keeping_ = false;
  const Stopwatch watch;
  tier_->finish(keys());
  written_.clear();
  statistics_.write_s += watch.elapsed_ms() / 1e3;
}

}  // namespace sinew

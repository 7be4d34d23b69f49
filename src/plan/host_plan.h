// Plan tensors as the host has them: from the checkpoint in place, from the host tier, or made.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/load_statistics.h"
#include "plan/lock.h"
#include "plan/plan.h"
#include "plan/tier.h"

namespace sinew {

class HostPlan {
 public:
  /// `tier` may be null: nothing is kept. All else must outlive the object.
  HostPlan(const Plan& plan, const Sources& sources, std::shared_ptr<Tier> tier, LoadStatistics& statistics);

  /// What the tier has to hold: everything that the checkpoint does not.
  std::vector<TierKey> keys() const;
  /// Bytes of a tensor that the tier would have to take; 0 when it has it, or need not.
  std::uint64_t bytes_to_write(const std::string& name, bool force) const;

  /// As WeightSource.
  TensorView load(const std::string& name, DType dtype, const Shape& shape);
  void release(const std::string& name);
  /// A tensor, and whatever keeps its memory beyond release().
  std::pair<TensorView, std::shared_ptr<const void>> load_lasting(const std::string& name);

  /// From here on what load() makes is written, by this process alone; `tier` is the host tier as it is now
  /// that the lock is held. `force`: what it holds does not count.
  void begin_keeping(std::shared_ptr<Tier> tier, bool force);
  /// The tier is what was in it and what was made.
  void end_keeping();
  /// Names of what was made and is not in the tier, though there is one.
  std::vector<std::string> unkept() const { return {unkept_.begin(), unkept_.end()}; }
  /// After a failure: nothing is written from here on.
  void stop_keeping() { keeping_ = false; }

 private:
  const PlanEntry& entry(const std::string& name) const;
  std::optional<TensorView> find(const std::string& name);

  const Plan& plan_;
  const Sources& sources_;
  PlanWeights weights_;
  std::shared_ptr<Tier> tier_;
  LoadStatistics& statistics_;
  bool keeping_ = false;
  bool force_ = false;
  std::set<std::string> written_;
  std::set<std::string> unkept_;
  std::set<std::string> counted_;  // in the statistics: each tensor once
};

}  // namespace sinew

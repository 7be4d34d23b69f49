// The weights of one plan for one backend: found in the cache, or made and kept there.
//
// A cold start asks the backend what it wants (FormList), makes and writes one form after the other
// (build()), and then starts warm; so it needs memory for one weight and not for the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/forms.h"
#include "plan/host_plan.h"
#include "plan/load_statistics.h"
#include "plan/residency.h"
#include "plan/selection.h"

namespace sinew {

/// Where prepared weights are kept, and how they are looked at.
struct CacheOptions {
  std::string root;          // cache_root(); empty: nothing is kept
  bool force = false;        // makes everything again, whatever is there
  bool verify_full = false;  // reads the checkpoint and every file against their digests
  bool prefault = false;     // reads all pages at the start, so that the first run does not wait for them
};

/// What a plan was made of, beside the code.
struct PlanOrigin {
  std::vector<std::string> files;  // whose bytes count: checkpoint, configuration
  Identity facts;                  // model, policy, options, embodiment
};

/// Is told how far a long start has come.
struct LoadObserver {
  std::function<void(std::string_view phase, std::uint64_t bytes)> begin;
  std::function<void(std::uint64_t bytes)> advance;  // since the last call
  std::function<void()> end;
};

/// Bumped whenever any transform makes other bytes of the same checkpoint.
inline constexpr std::string_view kTransformVersion = "1";

/// Serves one start: made, perhaps built, compiled with, finished.
class PreparedWeights final : public WeightSource {
 public:
  /// `plan` and `sources` must outlive the object; `device` is Backend::weight_identity(), when empty no
  /// device tier is kept, and found or made are plan tensors. Throws Error as content_digest().
  PreparedWeights(const Plan& plan, const Sources& sources, const PlanOrigin& origin, const Identity& device,
                  CacheOptions options, LoadObserver observer = {}, FileLayer& files = system_files());
  ~PreparedWeights() override;

  /// True when build() is worth its while: the device tier can be written and is not there, or is not to be
  /// used.
  bool wants_build() const;
  /// Makes and writes what is missing of `requests` (all that the backend asks for) as far as `filter` names
  /// it, and the host's tensors; waits while another process does the same. Peak memory is that of the
  /// largest weight. Throws Error: kIo (no space: needed and free; or a write failed), or what the transforms
  /// throw; what is on disk is then cold or as it was, and the object works on as if nothing could be
  /// written.
  void build(const std::vector<FormRequest>& requests, const PlanFilter& filter = {});

  TensorView load(const std::string& name, DType dtype, const Shape& shape) override;
  void release(const std::string& name) override;
  ResidentBytes resident(const std::string& name, DType dtype, const Shape& shape, const WeightForm& form,
                         const MakeForm& make) override;

  /// After compile(): loads the tensors that stay on the host, and writes anew what was missing or damaged.
  /// A failure to write is told in the log and in statistics(), not thrown.
  void finish();

  LoadStatistics statistics() const;
  const std::shared_ptr<Residency>& residency() const { return residency_; }

 private:
  struct Lacking {
    TierKey key;
    ResidentBytes data;
    std::size_t bytes = 0;
  };
  struct Job;  // one build()

  void open_tiers(const PlanOrigin& origin, const Identity& device);
  std::shared_ptr<Tier> open_tier(const Identity& identity);
  std::string digest(const std::vector<std::string>& paths);
  void begin(Job& job, const std::vector<FormRequest>& requests, const PlanFilter& filter);
  void write(const Job& job);
  /// Null when the tier has no such file, or not whole.
  ResidentBytes find(const TierKey& key, std::size_t bytes);
  AlignedBuffer make(const FormRequest& request);
  void count(const TierKey& key, std::size_t bytes, std::size_t& sum);
  void repair();
  void repair_host();
  std::size_t damages() const;
  const Tier& last_tier() const;

  const Plan& plan_;
  CacheOptions options_;
  LoadObserver observer_;
  FileLayer& files_;
  LoadStatistics statistics_;
  Identity host_identity_, device_identity_;
  std::shared_ptr<Tier> host_tier_, device_tier_;
  std::unique_ptr<HostPlan> host_;
  std::shared_ptr<Residency> residency_;
  bool ignore_tiers_ = false;  // forced, and not built yet
  bool may_keep_ = false;
  std::set<TierKey> counted_;  // in the statistics
  std::vector<Lacking> lacking_;
};

}  // namespace sinew

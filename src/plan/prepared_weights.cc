#include "plan/prepared_weights.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/cache.h"
#include "plan/content_digest.h"

namespace sinew {
namespace {

/// Adds the time until its end to a sum of seconds.
class Clocked {
 public:
  explicit Clocked(double& seconds) : seconds_(seconds) {}
  ~Clocked() { seconds_ += watch_.elapsed_ms() / 1e3; }
  Clocked(const Clocked&) = delete;
  Clocked& operator=(const Clocked&) = delete;

 private:
  double& seconds_;
  Stopwatch watch_;
};

}  // namespace

/// What one build() holds on to while it writes.
struct PreparedWeights::Job {
  std::vector<const FormRequest*> missing;
  std::vector<std::string> host_only;
  std::vector<TierKey> keep;
  std::uint64_t bytes = 0;  // of the missing forms
  std::optional<TierLock> device_lock, host_lock;
};

PreparedWeights::PreparedWeights(const Plan& plan, const Sources& sources, const PlanOrigin& origin,
                                 const Identity& device, CacheOptions options, LoadObserver observer,
                                 FileLayer& files)
    : plan_(plan),
      options_(std::move(options)),
      observer_(std::move(observer)),
      files_(files),
      residency_(std::make_shared<Residency>(plan)),
      ignore_tiers_(options_.force) {
  statistics_.forced = options_.force;
  if (!options_.root.empty()) open_tiers(origin, device);
  host_ = std::make_unique<HostPlan>(plan, sources, host_tier_, statistics_);
}

PreparedWeights::~PreparedWeights() = default;

void PreparedWeights::open_tiers(const PlanOrigin& origin, const Identity& device) {
  host_identity_ = origin.facts;
  host_identity_["checkpoint"] = digest(origin.files);
  host_identity_["transforms"] = kTransformVersion;
  device_identity_ = host_identity_;
  host_identity_["tier"] = "host";
  host_tier_ = open_tier(host_identity_);
  statistics_.host_folder = host_tier_->folder();
  may_keep_ = !host_tier_->read_only();
  if (device.empty()) return;
  device_identity_.insert(device.begin(), device.end());
  device_identity_["tier"] = "device";
  device_tier_ = open_tier(device_identity_);
  statistics_.device_folder = device_tier_->folder();
  may_keep_ = !device_tier_->read_only();
}

std::string PreparedWeights::digest(const std::vector<std::string>& paths) {
  const Clocked clocked(statistics_.identity_s);
  // Only a checkpoint that has to be read has a progress to show.
  bool begun = false;
  const auto progress = [&](std::uint64_t bytes) {
    if (!std::exchange(begun, true) && observer_.begin)
      observer_.begin("reading checkpoint", bytes_of_files(paths));
    if (observer_.advance) observer_.advance(bytes);
  };
  const Digest found = content_digest(paths, options_.root, options_.verify_full, progress, files_);
  if (begun && observer_.end) observer_.end();
  return found.hex();
}

std::shared_ptr<Tier> PreparedWeights::open_tier(const Identity& identity) {
  const Clocked clocked(statistics_.open_s);
  auto tier = std::make_shared<Tier>(tier_folder(options_.root, identity), identity, files_);
  if (options_.verify_full) tier->verify_always();
  return tier;
}

/// The one that a start needs, and that is written last.
const Tier& PreparedWeights::last_tier() const {
  return device_tier_ != nullptr ? *device_tier_ : *host_tier_;
}

bool PreparedWeights::wants_build() const { return may_keep_ && (ignore_tiers_ || !last_tier().complete()); }

void PreparedWeights::build(const std::vector<FormRequest>& requests, const PlanFilter& filter) {
  if (!may_keep_) return;
  Job job;
  try {
    begin(job, requests, filter);
    write(job);
    ignore_tiers_ = false;
  } catch (const Error& error) {
    host_->stop_keeping();
    may_keep_ = false;
    statistics_.not_kept = error.what();
    throw;
  }
}

/// Takes the locks, finds out what is missing now, and checks that there is room for it.
void PreparedWeights::begin(Job& job, const std::vector<FormRequest>& requests, const PlanFilter& filter) {
  {
    const Clocked clocked(statistics_.wait_s);
    if (device_tier_ != nullptr) job.device_lock = TierLock::acquire(lock_path(device_tier_->folder()));
    job.host_lock = TierLock::acquire(lock_path(host_tier_->folder()));
  }
  // Another process may have been at it meanwhile.
  if (device_tier_ != nullptr) device_tier_ = open_tier(device_identity_);
  host_tier_ = open_tier(host_identity_);
  host_->begin_keeping(host_tier_, options_.force);
  std::set<std::string> selected;
  for (const PlanEntry* entry : select_entries(plan_, filter)) selected.insert(entry->name);
  std::set<std::string> host_names;
  for (const FormRequest& request : requests) {
    const TierKey key = key_of(request.name, request.form);
    job.keep.push_back(key);
    if (device_tier_ == nullptr || !selected.contains(request.name)) continue;
    if (!options_.force && find(key, request.form.bytes) != nullptr) {
      count(key, request.form.bytes, statistics_.warm);
      continue;
    }
    job.missing.push_back(&request);
    job.bytes += request.form.bytes;
    host_names.insert(request.name);
  }
  for (const std::string& name : selected) {
    if (device_tier_ != nullptr && plan_.entries().at(name).residence != Residence::kHost) continue;
    job.host_only.push_back(name);
    host_names.insert(name);
  }
  std::uint64_t host_bytes = 0;
  for (const std::string& name : host_names) host_bytes += host_->bytes_to_write(name, options_.force);
  require_space(files_, host_tier_->folder(), job.bytes + host_bytes);
}

void PreparedWeights::write(const Job& job) {
  if (observer_.begin && job.bytes > 0) observer_.begin("preparing weights", job.bytes);
  for (const FormRequest* request : job.missing) {
    const AlignedBuffer made = make(*request);
    const TierKey key = key_of(request->name, request->form);
    {
      const Clocked clocked(statistics_.write_s);
      device_tier_->put(key, {DType::kU8, {static_cast<std::int64_t>(request->form.bytes)}, made.data()});
    }
    count(key, request->form.bytes, statistics_.cold);
    if (observer_.advance) observer_.advance(request->form.bytes);
  }
  for (const std::string& name : job.host_only) {
    const PlanEntry& entry = plan_.entries().at(name);
    host_->load(name, entry.dtype, entry.shape);
    host_->release(name);
  }
  // Before they are forgotten with the files that had them.
  statistics_.damaged += damages();
  if (observer_.end) observer_.end();
  host_->end_keeping();
  const Clocked clocked(statistics_.write_s);
  if (!job.missing.empty()) device_tier_->finish(job.keep);
}

/// Each form counts once, as it was met first.
void PreparedWeights::count(const TierKey& key, std::size_t bytes, std::size_t& sum) {
  if (!counted_.insert(key).second) return;
  ++sum;
  statistics_.device_bytes += bytes;
}

TensorView PreparedWeights::load(const std::string& name, DType dtype, const Shape& shape) {
  return host_->load(name, dtype, shape);
}

void PreparedWeights::release(const std::string& name) { host_->release(name); }

AlignedBuffer PreparedWeights::make(const FormRequest& request) {
  const TensorView weight = host_->load(request.name, request.dtype, request.shape);
  AlignedBuffer made;
  {
    const Clocked clocked(statistics_.pack_s);
    made = AlignedBuffer(request.form.bytes);
    request.make(weight, {made.data(), request.form.bytes});
  }
  host_->release(request.name);
  return made;
}

ResidentBytes PreparedWeights::find(const TierKey& key, std::size_t bytes) {
  if (device_tier_ == nullptr || ignore_tiers_) return nullptr;
  std::optional<TensorView> found;
  {
    const Clocked clocked(statistics_.find_s);
    found = device_tier_->find(key);
  }
  if (!found || found->bytes() != bytes) return nullptr;
  return {device_tier_, found->data};
}

ResidentBytes PreparedWeights::resident(const std::string& name, DType dtype, const Shape& shape,
                                        const WeightForm& form, const MakeForm& make_form) {
  const TierKey key = key_of(name, form);
  ResidentBytes data = find(key, form.bytes);
  if (data != nullptr) {
    count(key, form.bytes, statistics_.warm);
    if (options_.prefault) {
      const Clocked clocked(statistics_.prefault_s);
      device_tier_->prefault(key);
    }
  } else {
    const auto made = std::make_shared<AlignedBuffer>(make({name, dtype, shape, form, make_form}));
    data = ResidentBytes(made, made->data());
    // Without a tier for them forms are made each time, and only plan tensors are found or not.
    if (device_tier_ == nullptr) {
      statistics_.device_bytes += form.bytes;
    } else {
      count(key, form.bytes, statistics_.cold);
    }
    if (may_keep_ && device_tier_ != nullptr) lacking_.push_back({key, data, form.bytes});
  }
  residency_->add(name, form, data);
  return data;
}

void PreparedWeights::finish() {
  for (const auto& [name, entry] : plan_.entries()) {
    if (entry.residence != Residence::kHost) continue;
    auto [view, owner] = host_->load_lasting(name);
    residency_->add_host(name, view, std::move(owner));
    ++statistics_.host_tensors;
  }
  statistics_.damaged += damages();
  if (!may_keep_) return;
  try {
    if (!lacking_.empty()) repair();
    if (!host_->unkept().empty()) repair_host();
  } catch (const Error& error) {
    log(LogLevel::kWarning, "prepared weights are not kept: {}", error.what());
    statistics_.not_kept = error.what();
    host_->stop_keeping();
  }
  lacking_.clear();
}

/// Writes what this start missed, and nothing else, into the tier as it is now.
void PreparedWeights::repair() {
  const Clocked clocked(statistics_.write_s);
  const TierLock lock = TierLock::acquire(lock_path(device_tier_->folder()));
  Tier tier(device_tier_->folder(), device_identity_, files_);
  std::vector<TierKey> keep = tier.keys();
  for (const Lacking& lacking : lacking_) {
    keep.push_back(lacking.key);
    if (tier.find(lacking.key)) continue;
    tier.put(lacking.key, {DType::kU8, {static_cast<std::int64_t>(lacking.bytes)}, lacking.data.get()});
  }
  tier.finish(keep);
}

std::size_t PreparedWeights::damages() const {
  std::size_t sum = 0;
  for (const Tier* tier : {host_tier_.get(), device_tier_.get()}) {
    if (tier != nullptr) sum += tier->damages().size();
  }
  return sum;
}

/// Makes it once more rather than hold on to it from when it was made: this is rare, and the host's tensors
/// may be as large as the model.
void PreparedWeights::repair_host() {
  const std::vector<std::string> names = host_->unkept();
  const TierLock lock = TierLock::acquire(lock_path(host_tier_->folder()));
  host_tier_ = open_tier(host_identity_);
  host_->begin_keeping(host_tier_, false);
  for (const std::string& name : names) {
    const PlanEntry& entry = plan_.entries().at(name);
    host_->load(name, entry.dtype, entry.shape);
    host_->release(name);
  }
  host_->end_keeping();
}

LoadStatistics PreparedWeights::statistics() const {
  LoadStatistics out = statistics_;
  const bool has_device = device_tier_ != nullptr;
  const std::size_t found = has_device ? out.warm : out.host_warm;
  const std::size_t made = has_device ? out.cold : out.host_cold;
  if (options_.root.empty()) {
    out.path = LoadPath::kUncached;
    out.not_kept = "no cache";
  } else {
    out.path = made == 0 ? LoadPath::kWarm : found == 0 ? LoadPath::kCold : LoadPath::kPartial;
    if (made > 0 && out.not_kept.empty() && last_tier().read_only())
      out.not_kept = last_tier().folder() + ": cannot be written to";
  }
  return out;
}

}  // namespace sinew

// The weights of a session: what is resident, under which name, in which form.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace sinew {

/// A form of a weight and its bytes.
struct ResidentForm {
  WeightForm form;
  ResidentBytes data;
};

/// What a session's backend was given, by plan tensor, and the tensors that stay on the host. The memory
/// lives as long as the session or this object, whichever ends last. May be asked by several threads at once.
class Residency {
 public:
  /// `plan` is copied: name, category and residence of its entries.
  explicit Residency(const Plan& plan);

  /// The forms of a weight, in the order the backend asked for them. Throws Error: kNotFound (no such plan
  /// tensor: lists the five that are spelled most like it; or none that is resident now), kUsage (it stays on
  /// the host: use host()).
  std::vector<ResidentForm> get(const std::string& name) const;
  /// A tensor that stays on the host, as the plan has it. Throws Error: kNotFound as get(), kUsage (it is the
  /// device's: use get()).
  TensorView host(const std::string& name) const;

  /// Sorted names of the weights that are resident on the device, and of the tensors on the host.
  std::vector<std::string> names() const;
  std::vector<std::string> host_names() const;
  /// Category to the sorted names of its resident weights.
  std::map<std::string, std::vector<std::string>> by_category() const;
  /// Of all resident forms.
  std::size_t bytes() const;
  /// Element type of resident forms to their number: {"bf16", 131}.
  std::map<std::string, std::size_t> dtype_histogram() const;
  /// Lets everything go. What a session computes with stays until the session ends.
  void release();

  /// For whoever loads: a weight became resident, a tensor is on the host.
  void add(const std::string& name, const WeightForm& form, const ResidentBytes& data);
  void add_host(const std::string& name, const TensorView& tensor, std::shared_ptr<const void> owner);

 private:
  struct Kind {
    std::string category;
    Residence residence = Residence::kDevice;
  };
  struct HostTensor {
    TensorView view;
    std::shared_ptr<const void> owner;
  };
  /// Throws Error (kNotFound, kUsage) when `name` is not a plan tensor of this residence.
  void require(const std::string& name, Residence wanted) const;

  std::map<std::string, Kind> kinds_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::vector<ResidentForm>> forms_;
  std::map<std::string, HostTensor> host_;
};

}  // namespace sinew

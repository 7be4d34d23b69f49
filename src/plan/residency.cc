#include "plan/residency.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace sinew {

Residency::Residency(const Plan& plan) {
  for (const auto& [name, entry] : plan.entries()) kinds_[name] = {entry.category, entry.residence};
}

void Residency::require(const std::string& name, Residence wanted) const {
  const auto found = kinds_.find(name);
  if (found == kinds_.end()) {
    std::vector<std::string> names;
    names.reserve(kinds_.size());
    for (const auto& [known, kind] : kinds_) names.push_back(known);
    throw fail(ErrorCode::kNotFound, "the plan has no tensor {}; the nearest are {}", name,
               fmt::join(nearest_words(names, name, 5), ", "));
  }
  if (found->second.residence == wanted) return;
  if (wanted == Residence::kDevice)
    throw Error(ErrorCode::kUsage, fmt::format("plan tensor {} stays on the host", name), "ask for host()");
  throw Error(ErrorCode::kUsage, fmt::format("plan tensor {} is the device's", name), "ask for get()");
}

std::vector<ResidentForm> Residency::get(const std::string& name) const {
  require(name, Residence::kDevice);
  const std::scoped_lock lock(mutex_);
  const auto found = forms_.find(name);
  if (found == forms_.end()) throw fail(ErrorCode::kNotFound, "plan tensor {} is not resident", name);
  return found->second;
}

TensorView Residency::host(const std::string& name) const {
  require(name, Residence::kHost);
  const std::scoped_lock lock(mutex_);
  const auto found = host_.find(name);
  if (found == host_.end()) throw fail(ErrorCode::kNotFound, "plan tensor {} is not loaded", name);
  return found->second.view;
}

std::vector<std::string> Residency::names() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> out;
  out.reserve(forms_.size());
  for (const auto& [name, forms] : forms_) out.push_back(name);
  return out;
}

std::vector<std::string> Residency::host_names() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> out;
  out.reserve(host_.size());
  for (const auto& [name, tensor] : host_) out.push_back(name);
  return out;
}

std::map<std::string, std::vector<std::string>> Residency::by_category() const {
  std::map<std::string, std::vector<std::string>> out;
  for (std::string& name : names()) out[kinds_.at(name).category].push_back(std::move(name));
  return out;
}

std::size_t Residency::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [name, forms] : forms_) {
    for (const ResidentForm& form : forms) sum += form.form.bytes;
  }
  return sum;
}

std::map<std::string, std::size_t> Residency::dtype_histogram() const {
  const std::scoped_lock lock(mutex_);
  std::map<std::string, std::size_t> out;
  for (const auto& [name, forms] : forms_) {
    for (const ResidentForm& form : forms) ++out[form.form.dtype];
  }
  return out;
}

void Residency::release() {
  const std::scoped_lock lock(mutex_);
  forms_.clear();
  host_.clear();
}

void Residency::add(const std::string& name, const WeightForm& form, const ResidentBytes& data) {
  require(name, Residence::kDevice);
  const std::scoped_lock lock(mutex_);
  forms_[name].push_back({form, data});
}

void Residency::add_host(const std::string& name, const TensorView& tensor,
                         std::shared_ptr<const void> owner) {
  require(name, Residence::kHost);
  const std::scoped_lock lock(mutex_);
  host_[name] = {tensor, std::move(owner)};
}

}  // namespace sinew

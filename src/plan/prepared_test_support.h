// A small plan and a device of its own, to start from cold and warm.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "io/test_folder.h"
#include "plan/prepared_weights.h"
#include "plan/tier_test_support.h"

namespace sinew {

/// The names and shapes of another checkpoint, and addresses that stop whoever reads them.
class HeadersOnly final : public Checkpoint {
 public:
  explicit HeadersOnly(const Checkpoint& other) : Checkpoint(other.path()) {
    for (const auto& [name, view] : other.tensors()) {
      regions_.push_back(
          FormList().resident(name, view.dtype, view.shape, row_major_form(view.dtype, view.shape), {}));
      tensors_.emplace(name, TensorView(view.dtype, view.shape, regions_.back().get()));
    }
  }
  std::string_view format() const override { return "headers"; }
  void release(const TensorView&) const override {}

 private:
  std::vector<ResidentBytes> regions_;
};

inline const Identity kTestDevice = {{"backend", "test"}, {"isa", "none"}, {"library", "1"}};

/// A checkpoint of four tensors on disk, and the plan made of it: one tensor as stored, one that a transform
/// makes, one that is rounded, one that stays on the host.
class TestModel {
 public:
  explicit TestModel(float first = 1, const std::string& name = "model.safetensors")
      : path_(folder_.file(name)) {
    std::map<std::string, TensorView> tensors;
    std::vector<Tensor> owners;
    for (const char* tensor : {"a", "b", "c", "table"}) {
      owners.emplace_back(DType::kF32, Shape{8, 6});
      for (float& value : owners.back().as<float>()) value = first++ / 8;
      tensors.emplace(tensor, owners.back().view());
    }
    write_safetensors(path_, tensors, {});
    checkpoint_ = open_checkpoint(path_);
    sources_.add_all(checkpoint_);
    headers_.add_all(std::make_shared<HeadersOnly>(*checkpoint_));
    plan_.add({"a", "matrix", DType::kF32, {8, 6}, {"a"}, {}});
    plan_.add({"b.twice", "matrix", DType::kF32, {8, 6}, {"b"}, Transform("twice", [this](const Sources& s) {
                 ++transforms;
                 if (broken) throw fail(ErrorCode::kFormat, "the transform breaks");
                 Tensor out = s.f64("b");
                 for (double& value : out.as<double>()) value *= 2;
                 return out;
               })});
    plan_.add({"c", "vector", DType::kBF16, {48}, {"c"}, {}});
    PlanEntry table{"table", "embed", DType::kBF16, {8, 6}, {"table"}, {}};
    table.residence = Residence::kHost;
    plan_.add(std::move(table));
  }

  const std::string& path() const { return path_; }
  const Plan& plan() const { return plan_; }
  const Sources& sources() const { return sources_; }
  /// The same tensors; reading one ends the test.
  const Sources& headers() const { return headers_; }
  PlanOrigin origin() const { return {{path_}, {{"model", "test"}, {"policy", "bf16"}}}; }

  /// What the device asks for: bytes in reverse, and of `c` also as they are.
  std::vector<FormRequest> requests() {
    std::vector<FormRequest> out;
    for (const auto& [name, entry] : plan_.entries()) {
      if (entry.residence == Residence::kHost) continue;
      out.push_back({name, entry.dtype, entry.shape, {"u8", "reversed", entry.bytes()}, reversed()});
    }
    const PlanEntry& c = plan_.entries().at("c");
    out.push_back({"c", c.dtype, c.shape, row_major_form(c.dtype, c.shape), copy_row_major});
    return out;
  }

  std::atomic<int> transforms = 0;
  std::atomic<int> packed = 0;
  bool broken = false;

 private:
  WeightSource::MakeForm reversed() {
    return [this](const TensorView& weight, std::span<std::byte> out) {
      ++packed;
      std::reverse_copy(weight.data, weight.data + weight.bytes(), out.begin());
    };
  }

  TestFolder folder_;
  std::string path_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  Sources sources_, headers_;
  Plan plan_;
};

/// One start: what a session would hold.
struct Started {
  std::vector<ResidentBytes> data;
  std::vector<std::string> bytes;
  std::shared_ptr<Residency> weights;
  LoadStatistics statistics;
};

inline Started start(TestModel& model, const CacheOptions& cache, const Sources* sources = nullptr,
                     FileLayer& files = system_files()) {
  const Sources& from = sources == nullptr ? model.sources() : *sources;
  PreparedWeights weights(model.plan(), from, model.origin(), kTestDevice, cache, {}, files);
  const std::vector<FormRequest> requests = model.requests();
  if (weights.wants_build()) {
    try {
      weights.build(requests);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) throw;
    }
  }
  Started out;
  for (const FormRequest& r : requests) {
    out.data.push_back(weights.resident(r.name, r.dtype, r.shape, r.form, r.make));
    out.bytes.emplace_back(reinterpret_cast<const char*>(out.data.back().get()), r.form.bytes);
  }
  weights.finish();
  out.weights = weights.residency();
  out.statistics = weights.statistics();
  return out;
}

}  // namespace sinew

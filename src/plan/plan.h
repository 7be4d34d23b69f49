// Plan: what the weights of a model become for one policy, enumerated from headers alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/sources.h"
#include "program/weight_source.h"
#include "tensor/weight_storage.h"

namespace sinew {

/// Makes a plan tensor, in double, from the sources it names; rounding to the plan's dtype comes last. None
/// (false): the one source, reshaped and rounded.
class Transform {
 public:
  using Function = std::function<Tensor(const Sources&)>;
  Transform() = default;
  /// `name` says what is done, for people: "stack 3", "rows 0..1280".
  Transform(std::string name, Function make) : name_(std::move(name)), make_(std::move(make)) {}
  const std::string& name() const { return name_; }
  explicit operator bool() const { return static_cast<bool>(make_); }
  Tensor operator()(const Sources& sources) const { return make_(sources); }

 private:
  std::string name_;
  Function make_;
};

/// Where a plan tensor is used.
enum class Residence : std::uint8_t {
  kDevice,  // by a backend, in the forms that it asks for
  kHost,    // by the model's own code, as it is in the plan: tables that rows are taken from
};

struct PlanEntry {
  std::string name;      // of the plan tensor, and of the program's weight
  std::string category;  // "patch", "attention", "mlp", "norm", "head", "readout"
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::string> sources;  // checkpoint tensors it is made from
  Transform transform;
  WeightStorage storage = WeightStorage::kPlain;  // what the transform makes of its values
  Residence residence = Residence::kDevice;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.count()) * size_of(dtype); }
};

class Plan {
 public:
  /// An entry of the same name must be the same tensor; it is kept once.
  void add(PlanEntry entry);
  const std::map<std::string, PlanEntry>& entries() const { return entries_; }
  /// Sum over entries of elements times element size.
  std::size_t bytes() const;

 private:
  std::map<std::string, PlanEntry> entries_;
};

/// Makes plan tensors when a backend asks for them. A tensor whose bytes are already right is handed out in
/// place.
class PlanWeights final : public WeightSource {
 public:
  /// Both must outlive the object.
  PlanWeights(const Plan& plan, const Sources& sources) : plan_(plan), sources_(sources) {}
  TensorView load(const std::string& name, DType dtype, const Shape& shape) override;
  void release(const std::string& name) override;
  /// Whether the checkpoint holds exactly this tensor, so that it needs no other home.
  bool is_stored(const PlanEntry& entry) const;

 private:
  Tensor make(const PlanEntry& entry) const;

  const Plan& plan_;
  const Sources& sources_;
  std::map<std::string, Tensor> made_;
};

}  // namespace sinew

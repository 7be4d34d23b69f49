// Which forms of its weights a backend wants, found without reading one.
#pragma once

#include <string>
#include <vector>

#include "plan/manifest.h"
#include "program/weight_source.h"

namespace sinew {

/// A weight and a form that a backend asked for.
struct FormRequest {
  std::string name;
  DType dtype = DType::kF32;  // as the plan has it
  Shape shape;
  WeightForm form;
  WeightSource::MakeForm make;
};

/// The file of a form in a device tier: its variant is "bf16, panels of 32".
TierKey key_of(const std::string& name, const WeightForm& form);

/// Stands in for the weights while a program is compiled, to learn what would be asked for. What it hands out
/// is addresses and nothing behind them: a session that was compiled with it must not be run.
class FormList final : public WeightSource {
 public:
  /// In the order they were asked for.
  const std::vector<FormRequest>& requests() const { return requests_; }

  /// Throws Error (kUnsupported): only backends that use resident() alone can be asked.
  TensorView load(const std::string& name, DType dtype, const Shape& shape) override;
  void release(const std::string&) override {}
  ResidentBytes resident(const std::string& name, DType dtype, const Shape& shape, const WeightForm& form,
                         const MakeForm& make) override;

 private:
  std::vector<FormRequest> requests_;
};

}  // namespace sinew

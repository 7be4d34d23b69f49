// How plan tensors are made: a chain of small named steps in double, from checkpoint tensors to a Transform.
// The steps are in transforms.h (exact), folds.h (exact but for double's rounding) and quantise.h (to fewer
// bits).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace sinew::transforms {

/// One thing done to a tensor of f64. `apply` owns what it is given and may work in place. `name` is for
/// people and for errors: "pad heads 48 to 64 on axis 0".
struct Step {
  std::string name;
  std::function<Tensor(Tensor)> apply;
};

/// A tensor of f64 on its way from the checkpoint to the plan: `source("blocks.0.attn.q.weight") |
/// transpose() | pad_heads({.axis = 1, ...})`. Converts to the Transform of a PlanEntry whose sources are
/// sources(). Errors name the checkpoint tensors and the step: "blocks.0.attn.q.weight: transpose: ...".
class Chain {
 public:
  using Function = Transform::Function;
  Chain(std::vector<std::string> sources, std::string name, Function make)
      : sources_(std::move(sources)), name_(std::move(name)), make_(std::move(make)) {}

  /// Checkpoint tensors it reads, each once, in the order of their use.
  const std::vector<std::string>& sources() const { return sources_; }
  /// The steps: "transpose, pad heads 48 to 64 on axis 1". Empty for a source as it is.
  const std::string& name() const { return name_; }
  /// Throws Error (kMismatch) for a source that is missing, and what the steps throw.
  Tensor operator()(const Sources& sources) const { return make_(sources); }
  operator Transform() const { return {name_.empty() ? "as it is" : name_, make_}; }

 private:
  std::vector<std::string> sources_;
  std::string name_;
  Function make_;
};

/// The chain, then the step.
Chain operator|(Chain chain, Step step);

/// One tensor of several chains': `apply` gets theirs in order. The name is theirs, each once, then `step`.
using Operands = std::vector<Tensor>;
Chain combined(std::vector<Chain> parts, const std::string& step, std::function<Tensor(Operands)> apply);

/// A checkpoint tensor of any dtype and rank, widened.
Chain source(const std::string& name);
/// A checkpoint tensor of which `read` takes what it needs, as f64; `step` says what.
Chain source_part(const std::string& name, const std::string& step,
                  std::function<Tensor(const TensorView&)> read);
/// Numbers that come from no checkpoint; `name` says what they are. Asserts that they are as many as the
/// shape has.
Chain constant(const std::string& name, const Shape& shape, std::vector<double> values);

}  // namespace sinew::transforms

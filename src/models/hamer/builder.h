// What both forms of the program are built with: values and weights declared together, stages named once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/hamer/program.h"
#include "program/linear.h"

namespace sinew::hamer {

class Builder {
 public:
  Builder(const Config& config, const Sources& sources, const BuildOptions& options);

  const Config& config() const { return config_; }
  const BuildOptions& options() const { return options_; }
  bool trace() const { return options_.trace; }
  ProgramBuilder& ops() { return ops_; }
  DType product() const { return product_dtype(options_.policy); }
  DType stream() const { return stream_dtype(options_.policy); }

  ValueId image();

  /// A checkpoint tensor as an operand of products, reshaped to `shape`.
  ValueId product_weight(const std::string& category, const std::string& source, const Shape& shape);
  /// A matrix made by a transform, as an operand of products: kept as the policy has it.
  ValueId product_weight(PlanEntry entry);
  /// A checkpoint tensor in the stream's type: biases, norms.
  ValueId stream_weight(const std::string& category, const std::string& source, const Shape& shape);
  /// A plan tensor made by a transform.
  ValueId made_weight(PlanEntry entry);
  /// dtype of a product weight that is taken from the checkpoint as it is: double programs keep the stored
  /// type, which widens exactly, and so need no second copy of the model.
  DType stored_product_dtype(const std::string& source) const;

  /// A value that only other ops read.
  ValueId local(const std::string& name, DType dtype, const Shape& shape) {
    return ops_.local(name, dtype, shape);
  }
  /// A value with a name in the goldens: an output when tracing. `shape` is what PyTorch users see.
  ValueId stage(const std::string& name, DType dtype, const Shape& matrix, const Shape& shape);
  /// A value that is always an output.
  ValueId result(const std::string& name, DType dtype, const Shape& matrix, const Shape& shape);

  /// Fluent parts that repeat in both forms.
  ValueId layer_norm(const std::string& category, const std::string& source, ValueId x, ValueId out,
                     double eps);
  struct LinearSpec {
    std::string category;
    std::string source;  // `<source>.weight`, and `<source>.bias` when has_bias
    bool has_bias = true;
    Activation activation = Activation::kNone;
    ValueId residual = {};
  };
  ValueId linear(const LinearSpec& spec, ValueId x, ValueId out);
  void slice(ValueId x, std::int64_t column, ValueId out);
  void copy(ValueId x, ValueId out);
  ValueId add(ValueId a, ValueId b, ValueId out);

  /// pose6d, betas, cam, rotmat and out157 from the readouts before the mean parameters are added.
  void finalise(ValueId decpose, ValueId decshape, ValueId deccam);
  Graph finish();

 private:
  ValueId weight(PlanEntry entry);
  ValueId add_mean(const std::string& name, const std::string& source, ValueId increment,
                   std::int64_t columns);

  const Config& config_;
  const Sources& sources_;
  BuildOptions options_;
  ProgramBuilder ops_;
  Plan plan_;
  std::vector<NamedOutput> outputs_;
};

/// Shapes that PyTorch users see.
inline Shape tokens_shape(std::int64_t columns) { return {1, kTokens, columns}; }
inline Shape query_shape(std::int64_t columns) { return {1, 1, columns}; }

std::string block_prefix(std::int64_t block);  // "backbone.blocks.N."
std::string layer_prefix(std::int64_t layer);  // "mano_head.transformer.transformer.layers.N."

void build_fused(Builder& builder);
void build_plain(Builder& builder);

}  // namespace sinew::hamer

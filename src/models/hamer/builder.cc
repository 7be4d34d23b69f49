#include "models/hamer/builder.h"

#include <fmt/format.h>

#include "plan/quantise.h"
#include "plan/transforms.h"
#include "program/columns.h"
#include "program/elementwise.h"
#include "program/norm.h"
#include "program/rotation.h"

namespace sinew::hamer {

std::string block_prefix(std::int64_t block) { return fmt::format("backbone.blocks.{}.", block); }
std::string layer_prefix(std::int64_t layer) {
  return fmt::format("mano_head.transformer.transformer.layers.{}.", layer);
}

Builder::Builder(const Config& config, const Sources& sources, const BuildOptions& options)
    : config_(config),
      sources_(sources),
      options_(options),
      ops_(fmt::format("hamer-{}-{}", options.form == Form::kFused ? "fused" : "plain",
                       to_string(options.policy))) {}

ValueId Builder::image() {
  return ops_.input("image", options_.u8_input ? DType::kU8 : stream(), {3, kImageRows, kImageColumns});
}

DType Builder::stored_product_dtype(const std::string& source) const {
  return options_.policy == Policy::kF64 ? sources_.get(source).dtype : product();
}

ValueId Builder::weight(PlanEntry entry) {
  const ValueId id = ops_.shared_weight(entry.name, entry.dtype, entry.shape, entry.storage);
  plan_.add(std::move(entry));
  return id;
}

ValueId Builder::product_weight(const std::string& category, const std::string& source, const Shape& shape) {
  return product_weight({source, category, stored_product_dtype(source), shape, {source}, {}});
}

ValueId Builder::product_weight(PlanEntry entry) {
  entry.storage = product_storage(options_.policy);
  if (entry.storage == WeightStorage::kBfp8) {
    transforms::Chain exact = entry.transform
                                  ? transforms::Chain(entry.sources, entry.transform.name(), entry.transform)
                                  : transforms::source(entry.sources.at(0));
    const bool as_stored = !entry.transform && sources_.get(entry.sources.at(0)).shape == entry.shape;
    if (!as_stored) exact = exact | transforms::reshape(entry.shape);
    entry.transform = exact | transforms::quantise_bfp8();
  }
  return weight(std::move(entry));
}

ValueId Builder::stream_weight(const std::string& category, const std::string& source, const Shape& shape) {
  return weight({source, category, stream(), shape, {source}, {}});
}

ValueId Builder::made_weight(PlanEntry entry) { return weight(std::move(entry)); }

ValueId Builder::stage(const std::string& name, DType dtype, const Shape& matrix, const Shape& shape) {
  return trace() ? result(name, dtype, matrix, shape) : ops_.local(name, dtype, matrix);
}

ValueId Builder::result(const std::string& name, DType dtype, const Shape& matrix, const Shape& shape) {
  outputs_.push_back({name, shape});
  return ops_.output(name, dtype, matrix);
}

ValueId Builder::layer_norm(const std::string& category, const std::string& source, ValueId x, ValueId out,
                            double eps) {
  const std::int64_t channels = ops_.value(x).shape[1];
  LayerNorm op;
  op.x = x;
  op.gamma = stream_weight(category, source + ".weight", {channels});
  op.beta = stream_weight(category, source + ".bias", {channels});
  op.out = out;
  op.eps = eps;
  ops_.add(op);
  return out;
}

ValueId Builder::linear(const LinearSpec& spec, ValueId x, ValueId out) {
  const std::int64_t rows = ops_.value(out).shape[1];
  Linear op;
  op.x = x;
  op.weight = product_weight(spec.category, spec.source + ".weight", {rows, ops_.value(x).shape[1]});
  if (spec.has_bias) op.bias = stream_weight(spec.category, spec.source + ".bias", {rows});
  op.residual = spec.residual;
  op.activation = spec.activation;
  op.out = out;
  ops_.add(op);
  return out;
}

void Builder::slice(ValueId x, std::int64_t column, ValueId out) {
  SliceColumns op;
  op.x = x;
  op.column = column;
  op.out = out;
  ops_.add(op);
}

void Builder::copy(ValueId x, ValueId out) {
  Convert op;
  op.x = x;
  op.out = out;
  ops_.add(op);
}

ValueId Builder::add(ValueId a, ValueId b, ValueId out) {
  Add op;
  op.a = a;
  op.b = b;
  op.out = out;
  ops_.add(op);
  return out;
}

// Upstream evaluates the transformer `ief_iters` times on the same zero token and accumulates; the increments
// are equal (spec hamer 1.3).
ValueId Builder::add_mean(const std::string& name, const std::string& source, ValueId increment,
                          std::int64_t columns) {
  ValueId sum = stream_weight("readout", source, {1, columns});
  for (std::int64_t i = 1; i < config_.ief_iters; ++i) {
    sum = add(increment, sum, local(fmt::format("{}.iteration.{}", name, i), stream(), {1, columns}));
  }
  return add(increment, sum, result(name, stream(), {1, columns}, {1, columns}));
}

void Builder::finalise(ValueId decpose, ValueId decshape, ValueId deccam) {
  const ValueId pose = add_mean("pose6d", "mano_head.init_hand_pose", decpose, kPose);
  const ValueId betas = add_mean("betas", "mano_head.init_betas", decshape, kBetas);
  const ValueId cam = add_mean("cam", "mano_head.init_cam", deccam, kCam);
  Rotation6dToMatrix rotate;
  rotate.x = pose;
  rotate.out = result("rotmat", stream(), {1, 9 * kJoints}, {1, kJoints, 3, 3});
  ops_.add(rotate);
  ConcatColumns join;
  join.parts = {rotate.out, betas, cam};
  join.out = result("out157", stream(), {1, 9 * kJoints + kBetas + kCam}, {1, 9 * kJoints + kBetas + kCam});
  ops_.add(join);
}

Graph Builder::finish() { return {ops_.finish(), std::move(plan_), std::move(outputs_)}; }

}  // namespace sinew::hamer

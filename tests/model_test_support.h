// What the tests of whole programs share: small models made in memory, sessions, differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "io/checkpoint.h"
#include "models/hamer/program.h"
#include "models/hamer/synth.h"

namespace sinew::test {

/// A checkpoint held in memory.
class MemoryModel final : public Checkpoint {
 public:
  MemoryModel(const hamer::Config& config, hamer::Generator generator, std::uint64_t seed)
      : Checkpoint("memory") {
    for (const hamer::ExpectedTensor& tensor : hamer::expected_tensors(config)) {
      Tensor& values = storage_.emplace_back(DType::kF32, tensor.shape);
      hamer::synth_values(generator, seed, tensor, 0, tensor.shape.count(), values.as<float>().data());
      tensors_.emplace(tensor.name, values.view());
    }
  }
  std::string_view format() const override { return "memory"; }
  void release(const TensorView&) const override {}
  Tensor& storage(const std::string& name) {
    for (Tensor& tensor : storage_) {
      if (tensor.data() == tensors_.at(name).data) return tensor;
    }
    throw std::out_of_range(name);
  }

 private:
  std::vector<Tensor> storage_;
};

/// Two heads of 80, two blocks, three layers: every branch of the graph, a few million weights.
inline hamer::Config small_config() {
  hamer::Config config;
  config.embed = 160;
  config.mlp = 320;
  config.depth = 2;
  config.head_depth = 3;
  config.head_dim = 128;
  config.head_inner = 128;
  config.head_heads = 2;
  config.head_mlp = 192;
  return config;
}

/// A compiled graph with what it needs to live.
struct Compiled {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Session> session;
  std::vector<hamer::NamedOutput> outputs;

  Tensor output(const std::string& name) const { return convert(session->output(name), DType::kF64); }
};

inline Compiled compile(const hamer::Config& config, const Sources& sources,
                        const hamer::BuildOptions& options, const std::string& backend, int threads = 2) {
  Compiled compiled;
  compiled.backend =
      backend == "cpu" ? make_cpu_backend({.threads = threads}) : make_reference_backend(threads);
  hamer::Graph graph = hamer::build(config, sources, options);
  PlanWeights weights(graph.plan, sources);
  compiled.session = compiled.backend->compile(std::move(graph.program), weights);
  compiled.outputs = std::move(graph.outputs);
  return compiled;
}

/// max |a - b| over all elements, both double.
inline double max_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double largest = 0;
  for (std::size_t i = 0; i < a.as<double>().size(); ++i) {
    const double d = std::fabs(a.as<double>()[i] - b.as<double>()[i]);
    if (!(d <= largest)) largest = d;  // NaN sticks
  }
  return largest;
}

/// Pearson correlation of two double tensors.
inline double correlation(const Tensor& a, const Tensor& b) {
  const auto n = static_cast<double>(a.as<double>().size());
  double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
  for (std::size_t i = 0; i < a.as<double>().size(); ++i) {
    ma += a.as<double>()[i] / n;
    mb += b.as<double>()[i] / n;
  }
  for (std::size_t i = 0; i < a.as<double>().size(); ++i) {
    const double x = a.as<double>()[i] - ma;
    const double y = b.as<double>()[i] - mb;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  return ab / std::sqrt(aa * bb);
}

inline double max_magnitude(const Tensor& a) {
  double largest = 0;
  for (const double v : a.as<double>()) largest = std::max(largest, std::fabs(v));
  return largest;
}

}  // namespace sinew::test

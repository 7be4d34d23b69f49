// What the tests of single ops share: an op over random tensors, run on a backend; fast against reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model_test_support.h"

namespace sinew::test {

inline constexpr double kF32Unit = 0x1p-24;  // largest relative error of rounding to f32
inline constexpr double kBF16Unit = 0x1p-8;

inline double unit_of(DType dtype) { return dtype == DType::kBF16 ? kBF16Unit : kF32Unit; }

/// Named tensors as the weights of a program.
class MapWeights final : public WeightSource {
 public:
  std::map<std::string, Tensor> tensors;
  TensorView load(const std::string& name, DType dtype, const Shape& shape) override {
    const Tensor& tensor = tensors.at(name);
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.shape(), shape);
    return tensor;
  }
  void release(const std::string&) override {}
};

inline Tensor random_tensor(std::mt19937& random, DType dtype, const Shape& shape, double scale = 1) {
  std::normal_distribution<double> normal(0, scale);
  Tensor out(DType::kF64, shape);
  for (double& v : out.as<double>()) v = normal(random);
  return convert(out, dtype);
}

inline Tensor magnitude(const Tensor& x) {
  Tensor wide = convert(x, DType::kF64);
  for (double& v : wide.as<double>()) v = std::fabs(v);
  return convert(wide, x.dtype());
}

/// One op under test: `declare` builds it over inputs that already have values.
struct OpCase {
  std::map<std::string, Tensor> inputs;
  MapWeights weights;
  std::function<void(ProgramBuilder&, const std::function<ValueId(const char*)>&, ValueId)> add;
  DType out_dtype = DType::kF32;
  Shape out_shape;

  /// The output in double, from a backend, after two runs (the second must not differ).
  Tensor run(Backend& backend) {
    ProgramBuilder builder("op");
    const auto value = [&](const char* name) {
      const auto input = inputs.find(name);
      if (input != inputs.end()) {
        const ValueId id = builder.input(name, input->second.dtype(), input->second.shape());
        return id;
      }
      const Tensor& weight = weights.tensors.at(name);
      return builder.weight(name, weight.dtype(), weight.shape());
    };
    const ValueId out = builder.output("out", out_dtype, out_shape);
    add(builder, value, out);
    const auto session = backend.compile(builder.finish(), weights);
    for (const auto& [name, tensor] : inputs) {
      if (!session->program().find(name)) continue;
      std::memcpy(session->input(name).data(), tensor.data(), tensor.view().bytes());
    }
    session->run();
    Tensor first = convert(session->output("out"), DType::kF64);
    session->run();
    EXPECT_EQ(max_difference(convert(session->output("out"), DType::kF64), first), 0);
    return first;
  }
};

class OpsTest : public testing::Test {
 protected:
  /// Compares element by element; bound(i, expected) is the allowed difference.
  template <typename Bound>
  void compare(OpCase& c, const std::string& what, Bound&& bound) {
    const Tensor expected = c.run(*reference_);
    for (const int threads : {1, 3}) {
      const auto cpu = make_cpu_backend({.threads = threads});
      const Tensor actual = c.run(*cpu);
      for (std::size_t i = 0; i < expected.as<double>().size(); ++i) {
        const double e = expected.as<double>()[i];
        ASSERT_NEAR(actual.as<double>()[i], e, bound(i, e))
            << what << ", " << threads << " threads, element " << i;
      }
    }
  }
  void compare_exactly(OpCase& c, const std::string& what) {
    compare(c, what, [](std::size_t, double) { return 0.0; });
  }
  std::vector<DType> product_types() const {
    std::vector<DType> types = {DType::kF32};
    if (cpu_has_products(DType::kBF16)) types.push_back(DType::kBF16);
    return types;
  }

  std::mt19937 random_{1};
  std::unique_ptr<Backend> reference_ = make_reference_backend(2);
};

/// |x| |w|^T + |bias|: what an error bound of a sum of products scales with.
inline Tensor linear_scale(OpCase& c, const OpCase& original, Backend& backend) {
  c.add = original.add;
  c.out_shape = original.out_shape;
  c.out_dtype = DType::kF32;
  for (const auto& [name, tensor] : original.inputs) c.inputs.emplace(name, magnitude(tensor));
  for (const auto& [name, tensor] : original.weights.tensors)
    c.weights.tensors.emplace(name, magnitude(tensor));
  return c.run(backend);
}

}  // namespace sinew::test

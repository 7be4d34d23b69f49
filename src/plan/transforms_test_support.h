// Checkpoints in memory and matrices of chance, for the tests of chains.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/memory_checkpoint.h"
#include "plan/chain.h"

namespace sinew::transforms {

using Numbers = std::vector<double>;

/// A checkpoint that a test fills, and what its chains read.
class Given {
 public:
  Given& add(const std::string& name, const Shape& shape, const Numbers& values, DType dtype = DType::kF64) {
    checkpoint_->add(name, shape, values, dtype);
    sources_.add(name, checkpoint_->get(name), checkpoint_);
    return *this;
  }
  Given& add_view(const std::string& name, const TensorView& view) {
    sources_.add(name, view, checkpoint_);
    return *this;
  }
  const Sources& sources() const { return sources_; }

 private:
  std::shared_ptr<MemoryCheckpoint> checkpoint_ = std::make_shared<MemoryCheckpoint>("memory");
  Sources sources_;
};

/// 0, 1, 2, ...
inline Numbers counting(std::int64_t count) {
  Numbers values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return values;
}

/// Normal numbers in double: all 53 bits matter.
inline Numbers normal(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> distribution;
  Numbers values(static_cast<std::size_t>(count));
  for (double& value : values) value = distribution(random);
  return values;
}

inline Numbers numbers(const Tensor& tensor) {
  const auto values = tensor.as<double>();
  return {values.begin(), values.end()};
}

/// What `fn` throws as "code: message"; empty when it throws nothing.
template <typename Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return {};
}

}  // namespace sinew::transforms

// Small tiers for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plan/tier.h"

namespace sinew {

inline const Identity kFirst = {{"checkpoint", "00aa"}, {"policy", "bf16"}, {"transform", "1"}};
inline const Identity kSecond = {{"checkpoint", "00aa"}, {"policy", "bf16"}, {"transform", "2"}};

/// What an optional holds; without it the test ends here.
template <typename T>
T have(std::optional<T> value) {
  if (!value) throw std::runtime_error("nothing there");
  return *std::move(value);
}

using TestTensors = std::map<TierKey, Tensor>;

/// Four tensors of several types and sizes, one with a variant, one empty; other values for another seed.
inline TestTensors test_tensors(unsigned seed) {
  TestTensors out;
  std::mt19937 random(seed);
  const auto fill = [&](const TierKey& key, DType dtype, const Shape& shape) {
    Tensor tensor(dtype, shape);
    for (std::size_t i = 0; i < tensor.view().bytes(); ++i)
      tensor.data()[i] = static_cast<std::byte>(random());
    out.emplace(key, std::move(tensor));
  };
  fill({"backbone/blocks.0.attn.qkv.weight", ""}, DType::kBF16, {48, 32});
  fill({"backbone/blocks.0.attn.qkv.weight", "panel 16"}, DType::kU8, {777});
  fill({"head.bias", ""}, DType::kF32, {3});
  fill({"none", ""}, DType::kF32, {0, 5});
  return out;
}

inline std::vector<TierKey> keys_of(const TestTensors& tensors) {
  std::vector<TierKey> out;
  out.reserve(tensors.size());
  for (const auto& [key, tensor] : tensors) out.push_back(key);
  return out;
}

inline void build(Tier& tier, const TestTensors& tensors) {
  for (const auto& [key, tensor] : tensors) tier.put(key, tensor);
  tier.finish(keys_of(tensors));
}

inline bool same_bytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.contiguous() && b.contiguous() &&
         (a.bytes() == 0 || std::memcmp(a.data, b.data, a.bytes()) == 0);
}

/// How many of the tensors a tier hands out; a wrong one fails the test.
inline std::size_t count_found(Tier& tier, const TestTensors& expected, const std::string& where = "") {
  std::size_t found = 0;
  for (const auto& [key, tensor] : expected) {
    const auto view = tier.find(key);
    if (!view) continue;
    ++found;
    EXPECT_TRUE(same_bytes(*view, tensor)) << where << ": a wrong tensor under " << to_string(key);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view->data) % 64, 0U) << where;
  }
  return found;
}

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// Every file of a folder with its contents, but for notes on its use and temporaries.
inline std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    if (name != ".verified" && name != ".use" && !is_temporary(name))
      out[name] = contents(item.path().string());
  }
  return out;
}

/// Long enough for the stamps of files made before to be trusted (is_settled).
inline void let_files_settle() { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }

}  // namespace sinew

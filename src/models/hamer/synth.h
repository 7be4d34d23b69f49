// Synthetic checkpoints in the published format, for tests, benchmarks and the demo: no weight of HaMeR can
// be shipped.
#pragma once

#include <cstdint>
#include <string>

#include "base/thread_pool.h"
#include "models/hamer/config.h"

namespace sinew::hamer {

enum class Generator : std::uint8_t {
  kNormal,  // bell-shaped, scaled per kind of tensor so that activations behave like a trained network's
  kHpg1,    // the goldens' integer-only weights: bit for bit, at any depth and width
};

enum class CheckpointFormat : std::uint8_t { kTorch, kSafetensors };

struct SynthOptions {
  Config config;
  Generator generator = Generator::kNormal;
  std::uint64_t seed = 0;
  CheckpointFormat format = CheckpointFormat::kTorch;
  DType dtype = DType::kF32;  // of storage: f32 or bf16
};

/// Elements [first, first + count) of a tensor under its full key. HPG1 values are exact in f32.
void synth_values(Generator generator, std::uint64_t seed, const ExpectedTensor& tensor, std::int64_t first,
                  std::int64_t count, float* out);

/// Element i of HPG1's image: 8 bits under the name "input.u8".
std::uint8_t hpg1_pixel(std::uint64_t seed, std::uint64_t i);

/// Throws Error (kUsage) for sizes that the network cannot have.
void check_synthetic_sizes(const Config& config);

/// Writes the checkpoint, with a progress line, atomically. Throws Error (kIo), (kUsage) for sizes the
/// network cannot have.
void write_synthetic_checkpoint(const std::string& path, const SynthOptions& options, ThreadPool& pool);

/// model_config.yaml as published, with the sizes of `config`.
std::string synthetic_config_yaml(const Config& config);

}  // namespace sinew::hamer

// HaMeR's sizes: derived from the tensors, cross-checked with model_config.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/sources.h"

namespace sinew::hamer {

/// Fixed by the original code (spec hamer 1).
inline constexpr std::int64_t kImageRows = 256;
inline constexpr std::int64_t kImageColumns = 192;
inline constexpr std::int64_t kPatch = 16;
inline constexpr std::int64_t kPadding = 2;
inline constexpr std::int64_t kTokens = 192;  // 16 rows of 12
inline constexpr std::int64_t kBackboneHeadDim = 80;
inline constexpr std::int64_t kJoints = 16;
inline constexpr std::int64_t kPose = 6 * kJoints;
inline constexpr std::int64_t kBetas = 10;
inline constexpr std::int64_t kCam = 3;
inline constexpr std::int64_t kReadout = kPose + kBetas + kCam;  // 109
inline constexpr double kBackboneEps = 1e-6;
inline constexpr double kHeadEps = 1e-5;

struct Config {
  // Backbone
  std::int64_t embed = 1280;  // a multiple of 80: heads of 80
  std::int64_t mlp = 5120;
  std::int64_t depth = 32;
  // Head
  std::int64_t head_dim = 1024;   // width of the query token
  std::int64_t head_inner = 512;  // heads * dim per head
  std::int64_t head_heads = 8;
  std::int64_t head_mlp = 1024;
  std::int64_t head_depth = 6;
  std::int64_t ief_iters = 1;
  // Preprocessing and camera
  std::array<double, 3> image_mean = {0.485, 0.456, 0.406};
  std::array<double, 3> image_std = {0.229, 0.224, 0.225};
  double focal_length = 5000;

  std::int64_t heads() const { return embed / kBackboneHeadDim; }
};

/// One tensor of the published state_dict.
struct ExpectedTensor {
  std::string name;
  Shape shape;
};
/// Every tensor that inference needs, in the order of the network (spec hamer 2.2).
std::vector<ExpectedTensor> expected_tensors(const Config& config);

/// Sizes from the tensors' shapes; tensors that say nothing leave the published value. Throws Error
/// (kMismatch) when there is no HaMeR tensor at all, or when widths are not what the network can have.
Config derive_config(const Sources& sources, const std::string& file);

/// Reads what the file says about preprocessing, camera and head, and checks it against `config`. Throws
/// Error: kNotFound, kFormat (not YAML, wrong type), kMismatch (a size that contradicts the tensors; every
/// contradiction is named), kUnsupported (another backbone, head or image size).
void apply_yaml(const std::string& path, Config& config);
/// The same over text; `name` stands for the file in messages.
void apply_yaml_text(const std::string& text, const std::string& name, Config& config);

/// Throws one Error (kMismatch) that lists every missing, mis-shaped and wrongly typed tensor; tensors that
/// are not used are logged at debug level.
void check_tensors(const Sources& sources, const Config& config, const std::string& file);

}  // namespace sinew::hamer

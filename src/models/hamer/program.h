// HaMeR as a Program and the Plan of its weights.
#pragma once

#include <string>
#include <vector>

#include "models/hamer/config.h"
#include "plan/plan.h"
#include "plan/policy.h"
#include "program/program.h"

namespace sinew::hamer {

enum class Form : std::uint8_t {
  kFused,  // the exact reformulations of spec hamer 7
  kPlain,  // op by op as the original code; the fused form's oracle
};

struct BuildOptions {
  Policy policy = Policy::kF32;
  Form form = Form::kFused;
  /// The input is the crop's 8-bit pixels and normalisation is folded into the patch weights (fused form
  /// only).
  bool u8_input = false;
  /// Every stage of the goldens becomes an output; those that the fused form has no use for (say fc1 before
  /// GELU) are computed beside it.
  bool trace = false;
};

/// A program output under the name and shape that PyTorch users know: blocks [1,192,C], head tokens [1,1,D],
/// rotmat [1,16,3,3].
struct NamedOutput {
  std::string name;
  Shape shape;
};

/// Input "image" [3,256,192]: f32 (f64) normalised, or u8. Outputs always include pose6d, betas, cam, rotmat,
/// out157.
struct Graph {
  Program program;
  Plan plan;
  std::vector<NamedOutput> outputs;
};

/// `sources` are asked for shapes and dtypes only; no weight is read. Throws Error (kUnsupported) for u8
/// input with the plain form.
Graph build(const Config& config, const Sources& sources, const BuildOptions& options);

}  // namespace sinew::hamer

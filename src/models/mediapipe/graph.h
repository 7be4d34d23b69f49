// A TFLite graph as a Program and a Plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/tflite.h"
#include "plan/plan.h"
#include "plan/policy.h"
#include "plan/sources.h"
#include "program/program.h"

namespace sinew::mediapipe {

struct Graph {
  Program
      program;  // inputs "input" or "input0", "input1", ...; outputs "output0", "output1", ... in file order
  Plan plan;
  Sources sources;
};

/// Pictures lose their batch axis of one: [1,H,W,C] becomes [H,W,C]. Weights stored as f16 behind DEQUANTIZE
/// become f32 plan tensors (f64 with kF64) once, at load. ADD, PRELU and rectifiers go into the convolution
/// before them where nothing else reads it. Throws Error: kUnsupported (names operator, its number, its
/// version and what about it is not supported), kMismatch (a tensor whose shape or type does not fit).
Graph lower(const std::shared_ptr<const TfliteFile>& file, Policy policy);

}  // namespace sinew::mediapipe

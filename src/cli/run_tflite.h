// `sinew run` for TFLite networks.
#pragma once

#include <string>

#include "backend/machine.h"
#include "plan/policy.h"

namespace sinew::cli {

struct TfliteRun {
  std::string model;
  std::string in;
  std::string out;
  std::string backend;
  Policy policy = Policy::kF32;
  std::string only;  // a glob; empty: every output
  MachineOptions machine;
};

/// True for a regular file that begins as TFLite files do.
bool is_tflite_file(const std::string& path);

/// Runs the network once on the tensors of `in` and writes its outputs under the names of
/// models/mediapipe/graph.h and the shapes of the file. Throws Error.
void run_tflite(const TfliteRun& run);

}  // namespace sinew::cli

// The TFLite reader, and the lowering of what it accepts. Any sinew::Error is fine; every constant of what is
// accepted lies within the bytes, and every weight of a program can be made.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "io/tflite.h"
#include "models/mediapipe/graph.h"

namespace {

void read_constants(const sinew::TfliteFile& file) {
  unsigned sum = 0;
  for (const auto& [name, view] : file.tensors()) {
    if (view.shape.count() == 0) std::abort();
    sum += sinew::element(view, 0) > 0 ? 1 : 0;
    sum += sinew::element(view, view.shape.count() - 1) > 0 ? 1 : 0;
  }
  [[maybe_unused]] static volatile unsigned sink;
  sink = sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = sinew::parse_tflite(std::as_bytes(std::span(data, size)), "fuzz");
    read_constants(*file);
    const sinew::mediapipe::Graph graph = sinew::mediapipe::lower(file, sinew::Policy::kF32);
    sinew::PlanWeights weights(graph.plan, graph.sources);
    for (const auto& [name, entry] : graph.plan.entries()) {
      weights.load(name, entry.dtype, entry.shape);
      weights.release(name);
    }
  } catch (const sinew::Error& error) {
    if (std::string(error.what()).find('\n') != std::string::npos) std::abort();
  }
  return 0;
}

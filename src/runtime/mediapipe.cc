#include "runtime/mediapipe.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "models/mediapipe/graph.h"

namespace sinew {

std::unique_ptr<Session> compile_tflite(const std::shared_ptr<const TfliteFile>& file, Backend& backend,
                                        Policy policy) {
  const Stopwatch watch;
  mediapipe::Graph graph = mediapipe::lower(file, policy);
  PlanWeights weights(graph.plan, graph.sources);
  std::unique_ptr<Session> session = backend.compile(std::move(graph.program), weights);
  log(LogLevel::kInfo, "{}: {} operators, policy {} on {}, weights {:.1f} MB, arena {:.1f} MB, {:.0f} ms",
      file->path(), file->operators().size(), to_string(policy), backend.describe(),
      static_cast<double>(session->weight_bytes()) / 1e6, static_cast<double>(session->arena_bytes()) / 1e6,
      watch.elapsed_ms());
  return session;
}

std::unique_ptr<Session> open_tflite_session(const std::string& path, Backend& backend, Policy policy) {
  return compile_tflite(open_tflite(path), backend, policy);
}

}  // namespace sinew

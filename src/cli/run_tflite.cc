#include "cli/run_tflite.h"

#include <fnmatch.h>

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/support.h"
#include "io/checkpoint.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/tflite.h"
#include "runtime/mediapipe.h"

namespace sinew::cli {
namespace {

/// With the batch axis, as the network's file has it, or without, as the program has it.
void fill_input(const Checkpoint& file, const Shape& stated, const std::string& name, Session& session) {
  const Program& program = session.program();
  const Value& wanted = program.value(program.find(name));
  const TensorView* given = file.find(name);
  if (given == nullptr) {
    throw fail(ErrorCode::kMismatch, "{}: no tensor named {}; the network takes {} {}", file.path(), name,
               name, to_string(stated));
  }
  if (!(given->shape == stated || given->shape == wanted.shape)) {
    throw fail(ErrorCode::kMismatch, "{}: {} has shape {}, expected {}", file.path(), name,
               to_string(given->shape), to_string(stated));
  }
  if (!is_float(given->dtype)) {
    throw fail(ErrorCode::kMismatch, "{}: {} is {}, expected a float type", file.path(), name,
               to_string(given->dtype));
  }
  check_finite(file.path(), name, *given);
  convert_into(*given, wanted.dtype, session.input(name).data());
}

const TfliteTensor& tensor_of(const TfliteFile& file, int number) {
  return file.graph_tensors()[static_cast<std::size_t>(number)];
}

void write_outputs(const TfliteRun& run, const TfliteFile& file, const Session& session,
                   const std::string& backend) {
  std::map<std::string, TensorView> outputs;
  for (std::size_t i = 0; i < file.outputs().size(); ++i) {
    const std::string name = fmt::format("output{}", i);
    if (!run.only.empty() && ::fnmatch(run.only.c_str(), name.c_str(), 0) != 0) continue;
    outputs.emplace(name, reshaped(session.output(name), tensor_of(file, file.outputs()[i]).shape));
  }
  if (outputs.empty()) throw fail(ErrorCode::kUsage, "--only {}: no output has such a name", run.only);
  write_safetensors(run.out, outputs,
                    {{"model", file_name_of(run.model)},
                     {"backend", backend},
                     {"policy", std::string(to_string(run.policy))},
                     {"program", file_name_of(run.model)}});
}

}  // namespace

bool is_tflite_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && is_tflite(MappedFile::open(path).bytes());
}

void run_tflite(const TfliteRun& run) {
  const auto input = open_checkpoint(run.in);
  const auto file = open_tflite(run.model);
  const std::unique_ptr<Backend> backend = make_backend(run.backend, run.machine);
  const std::unique_ptr<Session> session = compile_tflite(file, *backend, run.policy);
  const std::vector<int>& ends = file->inputs();
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string name = ends.size() == 1 ? "input" : fmt::format("input{}", i);
    fill_input(*input, tensor_of(*file, ends[i]).shape, name, *session);
  }
  const Stopwatch watch;
  session->run();
  log(LogLevel::kInfo, "ran {} in {:.1f} ms", run.model, watch.elapsed_ms());
  write_outputs(run, *file, *session, backend->describe());
}

}  // namespace sinew::cli

// sinew run MODEL --in X.safetensors --out Y.safetensors
#include <fnmatch.h>

#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/cache_options.h"
#include "cli/command.h"
#include "cli/machine_options.h"
#include "cli/run_tflite.h"
#include "cli/support.h"
#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "runtime/runtime.h"

namespace sinew::cli {
namespace {

struct Options {
  std::string model;
  std::string in;
  std::string out;
  std::string backend = "cpu";
  std::string policy;
  std::string program = "fused";
  std::string input = "f32";
  std::string only;
  bool trace = false;
  MachineWords machine;
  CacheWords cache;
};

/// The image as the session wants it: [1,3,256,192] or [3,256,192]; f32 normalised, or u8.
void fill_input(const Checkpoint& file, Session& session) {
  const Program& program = session.program();
  const Value& wanted = program.value(program.find("image"));
  const TensorView* image = file.find("image");
  if (image == nullptr) {
    throw Error(ErrorCode::kMismatch, fmt::format("{}: no tensor named image", file.path()),
                "sinew crop makes such a file from a photo");
  }
  TensorView view = *image;
  const bool batched = view.shape.rank() == 4;
  if (batched && view.shape[0] != 1) {
    throw Error(
        ErrorCode::kMismatch,
        fmt::format("{}: image has a batch of {}, the program takes one image", file.path(), view.shape[0]),
        "run the images one by one");
  }
  if (batched) {
    view.shape = Shape(image->shape.dims().subspan(1));
    std::copy(image->strides.begin() + 1, image->strides.end(), view.strides.begin());
  }
  if (!(view.shape == wanted.shape)) {
    throw fail(ErrorCode::kMismatch, "{}: image has shape {}, expected [1,3,256,192]", file.path(),
               to_string(image->shape));
  }
  const bool is_u8 = view.dtype == DType::kU8;
  if (is_u8 != (wanted.dtype == DType::kU8) || !(is_u8 || is_float(view.dtype))) {
    throw Error(ErrorCode::kMismatch,
                fmt::format("{}: image is {}, the program takes {}", file.path(), to_string(view.dtype),
                            to_string(wanted.dtype)),
                "--input f32 takes normalised pixels, --input u8 takes bytes");
  }
  check_finite(file.path(), "image", view);
  convert_into(view, wanted.dtype, session.input("image").data());
}

/// bf16 values are written widened, so that any reader can use them; double ones stay double.
void write_outputs(const std::string& path, const HamerRuntime& runtime, const std::string& filter) {
  std::vector<Tensor> widened;
  std::map<std::string, TensorView> outputs;
  for (const hamer::NamedOutput& output : runtime.outputs) {
    if (!filter.empty() && fnmatch(filter.c_str(), output.name.c_str(), 0) != 0) continue;
    const TensorView value = runtime.session->output(output.name);
    const DType dtype = value.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    widened.push_back(convert(value, dtype));
    outputs.emplace(output.name, reshaped(widened.back(), output.shape));
  }
  if (outputs.empty()) throw fail(ErrorCode::kUsage, "--only {}: no output has such a name", filter);
  write_safetensors(path, outputs,
                    {{"model", runtime.description},
                     {"backend", runtime.backend},
                     {"policy", std::string(to_string(runtime.policy))},
                     {"program", runtime.session->program().name()}});
}

/// A TFLite network has one program, one kind of input and no named intermediates.
int run_network(const Options& options, Policy policy) {
  if (options.trace || options.program != "fused" || options.input != "f32") {
    throw fail(ErrorCode::kUnsupported,
               "{}: --trace, --program plain and --input u8 are HaMeR's, not TFLite's", options.model);
  }
  run_tflite({options.model, options.in, options.out, options.backend, policy, options.only,
              machine_options(options.machine)});
  return 0;
}

int run(const Options& options) {
  // This verb is for comparing: f32 unless told otherwise, on any machine.
  const Policy policy =
      policy_option(options.policy).value_or(options.backend == "cpu" ? Policy::kF32 : Policy::kF64);
  if (is_tflite_file(options.model)) return run_network(options, policy);
  RuntimeOptions runtime_options;
  runtime_options.backend = options.backend;
  runtime_options.policy = policy;
  runtime_options.machine = machine_options(options.machine);
  runtime_options.form = options.program == "plain" ? hamer::Form::kPlain : hamer::Form::kFused;
  runtime_options.u8_input = options.input == "u8";
  runtime_options.trace = options.trace;
  runtime_options.cache = cache_options(options.cache);
  runtime_options.observer = progress_observer();
  const auto input = open_checkpoint(options.in);
  HamerRuntime runtime = open_hamer(options.model, runtime_options);
  fill_input(*input, *runtime.session);
  const Stopwatch watch;
  runtime.session->run();
  log(LogLevel::kInfo, "ran {} in {:.1f} ms", runtime.session->program().name(), watch.elapsed_ms());
  write_outputs(options.out, runtime, options.only);
  return 0;
}

}  // namespace

std::function<int()> declare_run(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positional(
      "MODEL", options->model,
      "HaMeR checkpoint (the published folder, a .ckpt or a .safetensors file), or a .tflite network");
  command.required("--in", options->in,
                   "Safetensors file with `image` [1,3,256,192], f32 normalised or u8; for a network with "
                   "`input`, of its shape");
  command.required("--out", options->out,
                   "Safetensors file to write: pose6d, betas, cam, rotmat, out157; of a network output0, "
                   "output1, ...");
  command.flag("--trace", options->trace, "Also write every named intermediate (docs/NUMERICS.md)");
  command.option("--only", options->only, "Write only outputs whose name matches this glob");
  command.choice("--backend", options->backend, {"cpu", "reference"}, "What runs the program");
  command.option("--policy", options->policy,
                 "Numeric policy: f32 or bf16, on the reference also f64; default f32, reference f64");
  command.choice("--program", options->program, {"fused", "plain"},
                 "The exact reformulations, or op by op as the original");
  command.choice("--input", options->input, {"f32", "u8"},
                 "Normalised pixels, or bytes with the normalisation folded in");
  declare_machine(command, options->machine);
  declare_cache(command, options->cache);
  return [options] { return run(*options); };
}

}  // namespace sinew::cli

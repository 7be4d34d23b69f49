// sinew inspect FILE|DIR
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "io/checkpoint.h"
#include "io/inspect.h"
#include "models/hamer/load.h"

namespace sinew::cli {
namespace {

struct Options {
  std::string path;
  std::string filter;
  bool json = false;
  bool verify = false;
};

int run(const Options& options) {
  std::error_code ignored;
  std::string path = options.path;
  if (std::filesystem::is_directory(path, ignored)) path = hamer::find_checkpoint(path);
  const auto checkpoint = open_checkpoint(path);
  if (options.verify) checkpoint->verify();
  const InspectReport report = inspect_checkpoint(*checkpoint, options.filter);
  fmt::print("{}{}", options.json ? to_json(report) : to_text(report), options.json ? "\n" : "");
  return 0;
}

}  // namespace

std::function<int()> declare_inspect(Command& command) {
  const auto options = std::make_shared<Options>();
  command.positional("PATH", options->path,
                     "Checkpoint (safetensors, torch archive, npz), or a model folder");
  command.option("--filter", options->filter, "Only tensors whose name matches this glob");
  command.flag("--verify", options->verify,
               "Read everything and check the file's own checksums (torch archives, npz)");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] { return run(*options); };
}

}  // namespace sinew::cli

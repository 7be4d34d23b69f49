// sinew compare A.safetensors B.safetensors
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "io/checkpoint.h"
#include "io/compare_tensors.h"

namespace sinew::cli {
namespace {

struct Options {
  std::string a;
  std::string b;
  CompareOptions compare;
  bool json = false;
};

}  // namespace

std::function<int()> declare_compare(Command& command) {
  const auto options = std::make_shared<Options>();
  options->compare.rtol = 1e-5;
  options->compare.atol = 1e-6;
  command.positional("A", options->a, "Checkpoint (safetensors, torch archive or npz)");
  command.positional("B", options->b,
                     "The reference; its `f64.X` is preferred to X, `X.rows` is compared with rows of X");
  command.option("--rtol", options->compare.rtol,
                 "Allowed difference relative to the largest magnitude of the tensor");
  command.option("--atol", options->compare.atol, "Allowed absolute difference");
  command.flag("--strict", options->compare.strict, "Tensors that only one file has are a failure");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] {
    const auto a = open_checkpoint(options->a);
    const auto b = open_checkpoint(options->b);
    const CompareReport report = compare_checkpoints(*a, *b, options->compare);
    fmt::print("{}{}", options->json ? to_json(report) : to_text(report), options->json ? "\n" : "");
    return report.passed ? 0 : 1;
  };
}

}  // namespace sinew::cli

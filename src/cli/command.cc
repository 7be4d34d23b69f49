#include "cli/command.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>

#include "base/error.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/support.h"
#include "io/printable.h"

namespace sinew::cli {
namespace {

/// The callbacks of declared verbs, run after the parse.
struct Verbs {
  std::deque<std::pair<CLI::App*, std::function<int()>>> list;
};
Verbs& verbs() {
  static Verbs instance;
  return instance;
}

int report(const Error& error) {
  fmt::print(stderr, "sinew: error: {}\n", one_line(error));
  return error.code() == ErrorCode::kUsage ? 2 : 1;
}

/// What CLI11 says, but for a word that is no verb: it would only say that one is needed.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  const bool is_verb = std::find(names.begin(), names.end(), word) != names.end();
  if (word.empty() || word.front() == '-' || is_verb) return printable(error.what());
  return fmt::format("no verb is called {}; there are {}", printable(word), fmt::join(names, ", "));
}

int run_parsed() {
  try {
    for (const auto& [app, run] : verbs().list) {
      if (app->parsed()) return run();
    }
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "sinew: error: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sinew: error: {}\n", error.what());
    return 1;
  }
  return 2;
}

}  // namespace

void Command::flag(const std::string& name, bool& target, const std::string& help) {
  app_->add_flag(name, target, help);
}
void Command::option(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help)->capture_default_str();
}
void Command::option(const std::string& name, std::optional<std::string>& target, const std::string& help) {
  app_->add_option(name, target, help);
}
void Command::option(const std::string& name, double& target, const std::string& help) {
  app_->add_option(name, target, help)->capture_default_str();
}
void Command::option(const std::string& name, int& target, const std::string& help) {
  app_->add_option(name, target, help)->capture_default_str();
}
void Command::option(const std::string& name, std::uint64_t& target, const std::string& help) {
  // CLI11 would let -1 wrap around to 2^64 - 1.
  const auto not_negative = [](const std::string& text) {
    return text.starts_with('-') ? std::string("expected a whole number from 0 up") : std::string();
  };
  app_->add_option(name, target, help)->check(not_negative)->capture_default_str();
}
void Command::repeated(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  app_->add_option(name, target, help)->allow_extra_args(false);
}
void Command::choice(const std::string& name, std::string& target, const std::vector<std::string>& words,
                     const std::string& help) {
  app_->add_option(name, target, help)->check(CLI::IsMember(words))->capture_default_str();
}
void Command::required(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help)->required();
}
void Command::positional(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help)->required();
}
void Command::positional(const std::string& name, std::optional<std::string>& target,
                         const std::string& help) {
  app_->add_option(name, target, help);
}
void Command::positionals(const std::string& name, std::vector<std::string>& target,
                          const std::string& help) {
  app_->add_option(name, target, help)->required();
}
void Command::verb(const std::string& name, const std::string& help,
                   const std::function<std::function<int()>(Command&)>& declare) {
  CLI::App* app = app_->add_subcommand(name, help);
  Command command(app);
  if (std::function<int()> run = declare(command)) {
    verbs().list.emplace_back(app, std::move(run));
  } else {
    app->require_subcommand(1);
  }
}

int main_program(int argc, char** argv) {
  CLI::App app("Hands from photos, actions for robots: inference for embodied models.", "sinew");
  app.set_version_flag("--version", fmt::format("sinew {}", kVersion));
  app.require_subcommand(1);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Say what is being done, at debug level");
  Command root(&app);
  root.verb("hands", "Hands in photos: found, posed, drawn; records, pictures and meshes", declare_hands);
  root.verb("run", "Run a model on tensors from a file", declare_run);
  root.verb("compare", "Compare the tensors of two files", declare_compare);
  root.verb("plan", "Prepared weights", declare_plan);
  root.verb("bench", "Measure this machine at its work", declare_bench);
  root.verb("crop", "Cut the network's input out of a photo", declare_crop);
  root.verb("inspect", "List the tensors of a checkpoint", declare_inspect);
  root.verb("synth", "Make synthetic models and pictures", declare_synth);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "sinew: error: {} (see `sinew --help`)\n", explain(app, error, argc, argv));
    return 2;
  }
  if (verbose) set_log_level(LogLevel::kDebug);
  return run_parsed();
}

}  // namespace sinew::cli

// Verbs and their options: a thin face over CLI11, so that only command.cc compiles it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sinew::cli {

/// One verb while its options are being declared. Targets must outlive the parse; help texts end without a
/// full stop.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  void flag(const std::string& name, bool& target, const std::string& help);
  void option(const std::string& name, std::string& target, const std::string& help);
  /// Nothing when it is not given, so that an empty text is told from it.
  void option(const std::string& name, std::optional<std::string>& target, const std::string& help);
  void option(const std::string& name, double& target, const std::string& help);
  void option(const std::string& name, int& target, const std::string& help);
  void option(const std::string& name, std::uint64_t& target, const std::string& help);
  /// May be given several times, one value each time.
  void repeated(const std::string& name, std::vector<std::string>& target, const std::string& help);
  /// One of a few words.
  void choice(const std::string& name, std::string& target, const std::vector<std::string>& words,
              const std::string& help);
  void required(const std::string& name, std::string& target, const std::string& help);
  void positional(const std::string& name, std::string& target, const std::string& help);
  /// May be left out.
  void positional(const std::string& name, std::optional<std::string>& target, const std::string& help);
  void positionals(const std::string& name, std::vector<std::string>& target, const std::string& help);
  /// A verb below this one.
  void verb(const std::string& name, const std::string& help,
            const std::function<std::function<int()>(Command&)>& declare);

 private:
  CLI::App* app_;
};

/// A verb: declares its options and returns what runs after the parse; the int is the exit status.
using Declare = std::function<int()> (*)(Command&);

std::function<int()> declare_hands(Command& command);
std::function<int()> declare_run(Command& command);
std::function<int()> declare_compare(Command& command);
std::function<int()> declare_plan(Command& command);
std::function<int()> declare_bench(Command& command);
std::function<int()> declare_crop(Command& command);
std::function<int()> declare_inspect(Command& command);
std::function<int()> declare_synth(Command& command);

/// The whole program: parses, runs one verb, reports errors on stderr in one line. 0 done, 1 failed, 2 wrong
/// usage.
int main_program(int argc, char** argv);

}  // namespace sinew::cli

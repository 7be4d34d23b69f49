// sinew bench load MODEL: a cold start and warm ones, each in a process of its own.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "cli/bench.h"
#include "cli/json_output.h"
#include "io/text_table.h"
#include "plan/cache.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options : BenchOptions {
  int starts = 5;
  bool json = false;
};

/// A folder for the cache of this bench, on the disk of the real one; gone at the end.
class TemporaryCache {
 public:
  TemporaryCache() : path_(fmt::format("{}/bench-{}", cache_root(), ::getpid())) {
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) throw fail(ErrorCode::kIo, "{}: {}", path_, error.message());
  }
  ~TemporaryCache() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryCache(const TemporaryCache&) = delete;
  TemporaryCache& operator=(const TemporaryCache&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What a pipe's other end writes until it closes.
std::string read_all(int descriptor) {
  std::string out;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// Runs this program once more with these words and this cache; its standard output. Throws Error (kIo).
std::string run_self(const std::vector<std::string>& words, const std::string& cache) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw fail(ErrorCode::kIo, "pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<std::string> copies = words;
  copies.insert(copies.begin(), "sinew");
  std::vector<char*> arguments;
  arguments.reserve(copies.size() + 1);
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> variables = {"SINEW_CACHE=" + cache};
  for (char** at = environ; *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with("SINEW_CACHE=")) variables.emplace_back(*at);
  }
  std::vector<char*> environment;
  environment.reserve(variables.size() + 1);
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out = error == 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  if (error != 0) throw fail(ErrorCode::kIo, "starting sinew again: {}", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw fail(ErrorCode::kIo, "the measured process failed; its error is above");
  return out;
}

Json start(const Options& options, const std::string& cache, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"bench",
                                    "start",
                                    options.model,
                                    "--threads",
                                    std::to_string(options.machine.threads),
                                    "--runs",
                                    std::to_string(options.runs)};
  if (!options.policy.empty()) words.insert(words.end(), {"--policy", options.policy});
  if (!options.machine.isa.empty()) words.insert(words.end(), {"--isa", options.machine.isa});
  if (options.machine.pin) words.emplace_back("--pin");
  if (options.machine.latency) words.emplace_back("--latency");
  words.insert(words.end(), more.begin(), more.end());
  return Json::parse(run_self(words, cache));
}

double median(const std::vector<Json>& starts, const char* field) {
  std::vector<double> values;
  values.reserve(starts.size());
  for (const Json& one : starts) values.push_back(one.at(field));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Json measure(const Options& options) {
  const TemporaryCache cache;
  Progress progress("starts", static_cast<std::uint64_t>(options.starts) + 2, ProgressUnit::kItems);
  const Json cold = start(options, cache.path(), {});
  progress.advance(1);
  // The first warm start checks what the cold one wrote; it is warm, but not what comes every day.
  const Json checking = start(options, cache.path(), {"--prefault"});
  progress.advance(1);
  std::vector<Json> warm;
  for (int i = 0; i < options.starts; ++i) {
    warm.push_back(start(options, cache.path(), {"--prefault"}));
    progress.advance(1);
    if (warm.back().at("load").at("path") != "warm")
      throw fail(ErrorCode::kIo, "a start that should be warm was {}",
                 warm.back().at("load").at("path").get<std::string>());
  }
  return {{"model", cold.at("model")},
          {"policy", cold.at("policy")},
          {"backend", cold.at("backend")},
          {"cold_s", cold.at("ready_s")},
          {"checking_s", checking.at("ready_s")},
          {"warm_s", median(warm, "ready_s")},
          {"first_run_ms", median(warm, "first_run_ms")},
          {"steady_run_ms", median(warm, "steady_run_ms")},
          {"rss_mb", median(warm, "rss_mb")},
          {"cold_peak_rss_mb", cold.at("peak_rss_at_start_mb")},
          {"device_tier_mb", cold.at("load").at("device_bytes").get<double>() / 1e6},
          {"cold", cold.at("load")},
          {"warm", warm.back().at("load")}};
}

void print_text(const Json& json) {
  const auto number = [&](const char* field) { return json.at(field).get<double>(); };
  std::vector<std::vector<std::string>> rows = {
      {"cold start", fmt::format("{:.2f} s", number("cold_s"))},
      {"warm start, files checked", fmt::format("{:.3f} s", number("checking_s"))},
      {"warm start",
       fmt::format("{:.3f} s, 1/{:.0f} of cold", number("warm_s"), number("cold_s") / number("warm_s"))},
      {"first run after it", fmt::format("{:.1f} ms, {:.2f} of steady", number("first_run_ms"),
                                         number("first_run_ms") / number("steady_run_ms"))},
      {"steady run", fmt::format("{:.1f} ms", number("steady_run_ms"))},
      {"resident, warm", fmt::format("{:.0f} MB", number("rss_mb"))},
      {"peak of the cold start", fmt::format("{:.0f} MB", number("cold_peak_rss_mb"))},
      {"device tier", fmt::format("{:.0f} MB", number("device_tier_mb"))}};
  fmt::print("{}, policy {}, {}\n{}", json.at("model").get<std::string>(),
             json.at("policy").get<std::string>(), json.at("backend").get<std::string>(),
             render_table({{"what"}, {"measured"}}, rows));
}

int load(const Options& options) {
  if (options.starts < 1) throw fail(ErrorCode::kUsage, "--starts {}: expected at least 1", options.starts);
  const Json json = measure(options);
  if (options.json) {
    print_json(json);
  } else {
    print_text(json);
  }
  return 0;
}

}  // namespace

std::function<int()> declare_bench_load(Command& command) {
  const auto options = std::make_shared<Options>();
  declare_start(command, *options);
  command.option("--starts", options->starts, "Warm starts; the median counts");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] { return load(*options); };
}

std::function<int()> declare_bench(Command& command) {
  command.verb("load", "Cold and warm starts of a model, its first run, its memory", declare_bench_load);
  command.verb("peak", "Products per second and memory bandwidth of this machine at most",
               declare_bench_peak);
  command.verb("start", "One start and its first runs, as JSON; what bench load runs", declare_bench_start);
  return {};
}

}  // namespace sinew::cli

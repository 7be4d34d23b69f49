// sinew bench peak: what this machine can do at most.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/cpu/peak.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/progress.h"
#include "cli/bench.h"
#include "cli/json_output.h"
#include "io/text_table.h"

namespace sinew::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  int threads = 0;
  bool json = false;
};

/// What is read: more than most caches hold, or what a second-level cache holds.
struct Reading {
  const char* name;
  std::size_t bytes;  // of all threads
};

Json measure(int most_threads) {
  const std::vector<cpu::PeakLoop> loops = cpu::peak_loops();
  const std::vector<int> counts = most_threads > 1 ? std::vector<int>{1, most_threads} : std::vector<int>{1};
  Progress progress("measurements", counts.size() * (loops.size() + 2), ProgressUnit::kItems);
  Json products = Json::array();
  Json reads = Json::array();
  for (const int threads : counts) {
    ThreadPool pool(threads);
    for (const cpu::PeakLoop& loop : loops) {
      products.push_back({{"operand", loop.operand},
                          {"instruction", loop.instruction},
                          {"threads", threads},
                          {"gflops", cpu::measure_peak(loop, pool)}});
      progress.advance(1);
    }
    const auto each = static_cast<std::size_t>(threads);
    for (const Reading& reading : {Reading{"memory", std::size_t{512} << 20},
                                   Reading{"cache, 512 kB a thread", each * (std::size_t{512} << 10)}}) {
      reads.push_back({{"from", reading.name},
                       {"bytes", reading.bytes},
                       {"threads", threads},
                       {"gb_s", cpu::measure_read_bandwidth(reading.bytes, pool)}});
      progress.advance(1);
    }
  }
  return {{"cpu", cpu_name()},
          {"isa", to_string(best_isa())},
          {"amx", best_isa() >= Isa::kAmx},
          {"products", products},
          {"reads", reads}};
}

const char* unit_of(const std::string& operand) {
  return operand == "f32" || operand == "bf16" ? "GFLOP/s" : "GOP/s";
}

void print_text(const Json& json) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : json.at("products")) {
    rows.push_back({one.at("operand"), one.at("instruction"), std::to_string(one.at("threads").get<int>()),
                    fmt::format("{:.1f} {}", one.at("gflops").get<double>(), unit_of(one.at("operand")))});
  }
  for (const Json& one : json.at("reads")) {
    rows.push_back({"read", one.at("from"), std::to_string(one.at("threads").get<int>()),
                    fmt::format("{:.1f} GB/s", one.at("gb_s").get<double>())});
  }
  fmt::print("{}, {}{}\n{}", json.at("cpu").get<std::string>(), json.at("isa").get<std::string>(),
             json.at("amx").get<bool>() ? " (AMX is here and is not measured)" : "",
             render_table({{"what"}, {"how"}, {"threads", true}, {"at most", true}}, rows));
}

int peak(const Options& options) {
  if (options.threads < 0) throw fail(ErrorCode::kUsage, "--threads {}: expected 0 or more", options.threads);
  const Json json = measure(options.threads == 0 ? available_cpus() : options.threads);
  if (options.json) {
    print_json(json);
  } else {
    print_text(json);
  }
  return 0;
}

}  // namespace

std::function<int()> declare_bench_peak(Command& command) {
  const auto options = std::make_shared<Options>();
  command.option("--threads", options->threads, "Measured beside one thread; 0: all CPUs");
  command.flag("--json", options->json, "Print one JSON object");
  return [options] { return peak(*options); };
}

}  // namespace sinew::cli

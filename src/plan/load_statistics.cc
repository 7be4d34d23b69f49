#include "plan/load_statistics.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace sinew {

std::string_view to_string(LoadPath path) {
  switch (path) {
    case LoadPath::kUncached:
      return "uncached";
    case LoadPath::kCold:
      return "cold";
    case LoadPath::kPartial:
      return "partial";
    case LoadPath::kWarm:
      return "warm";
  }
  return "unknown";
}

namespace {

struct Phase {
  const char* name;
  double LoadStatistics::* seconds;
};
constexpr std::array kPhases = {
    Phase{"identity", &LoadStatistics::identity_s}, Phase{"open", &LoadStatistics::open_s},
    Phase{"wait", &LoadStatistics::wait_s},         Phase{"find", &LoadStatistics::find_s},
    Phase{"make", &LoadStatistics::make_s},         Phase{"pack", &LoadStatistics::pack_s},
    Phase{"write", &LoadStatistics::write_s},       Phase{"prefault", &LoadStatistics::prefault_s},
};

}  // namespace

std::string summary(const LoadStatistics& s) {
  std::string text =
      fmt::format("{}{} start in {:.3f} s: {} weights found, {} made, {:.2f} GB", s.forced ? "forced " : "",
                  to_string(s.path), s.total_s, s.warm, s.cold, static_cast<double>(s.device_bytes) / 1e9);
  if (s.damaged > 0) text += fmt::format(", {} files damaged", s.damaged);
  if (!s.not_kept.empty()) text += fmt::format(", not kept ({})", s.not_kept);
  std::string phases;
  for (const Phase& phase : kPhases) {
    // What took less than a millisecond is nobody's concern.
    if (s.*phase.seconds < 1e-3) continue;
    phases += fmt::format("{}{} {:.3f} s", phases.empty() ? "" : ", ", phase.name, s.*phase.seconds);
  }
  return phases.empty() ? text : text + " (" + phases + ")";
}

std::string to_json(const LoadStatistics& s) {
  nlohmann::ordered_json json = {{"path", to_string(s.path)},
                                 {"forced", s.forced},
                                 {"not_kept", s.not_kept},
                                 {"host_folder", s.host_folder},
                                 {"device_folder", s.device_folder},
                                 {"n_warm", s.warm},
                                 {"n_cold", s.cold},
                                 {"n_host_warm", s.host_warm},
                                 {"n_host_cold", s.host_cold},
                                 {"n_in_place", s.in_place},
                                 {"n_damaged", s.damaged},
                                 {"n_host_tensors", s.host_tensors},
                                 {"device_bytes", s.device_bytes},
                                 {"host_bytes_made", s.host_bytes_made}};
  for (const Phase& phase : kPhases) json["seconds"][phase.name] = s.*phase.seconds;
  json["seconds"]["total"] = s.total_s;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace sinew

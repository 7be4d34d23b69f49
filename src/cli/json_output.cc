#include "cli/json_output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace sinew::cli {

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace sinew::cli

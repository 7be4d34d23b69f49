// JSON on standard output.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sinew::cli {

/// One line. Paths and names may hold any bytes: what is not UTF-8 is replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace sinew::cli

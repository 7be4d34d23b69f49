#include "cli/quantities.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace sinew::cli {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The number before a unit, times the unit, rounded up.
double parse(const std::string& option, const std::string& text, std::span<const Unit> units, double most,
             std::string_view example) {
  const auto letters = std::find_if_not(text.rbegin(), text.rend(), is_letter).base();
  const std::string_view word(text.data() + (letters - text.begin()),
                              static_cast<std::size_t>(text.end() - letters));
  const auto unit = std::ranges::find_if(units, [&](const Unit& u) { return same_letters(u.name, word); });
  const auto number = parse_number(std::string(text.begin(), letters));
  if (unit == units.end() || !number || !std::isfinite(*number) || std::signbit(*number)) {
    std::vector<std::string_view> names;
    for (const Unit& u : units) names.push_back(u.name);
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{} is '{}', expected a number and a unit: {}", option, text, fmt::join(names, ", ")),
        fmt::format("for example {}", example));
  }
  const double amount = std::ceil(*number * unit->size);
  if (amount > most)
    throw fail(ErrorCode::kUsage, "{} is '{}', expected {}{} at most", option, text,
               std::floor(most / unit->size), unit->name);
  return amount;
}

}  // namespace

std::chrono::seconds parse_duration(const std::string& option, const std::string& text) {
  static constexpr Unit kUnits[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
  // Ages are counted in nanoseconds, of which 64 bits hold 292 years.
  constexpr double kMost = 36500.0 * 86400;
  return std::chrono::seconds(static_cast<std::int64_t>(parse(option, text, kUnits, kMost, "30d")));
}

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
  static constexpr Unit kUnits[] = {{"B", 1},        {"KB", 1e3},     {"MB", 1e6},
                                    {"GB", 1e9},     {"TB", 1e12},    {"KiB", 0x1p10},
                                    {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  return static_cast<std::uint64_t>(parse(option, text, kUnits, 0x1p62, "20GB"));
}

std::string human_age(std::chrono::seconds age) {
  const std::int64_t seconds = std::max<std::int64_t>(age.count(), 0);
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / 86400);
}

std::string iso_utc(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds.count())));
}

}  // namespace sinew::cli

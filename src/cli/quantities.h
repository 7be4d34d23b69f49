// Times and sizes as people write and read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sinew::cli {

/// "90s", "15m", "12h", "30d", "2w"; fractions are rounded up to a second. `option` is whose value it is, for
/// the message. Throws Error (kUsage) for anything else, and beyond 100 years.
std::chrono::seconds parse_duration(const std::string& option, const std::string& text);

/// Bytes from "20GB": B, KB, MB, GB, TB (decimal, as they are printed), KiB, MiB, GiB, TiB, in letters of
/// either case; fractions are rounded up to a byte. Throws Error (kUsage) for anything else, and beyond 2^62.
std::uint64_t parse_bytes(const std::string& option, const std::string& text);

/// Whole units, rounded down: "59 s", "59 min", "47 h", "2 d"; "0 s" for what lies in the future.
std::string human_age(std::chrono::seconds age);

/// "2026-11-30T19:54:38Z", seconds rounded down.
std::string iso_utc(std::chrono::system_clock::time_point time);

}  // namespace sinew::cli

// What happened while the weights of a session were loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinew {

/// Where the resident weights came from.
enum class LoadPath : std::uint8_t {
  kUncached,  // no cache: all were made
  kCold,      // all were made, though there is a cache
  kPartial,   // some were made
  kWarm,      // none was made: files were mapped
};
/// "uncached", "cold", "partial", "warm"
std::string_view to_string(LoadPath path);

struct LoadStatistics {
  LoadPath path = LoadPath::kUncached;
  bool forced = false;
  std::string not_kept;  // why what was made is not in the cache; empty when it is, or nothing was made
  std::string host_folder, device_folder;  // of the two tiers; empty where there is none

  std::size_t warm = 0, cold = 0;            // forms of weights that were found, that were made (and kept)
  std::size_t host_warm = 0, host_cold = 0;  // plan tensors for them that were found, that were made
  std::size_t in_place = 0;                  // and that the checkpoint holds as the plan wants them
  std::size_t damaged = 0;                   // files that were there but not whole
  std::size_t host_tensors = 0;              // tensors that stay on the host
  std::uint64_t device_bytes = 0;            // resident forms
  std::uint64_t host_bytes_made = 0;

  // Seconds. `total` is all of the start, from opening the checkpoint; the others are parts of it.
  double identity_s = 0;  // digest of the checkpoint, or looking it up
  double open_s = 0;      // manifests
  double wait_s = 0;      // for another process that prepares the same
  double find_s = 0;      // mapping and checking files
  double make_s = 0;      // transforms: reading, computing in double, rounding
  double pack_s = 0;      // forms for the backend
  double write_s = 0;     // files, synced
  double prefault_s = 0;
  double total_s = 0;
};

/// "warm start in 0.083 s: 412 weights found, 0 made, 1.26 GB (find 0.01 s, ...)"
std::string summary(const LoadStatistics& statistics);
/// All fields, for --json.
std::string to_json(const LoadStatistics& statistics);

}  // namespace sinew

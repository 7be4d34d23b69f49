// Digests of whole checkpoints, computed once and remembered in the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "plan/digest.h"
#include "plan/file_layer.h"

namespace sinew {

/// Bytes done since the last call.
using ByteProgress = std::function<void(std::uint64_t bytes)>;

/// The digest of a checkpoint's files: every byte of every file, in the order given; names and places do not
/// count. Digests of files are remembered in `<cache>/digests.json` for as long as their stamps hold; a file
/// that changed less than 0.1 s before it was read is not, because a later change could leave the same times.
/// A `cache` that is empty or cannot be written means not remembered; a damaged digests.json counts as empty.
/// Two processes may do this at once. `always`: reads the files whatever is remembered. Throws Error:
/// kNotFound, kFormat (a folder or device), kIo (unreadable, or changed while it was read).
Digest content_digest(std::span<const std::string> paths, const std::string& cache, bool always = false,
                      const ByteProgress& progress = {}, FileLayer& files = system_files());

/// What content_digest() has to read at most, for its progress; files that are not there count nothing.
std::uint64_t bytes_of_files(std::span<const std::string> paths);

}  // namespace sinew

// Systematic damage to well-formed files: a parser answers each with a value or a sinew::Error, and nothing
// else.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sinew {

/// Hands `parse` a copy of exactly this size on the heap, so that a sanitizer sees any read past its end.
/// Returns whether it was accepted.
inline bool parse_outcome(std::string_view bytes,
                          const std::function<void(std::span<const std::byte>)>& parse) {
  const auto copy = std::make_unique<std::byte[]>(bytes.size());
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), copy.get());
  try {
    parse({copy.get(), bytes.size()});
    return true;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()), "");
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << "an error is one line";
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not a sinew::Error: " << e.what();
  }
  return false;
}

/// Every proper prefix (in steps of `step`) must be refused.
inline void expect_truncations_refused(const std::string& file,
                                       const std::function<void(std::span<const std::byte>)>& parse,
                                       std::size_t step = 1) {
  for (std::size_t size = 0; size < file.size(); size += step) {
    EXPECT_FALSE(parse_outcome(std::string_view(file).substr(0, size), parse))
        << "accepted when cut to " << size << " bytes";
  }
}

/// `rounds` copies with one to four bytes changed.
inline void survive_flips(const std::string& file,
                          const std::function<void(std::span<const std::byte>)>& parse, int rounds) {
  std::mt19937 random(20240607);
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = file;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      // Small steps as well as any value: lengths that are off by one reach deeper than random ones.
      char& byte = damaged[random() % damaged.size()];
      byte = static_cast<char>(random() % 2 == 0 ? byte + static_cast<int>(random() % 3) - 1
                                                 : static_cast<int>(random()));
    }
    parse_outcome(damaged, parse);
  }
}

}  // namespace sinew

// Small hashes and the mixer that seeded generators are made of.
#pragma once

#include <cstdint>
#include <string_view>

namespace sinew {

/// FNV-1a, 64 bits.
constexpr std::uint64_t fnv1a64(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// The increment of splitmix64 (2^64 divided by the golden ratio).
inline constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;

/// The output function of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64-bit integers.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace sinew

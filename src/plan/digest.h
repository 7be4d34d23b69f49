// Digests of 128 bits (XXH3-128): fast enough to read a checkpoint at the speed of memory. They find damage
// and tell contents apart; they do not resist somebody who makes collisions on purpose.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sinew {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Digest&) const = default;
  /// 32 lower-case hexadecimal digits, as `xxh128sum` prints them.
  std::string hex() const;
  /// The inverse of hex(); nothing for any other text.
  static std::optional<Digest> parse(std::string_view text);
};

/// The digest of bytes that come in pieces; where they are cut makes no difference.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// Of everything so far; more may follow.
  Digest digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::string_view text);

}  // namespace sinew

// The one file that knows xxHash.
#include "plan/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>
#include <new>

namespace sinew {
namespace {

Digest of(const XXH128_hash_t& hash) { return {hash.high64, hash.low64}; }

std::optional<std::uint64_t> parse_half(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): `end` is the size information
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::optional<Digest> Digest::parse(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = parse_half(text.substr(0, 16));
  const auto low = parse_half(text.substr(16));
  if (!high || !low) return std::nullopt;
  const Digest out{*high, *low};
  if (out.hex() != text) return std::nullopt;  // upper case, a sign
  return out;
}

struct Digester::State {
  XXH3_state_t* stream = XXH3_createState();
  State() {
    if (stream == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(stream);
  }
  ~State() { XXH3_freeState(stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digester::Digester() : state_(std::make_unique<State>()) {}
Digester::~Digester() = default;

void Digester::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_->stream, bytes.data(), bytes.size());
}

void Digester::update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }

Digest Digester::digest() const { return of(XXH3_128bits_digest(state_->stream)); }

Digest digest_of(std::span<const std::byte> bytes) { return of(XXH3_128bits(bytes.data(), bytes.size())); }

Digest digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace sinew

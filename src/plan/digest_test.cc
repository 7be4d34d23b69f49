#include "plan/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace sinew {
namespace {

/// Against xxhsum, version 0.8.1: printf '%s' TEXT | xxh128sum
TEST(Digest, IsXxh3Of128Bits) {
  EXPECT_EQ(digest_of("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of("abc").hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, PiecesMakeNoDifference) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7 + i / 256);
  const Digest whole = digest_of(text);
  for (const std::size_t step : {1UL, 13UL, 256UL, 1024UL, 4999UL}) {
    Digester digester;
    for (std::size_t at = 0; at < text.size(); at += step)
      digester.update(std::string_view(text).substr(at, step));
    EXPECT_EQ(digester.digest(), whole) << step;
  }
  Digester more;
  more.update("a");
  EXPECT_EQ(more.digest(), digest_of("a"));
  more.update("bc");
  EXPECT_EQ(more.digest(), digest_of("abc"));
}

TEST(Digest, EveryBitCounts) {
  std::string text(300, 'x');
  const Digest whole = digest_of(text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(digest_of(text), whole) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
  }
}

TEST(Digest, ParsesWhatItPrints) {
  for (const Digest& digest : {Digest{}, Digest{1, 2}, digest_of("abc"), Digest{~0ULL, ~0ULL}}) {
    EXPECT_EQ(Digest::parse(digest.hex()), digest);
  }
  for (const char* text : {"", "0", "06b05ab6733a618578af5f94892f395", "06b05ab6733a618578af5f94892f39500",
                           "06B05AB6733A618578AF5F94892F3950", "-6b05ab6733a618578af5f94892f3950",
                           "06b05ab6733a6185 8af5f94892f3950", "06b05ab6733a6185+8af5f94892f3950",
                           "0x05ab6733a618578af5f94892f39500"}) {
    EXPECT_FALSE(Digest::parse(text)) << text;
  }
  EXPECT_LT((Digest{1, 9}), (Digest{2, 0}));
}

}  // namespace
}  // namespace sinew

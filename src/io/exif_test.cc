#include "io/exif.h"

#include <gtest/gtest.h>

#include "io/image_test_files.h"

namespace sinew {
namespace {

using test_files::bytes_of;
using test_files::exif_block;

TEST(Exif, ReadsBothByteOrdersAndBothTypes) {
  for (const bool big_endian : {false, true}) {
    for (const bool as_long : {false, true}) {
      for (unsigned orientation = 1; orientation <= 8; ++orientation) {
        EXPECT_EQ(exif_orientation(bytes_of(exif_block(big_endian, orientation, as_long))),
                  static_cast<int>(orientation));
      }
    }
  }
}

TEST(Exif, IsUprightWhenTheValueIsOutOfRange) {
  for (const unsigned orientation : {0U, 9U, 255U, 65535U}) {
    EXPECT_EQ(exif_orientation(bytes_of(exif_block(true, orientation))), 1);
  }
}

TEST(Exif, IsUprightForEveryCutBeforeTheValue) {
  const std::string block = exif_block(false, 6);
  constexpr std::size_t kValueEnd = 8 + 2 + 12 + 8 + 2;
  for (std::size_t size = 0; size < block.size(); ++size) {
    EXPECT_EQ(exif_orientation(bytes_of(block.substr(0, size))), size < kValueEnd ? 1 : 6) << size;
  }
}

TEST(Exif, SurvivesOffsetsAndCountsThatPointOutside) {
  std::string block = exif_block(false, 6);
  for (int i = 4; i < 8; ++i) block[i] = '\xFF';  // directory at 4 GB
  EXPECT_EQ(exif_orientation(bytes_of(block)), 1);
  block = exif_block(false, 6);
  block[8] = block[9] = '\xFF';  // 65535 entries
  block[22] = 0;                 // and none of them the orientation
  EXPECT_EQ(exif_orientation(bytes_of(block)), 1);
}

TEST(Exif, SurvivesRandomBytes) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string block = exif_block(i % 2 == 0, 1 + i % 8);
    for (int k = 0; k < 1 + i % 5; ++k) block[random() % block.size()] = static_cast<char>(random());
    const int orientation = exif_orientation(bytes_of(block));
    EXPECT_GE(orientation, 1);
    EXPECT_LE(orientation, 8);
  }
}

}  // namespace
}  // namespace sinew

#include "base/progress.h"

#include <gtest/gtest.h>

namespace sinew {
namespace {

TEST(Progress, LineHasCountRateAndTimeLeft) {
  EXPECT_EQ(Progress::line("hands", 3, 12, ProgressUnit::kItems, 6),
            "hands  3 / 12  25 %  0.50/s  18 s left");
  EXPECT_EQ(Progress::line("writing x", 1'200'000'000, 2'400'000'000, ProgressUnit::kBytes, 4),
            "writing x  1.20 GB / 2.40 GB  50 %  300.0 MB/s  4 s left");
  EXPECT_EQ(Progress::line("empty", 0, 0, ProgressUnit::kItems, 0), "empty  0 / 0  100 %  0.00/s  ");
}

TEST(Progress, BytesInDecimalUnits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1500), "1.50 kB");
  EXPECT_EQ(human_bytes(2'681'754'563), "2.68 GB");
}

TEST(Progress, QuietWithoutATerminal) {
  testing::internal::CaptureStderr();  // redirects to a file
  {
    Progress progress("x", 10, ProgressUnit::kItems);
    for (int i = 0; i < 10; ++i) progress.advance(1);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace sinew

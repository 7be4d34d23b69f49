#include "cli/quantities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace sinew::cli {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "was taken";
  return {};
}

TEST(Quantities, DurationsHaveUnits) {
  EXPECT_EQ(parse_duration("--x", "90s"), seconds(90));
  EXPECT_EQ(parse_duration("--x", "15m"), seconds(900));
  EXPECT_EQ(parse_duration("--x", "12h"), seconds(43200));
  EXPECT_EQ(parse_duration("--x", "30d"), seconds(2592000));
  EXPECT_EQ(parse_duration("--x", "2w"), seconds(1209600));
  EXPECT_EQ(parse_duration("--x", "1.5d"), seconds(129600));
  EXPECT_EQ(parse_duration("--x", "0s"), seconds(0));
  EXPECT_EQ(parse_duration("--x", "0.1s"), seconds(1)) << "rounded down more would be removed than was asked";
  EXPECT_EQ(parse_duration("--x", "36500d"), seconds(3153600000));
}

TEST(Quantities, SizesHaveUnits) {
  EXPECT_EQ(parse_bytes("--x", "0B"), 0U);
  EXPECT_EQ(parse_bytes("--x", "512B"), 512U);
  EXPECT_EQ(parse_bytes("--x", "3KB"), 3000U);
  EXPECT_EQ(parse_bytes("--x", "1.5kB"), 1500U);
  EXPECT_EQ(parse_bytes("--x", "2mb"), 2000000U);
  EXPECT_EQ(parse_bytes("--x", "20GB"), 20000000000U);
  EXPECT_EQ(parse_bytes("--x", "1TB"), 1000000000000U);
  EXPECT_EQ(parse_bytes("--x", "3KiB"), 3072U);
  EXPECT_EQ(parse_bytes("--x", "0.5MiB"), 524288U);
  EXPECT_EQ(parse_bytes("--x", "20GiB"), 21474836480U);
  EXPECT_EQ(parse_bytes("--x", "2TiB"), 2199023255552U);
  EXPECT_EQ(parse_bytes("--x", "4194304TiB"), std::uint64_t{1} << 62);
}

TEST(Quantities, NonsenseIsRefusedByName) {
  for (const std::string& text : std::vector<std::string>{
           "",     "30",  "d",    "-1d",  "-0d", "nand", "nan d", "infd", "inf",        "30 d",
           "30dd", "30x", "3,5d", "0x3d", "d30", " 30d", "30d ",  "1e",   "30\xc3\xa9", "30min"}) {
    EXPECT_THAT(refusal([&] { parse_duration("--unused-for", text); }),
                AllOf(HasSubstr("--unused-for is '" + text + "'"), HasSubstr("s, m, h, d, w")))
        << text;
    EXPECT_THAT(refusal([&] { parse_bytes("--max-size", text); }),
                AllOf(HasSubstr("--max-size is '" + text + "'"), HasSubstr("GiB")))
        << text;
  }
  EXPECT_THAT(refusal([&] { parse_duration("--x", "1e300w"); }), HasSubstr("5214w at most"));
  EXPECT_THAT(refusal([&] { parse_duration("--x", "36501d"); }), HasSubstr("36500d at most"));
  EXPECT_THAT(refusal([&] { parse_bytes("--x", "1e300GB"); }), HasSubstr("4611686018GB at most"));
}

TEST(Quantities, AgesAreWholeUnits) {
  EXPECT_EQ(human_age(seconds(-5)), "0 s");
  EXPECT_EQ(human_age(seconds(59)), "59 s");
  EXPECT_EQ(human_age(seconds(60)), "1 min");
  EXPECT_EQ(human_age(seconds(3599)), "59 min");
  EXPECT_EQ(human_age(seconds(3600)), "1 h");
  EXPECT_EQ(human_age(std::chrono::hours(48) - seconds(1)), "47 h");
  EXPECT_EQ(human_age(std::chrono::hours(48)), "2 d");
}

TEST(Quantities, TimesAreUtc) {
  using std::chrono::system_clock;
  EXPECT_EQ(iso_utc(system_clock::time_point()), "1970-01-01T00:00:00Z");
  EXPECT_EQ(iso_utc(system_clock::time_point(seconds(1709164799))), "2024-02-28T23:59:59Z");
  EXPECT_EQ(iso_utc(system_clock::time_point(seconds(1709164799) + std::chrono::milliseconds(999))),
            "2024-02-28T23:59:59Z");
  EXPECT_EQ(iso_utc(system_clock::time_point(std::chrono::milliseconds(-1))), "1969-12-31T23:59:59Z");
}

}  // namespace
}  // namespace sinew::cli

#include "capi/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "capi/struct_size.h"

namespace sinew::capi {
namespace {

using testing::HasSubstr;

TEST(Guard, EveryCodeHasItsOwnStatusAndKeepsMessageAndHint) {
  const std::pair<ErrorCode, sinew_status> pairs[] = {
      {ErrorCode::kUsage, SINEW_ERROR_USAGE},
      {ErrorCode::kNotFound, SINEW_ERROR_NOT_FOUND},
      {ErrorCode::kIo, SINEW_ERROR_IO},
      {ErrorCode::kFormat, SINEW_ERROR_FORMAT},
      {ErrorCode::kMismatch, SINEW_ERROR_MISMATCH},
      {ErrorCode::kUnsupported, SINEW_ERROR_UNSUPPORTED},
      {ErrorCode::kLimit, SINEW_ERROR_LIMIT},
  };
  for (const auto& [code, status] : pairs) {
    EXPECT_EQ(guarded([&] { throw Error(code, "a.ckpt: bad", "try b.ckpt"); }), status);
    EXPECT_STREQ(sinew_last_error(), "a.ckpt: bad (try b.ckpt)");
  }
  EXPECT_EQ(guarded([] { throw Error(ErrorCode::kIo, "no hint"); }), SINEW_ERROR_IO);
  EXPECT_STREQ(sinew_last_error(), "no hint");
}

TEST(Guard, NothingLeavesAsAnException) {
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), SINEW_ERROR_NO_MEMORY);
  EXPECT_STREQ(sinew_last_error(), "not enough memory");
  EXPECT_EQ(guarded([] { throw std::logic_error("a bug"); }), SINEW_ERROR_INTERNAL);
  EXPECT_STREQ(sinew_last_error(), "a bug");
  EXPECT_EQ(guarded([] { throw 7; }), SINEW_ERROR_INTERNAL);
  EXPECT_STRNE(sinew_last_error(), "");
  EXPECT_EQ(guarded([] {}), SINEW_OK);
  EXPECT_STREQ(sinew_last_error(), "");
}

TEST(Guard, EachThreadHasItsOwnMessage) {
  guarded([] { throw Error(ErrorCode::kIo, "mine"); });
  std::string other = "unset";
  std::thread([&] { other = sinew_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_STREQ(sinew_last_error(), "mine");
}

// A struct in the first version of the ABI, in this library's, and in a later one.
struct First {
  std::size_t struct_size;
  double a;
};
struct Now {
  std::size_t struct_size;
  double a;
  double b;
};
struct Later {
  std::size_t struct_size;
  double a;
  double b;
  double c;
};

template <typename Given>
Now seen(const Given& given) {
  return read_struct(reinterpret_cast<const Now*>(&given), sizeof(First), "options");
}

TEST(StructSize, OlderCallersGetDefaultsForWhatTheyDoNotHave) {
  const First first = {sizeof(First), 1.5};
  EXPECT_EQ(seen(first).a, 1.5);
  EXPECT_EQ(seen(first).b, 0);
}

TEST(StructSize, NewerCallersMayNotSetWhatThisLibraryDoesNotHave) {
  EXPECT_EQ(seen(Later{sizeof(Later), 1.5, 2.5, 0}).b, 2.5);
  EXPECT_EQ(guarded([] { seen(Later{sizeof(Later), 1.5, 2.5, 1}); }), SINEW_ERROR_UNSUPPORTED);
}

TEST(StructSize, ResultsAreWrittenAsFarAsTheCallerHasRoom) {
  const Now now = {0, 1.5, 2.5};
  First room[2] = {{sizeof(First), 0}, {77, 88}};
  write_struct(now, sizeof(First), "hand", reinterpret_cast<Now*>(&room[0]));
  EXPECT_EQ(room[0].struct_size, sizeof(First));
  EXPECT_EQ(room[0].a, 1.5);
  EXPECT_EQ(room[1].struct_size, 77U);
  Later later = {sizeof(Later), 0, 0, 99};
  write_struct(now, sizeof(First), "hand", reinterpret_cast<Now*>(&later));
  EXPECT_EQ(later.struct_size, sizeof(Later));
  EXPECT_EQ(later.b, 2.5);
  EXPECT_EQ(later.c, 0);
}

TEST(StructSize, MustBeSet) {
  EXPECT_EQ(guarded([] { seen(Now{0, 1, 2}); }), SINEW_ERROR_USAGE);
  EXPECT_THAT(sinew_last_error(), HasSubstr("options.struct_size is 0"));
  EXPECT_EQ(guarded([] { seen(Now{static_cast<std::size_t>(-1), 1, 2}); }), SINEW_ERROR_USAGE);
}

}  // namespace
}  // namespace sinew::capi

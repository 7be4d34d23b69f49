// What the tests of rules share: forms of an op, each legal or with the error that it must give.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"

namespace sinew::test {

struct RuleCase {
  const char* what;
  std::function<void(ProgramBuilder&)> add;
  const char* error;  // nullptr: legal
};

inline void expect_all(const std::vector<RuleCase>& cases) {
  for (const RuleCase& c : cases) {
    SCOPED_TRACE(c.what);
    ProgramBuilder builder("p");
    std::string message;
    try {
      c.add(builder);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMismatch);
      message = error.what();
    }
    if (c.error == nullptr) {
      EXPECT_EQ(message, "");
    } else {
      EXPECT_THAT(message, testing::HasSubstr(c.error));
    }
  }
}

}  // namespace sinew::test

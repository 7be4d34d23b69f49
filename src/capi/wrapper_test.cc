// sinew.hpp as a user sees it, in one program with the library's own names of the same namespace.
#include "sinew/sinew.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "capi/test_model.h"

namespace {

TEST(Wrapper, ErrorsCarryStatusAndText) {
  try {
    const sinew::Hands hands("missing/model.ckpt");
    FAIL() << "opened";
  } catch (const sinew::Error& error) {
    EXPECT_EQ(error.status(), SINEW_ERROR_NOT_FOUND);
    EXPECT_THAT(error.what(), testing::HasSubstr("missing/model.ckpt"));
  }
}

TEST(Wrapper, RunsAndMoves) {
  sinew::HandsOptions options;
  options.policy = "f32";
  options.threads = 1;
  sinew::Hands opened(sinew::capi::test_model(), options);
  sinew::Hands hands = std::move(opened);
  const std::vector<std::uint8_t> grey(std::size_t{64} * 48 * 3, 128);
  const sinew::Hand hand = hands.run(grey.data(), 64, 48, {8, 8, 40, 40, 1});
  EXPECT_GT(hand.cam_t_full[2], 0);
  EXPECT_THROW(hands.run(grey.data(), 64, 48, {80, 8, 90, 40, 1}), sinew::Error);
}

}  // namespace

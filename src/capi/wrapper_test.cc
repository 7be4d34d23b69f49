// sinew.hpp as a user sees it: no other header of the project that declares what it declares.
#include "sinew/sinew.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/test_paths.h"

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
  const auto path = sinew::shared_file("golden/hamer/weights_d2.safetensors");
  if (!path) GTEST_SKIP() << sinew::kNoShared;
  sinew::HandsOptions options;
  options.policy = "f32";
  options.threads = 1;
  sinew::Hands opened(*path, options);
  sinew::Hands hands = std::move(opened);
  const std::vector<std::uint8_t> grey(std::size_t{64} * 48 * 3, 128);
  const sinew::Hand hand = hands.run(grey.data(), 64, 48, {8, 8, 40, 40, 1});
  EXPECT_GT(hand.cam_t_full[2], 0);
  EXPECT_THROW(hands.run(grey.data(), 64, 48, {80, 8, 90, 40, 1}), sinew::Error);
}

}  // namespace

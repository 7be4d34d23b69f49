#include "program/rotation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace sinew {
namespace {

using Matrix = std::array<double, 9>;

Matrix rotate(const std::array<double, 6>& six) {
  Matrix out;
  rotation_6d_to_matrix(six.data(), out.data());
  return out;
}

TEST(Rotation6d, ColumnsAreTheBasis) {
  EXPECT_EQ(rotate({1, 0, 0, 0, 1, 0}), (Matrix{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  // a1 along y, a2 along z: columns y, z, x.
  EXPECT_EQ(rotate({0, 2, 0, 0, 5, 3}), (Matrix{0, 0, 1, 1, 0, 0, 0, 1, 0}));
}

TEST(Rotation6d, ZeroVectorsGiveZeroColumns) {
  const Matrix no_first = rotate({0, 0, 0, 0, 0, 2});
  EXPECT_EQ(no_first, (Matrix{0, 0, 0, 0, 0, 0, 0, 1, 0}));
  const Matrix no_second = rotate({3, 0, 0, 0, 0, 0});
  EXPECT_EQ(no_second, (Matrix{1, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Rotation6d, IsARotationForAnyInput) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 1000; ++round) {
    std::array<double, 6> six;
    for (double& v : six) v = normal(random);
    const Matrix r = rotate(six);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        double dot = 0;
        for (int k = 0; k < 3; ++k) dot += r[3 * k + i] * r[3 * k + j];
        EXPECT_NEAR(dot, i == j ? 1 : 0, 1e-12);
      }
    }
    const double det = r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
                       r[2] * (r[3] * r[7] - r[4] * r[6]);
    EXPECT_NEAR(det, 1, 1e-12);
  }
}

}  // namespace
}  // namespace sinew

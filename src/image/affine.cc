#include "image/affine.h"

#include <cassert>
#include <cmath>
#include <utility>

namespace sinew {

Affine affine_through(const std::array<Point, 3>& from, const std::array<Point, 3>& to) {
  constexpr int kUnknowns = 6;
  double a[kUnknowns][kUnknowns] = {};
  Affine b{};
  for (int i = 0; i < 3; ++i) {
    for (int axis = 0; axis < 2; ++axis) {
      double* row = a[2 * i + axis] + 3 * axis;
      row[0] = from[i].x;
      row[1] = from[i].y;
      row[2] = 1;
    }
    b[2 * i] = to[i].x;
    b[2 * i + 1] = to[i].y;
  }
  // The order of operations is OpenCV's; it decides the last bits.
  for (int i = 0; i < kUnknowns; ++i) {
    int pivot = i;
    for (int j = i + 1; j < kUnknowns; ++j) {
      if (std::abs(a[j][i]) > std::abs(a[pivot][i])) pivot = j;
    }
    assert(a[pivot][i] != 0);
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    const double negative_inverse = -1 / a[i][i];
    for (int j = i + 1; j < kUnknowns; ++j) {
      const double factor = a[j][i] * negative_inverse;
      for (int k = i + 1; k < kUnknowns; ++k) a[j][k] += factor * a[i][k];
      b[j] += factor * b[i];
    }
  }
  for (int i = kUnknowns - 1; i >= 0; --i) {
    for (int k = i + 1; k < kUnknowns; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

Affine inverse_of(const Affine& m) {
  const double determinant = m[0] * m[4] - m[1] * m[3];
  const double d = determinant != 0 ? 1 / determinant : 0;
  Affine out{m[4] * d, m[1] * -d, 0, m[3] * -d, m[0] * d, 0};
  out[2] = -out[0] * m[2] - out[1] * m[5];
  out[5] = -out[3] * m[2] - out[4] * m[5];
  return out;
}

}  // namespace sinew

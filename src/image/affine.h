// OpenCV 4.6's affine map through three points, to the last bit. Internal to crop_opencv.cc.
#pragma once

#include <array>

namespace sinew {

/// (x, y) -> (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5])
using Affine = std::array<double, 6>;

struct Point {
  double x, y;
};

/// The map that takes from[i] to to[i], as cv2.getAffineTransform: Gaussian elimination with partial pivoting
/// on the six equations. A closed form is as accurate but rounds otherwise; one crop in two hundred then has
/// pixels that moved by 1/32. Asserts that the points are not on one line.
Affine affine_through(const std::array<Point, 3>& from, const std::array<Point, 3>& to);

/// The inverse, as cv2.warpAffine forms it.
Affine inverse_of(const Affine& m);

}  // namespace sinew

#include "hand/picture.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace sinew {
namespace {

Vec3 operator+(const Vec3& a, const Vec3& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Vec3 operator-(const Vec3& a, const Vec3& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
Vec3 operator*(const Vec3& a, double s) { return {a[0] * s, a[1] * s, a[2] * s}; }
double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vec3 unit(const Vec3& a) { return a * (1 / std::max(std::sqrt(dot(a, a)), 1e-12)); }

/// Uniform in [-1, 1).
double random_pm1(std::uint64_t seed, std::uint64_t i) {
  return static_cast<double>(mix64(seed + (i + 1) * kGoldenGamma) >> 11) * 0x1p-52 - 1;
}

/// Row-major rotation by `angle` about a unit axis.
std::array<double, 9> rotation(const Vec3& axis, double angle) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  const auto [x, y, z] = axis;
  return {c + x * x * (1 - c),     x * y * (1 - c) - z * s, x * z * (1 - c) + y * s,
          y * x * (1 - c) + z * s, c + y * y * (1 - c),     y * z * (1 - c) - x * s,
          z * x * (1 - c) - y * s, z * y * (1 - c) + x * s, c + z * z * (1 - c)};
}

/// Fingers along -x in the model; in the picture they point up (-y) with the palm (-y in the model) towards the camera (-z).
std::array<double, 144> pose(std::uint64_t seed) {
  std::array<double, 144> rotations{};
  const std::array<double, 9> towards_camera = {0, 0, -1, 1, 0, 0, 0, -1, 0};
  // A quarter turn each way would hide the palm; a few degrees make it look less like a diagram.
  const auto tilt = rotation({0, 0, 1}, 0.12 * random_pm1(seed, 100));
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) {
      for (int k = 0; k < 3; ++k) {
        rotations[static_cast<std::size_t>(3 * r + c)] +=
            tilt[static_cast<std::size_t>(3 * r + k)] * towards_camera[static_cast<std::size_t>(3 * k + c)];
      }
    }
  }
  for (std::uint64_t j = 1; j < kHandJoints; ++j) {
    const bool thumb = j >= 13;
    const double bend = thumb ? 0.12 : 0.16 + 0.14 * random_pm1(seed, j);
    const auto flex = rotation(thumb ? unit({0.3, 0.6, 0.7}) : Vec3{0, 0, 1}, thumb ? bend : bend);
    std::copy(flex.begin(), flex.end(), rotations.begin() + static_cast<std::ptrdiff_t>(9 * j));
  }
  return rotations;
}

/// A tapered capsule.
struct Bone {
  Vec3 a, b;
  double radius_a, radius_b;

  double distance(const Vec3& p) const {
    const Vec3 ab = b - a;
    const double t = std::clamp(dot(p - a, ab) / std::max(dot(ab, ab), 1e-12), 0.0, 1.0);
    const Vec3 d = p - (a + ab * t);
    return std::sqrt(dot(d, d)) - (radius_a + (radius_b - radius_a) * t);
  }
};

/// Signed distance in metres to the union of the bones, rounded where they meet.
class Shape3d {
 public:
  explicit Shape3d(const HandKeypoints& k) {
    const auto bone = [&](std::size_t i, std::size_t j, double ra, double rb) { bones_.push_back({k[i], k[j], ra, rb}); };
    const Vec3 forearm = k[0] + (k[0] - k[9]) * 0.9;
    bones_.push_back({k[0], forearm, 0.024, 0.026});
    for (const std::size_t first : {5, 9, 13, 17}) {
      const double thin = first == 17 ? 0.86 : 1.0;
      bone(0, first, 0.019, 0.0135 * thin);
      bone(first, first + 1, 0.0108 * thin, 0.0094 * thin);
      bone(first + 1, first + 2, 0.0094 * thin, 0.0084 * thin);
      bone(first + 2, first + 3, 0.0084 * thin, 0.0066 * thin);
    }
    for (const std::size_t i : {5, 9, 13}) bone(i, i + 4, 0.0125, 0.0125);
    bone(0, 1, 0.019, 0.0175);
    bone(1, 2, 0.0175, 0.0125);
    bone(2, 3, 0.0115, 0.0100);
    bone(3, 4, 0.0100, 0.0075);
    bone(1, 5, 0.0150, 0.0120);
  }
  double distance(const Vec3& p) const {
    // Exponential smooth minimum, 2.2 mm wide: webs between fingers, no seams at joints.
    constexpr double kWidth = 0.0022;
    double sum = 0;
    for (const Bone& bone : bones_) sum += std::exp(-bone.distance(p) / kWidth);
    return sum > 1e-300 ? -kWidth * std::log(sum) : 1.0;
  }
  Vec3 normal(const Vec3& p) const {
    constexpr double kStep = 2e-4;
    Vec3 n{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      Vec3 step{};
      step[axis] = kStep;
      n[axis] = distance(p + step) - distance(p - step);
    }
    return unit(n);
  }

 private:
  std::vector<Bone> bones_;
};

/// Orthographic camera: metres to pixels, x right, y down.
struct Camera {
  double scale, x, y;
  Vec2 pixel(const Vec3& p) const { return {p[0] * scale + x, p[1] * scale + y}; }
};

Vec3 background(double u, double v) {
  const double glow = std::exp(-3 * ((u - 0.35) * (u - 0.35) + (v - 0.3) * (v - 0.3)));
  return Vec3{0.30, 0.36, 0.42} * (0.75 + 0.5 * glow) + Vec3{0.04, 0.02, 0.0} * v;
}

Vec3 skin(const Shape3d& shape, const Vec3& p) {
  const Vec3 n = shape.normal(p);
  const double key = std::max(0.0, dot(n, unit({-0.5, -0.6, -0.7})));
  const double fill = std::max(0.0, dot(n, unit({0.8, 0.1, -0.5})));
  const double rim = std::pow(1 - std::max(0.0, -n[2]), 3.0);
  const Vec3 tone = {0.86, 0.62, 0.50};
  // Light that comes through the skin is red: shadows are warmer than lit parts.
  return tone * (0.28 + 0.62 * key + 0.18 * fill) + Vec3{0.10, 0.02, 0.01} * (1 - key) + Vec3{0.25, 0.2, 0.2} * (0.3 * rim);
}

/// The colour seen through one point of the picture: sphere tracing along +z.
Vec3 trace(const Shape3d& shape, const Camera& camera, double px, double py, const Vec3& behind) {
  Vec3 p = {(px - camera.x) / camera.scale, (py - camera.y) / camera.scale, -0.15};
  for (int step = 0; step < 64 && p[2] < 0.15; ++step) {
    const double d = shape.distance(p);
    if (d < 1e-4) return skin(shape, p);
    p[2] += std::max(d, 2e-4);
  }
  return behind;
}

}  // namespace

HandPicture draw_hand_picture(int width, int height, std::uint64_t seed) {
  if (width < 64 || height < 64 || width > 4096 || height > 4096) {
    throw fail(ErrorCode::kUsage, "a picture of {} x {} pixels; 64 to 4096 a side are possible", width, height);
  }
  const auto rotations = pose(seed);
  const HandKeypoints joints = pose_skeleton(builtin_skeleton(), rotations);
  const Shape3d shape(joints);
  // The hand is about 0.19 m long: 62 % of the shorter side.
  const double scale = 0.62 * std::min(width, height) / 0.19;
  const Vec3 middle = (joints[0] + joints[12]) * 0.5;
  const Camera camera = {scale, width / 2.0 - middle[0] * scale, height / 2.0 - middle[1] * scale};

  HandPicture picture;
  picture.image = Image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const Vec3 behind = background(static_cast<double>(x) / width, static_cast<double>(y) / height);
      Vec3 colour{};
      for (const double dx : {-0.25, 0.25}) {
        for (const double dy : {-0.25, 0.25}) colour = colour + trace(shape, camera, x + dx, y + dy, behind) * 0.25;
      }
      for (std::size_t c = 0; c < 3; ++c) {
        picture.image.pixel(x, y)[c] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(colour[c], 0.0, 1.0)));
      }
    }
  }
  picture.x1 = picture.y1 = 1e9;
  for (std::size_t i = 0; i < joints.size(); ++i) {
    const Vec2 p = camera.pixel(joints[i]);
    picture.joints_2d[i] = p;
    picture.x1 = std::min(picture.x1, p[0]);
    picture.x2 = std::max(picture.x2, p[0]);
    picture.y1 = std::min(picture.y1, p[1]);
    picture.y2 = std::max(picture.y2, p[1]);
  }
  const double margin = 0.014 * scale;  // a finger's thickness around the joints
  picture.x1 = std::max(0.0, std::floor(picture.x1 - margin));
  picture.y1 = std::max(0.0, std::floor(picture.y1 - margin));
  picture.x2 = std::min<double>(width, std::ceil(picture.x2 + margin));
  picture.y2 = std::min<double>(height, std::ceil(picture.y2 + margin));
  return picture;
}

}  // namespace sinew

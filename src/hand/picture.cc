#include "hand/picture.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "hand/noise.h"
#include "hand/vector3.h"

namespace sinew {
namespace {

/// Row-major rotation by `angle` about a unit axis.
std::array<double, 9> rotation(const Vec3& axis, double angle) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  const auto [x, y, z] = axis;
  return {c + x * x * (1 - c),     x * y * (1 - c) - z * s, x * z * (1 - c) + y * s,
          y * x * (1 - c) + z * s, c + y * y * (1 - c),     y * z * (1 - c) - x * s,
          z * x * (1 - c) - y * s, z * y * (1 - c) + x * s, c + z * z * (1 - c)};
}

/// Fingers along -x in the model; in the picture they point up (-y) with the palm (-y in the model) towards
/// the camera (-z).
std::array<double, 144> pose(std::uint64_t seed) {
  std::array<double, 144> rotations{};
  const std::array<double, 9> towards_camera = {0, 0, 1, 1, 0, 0, 0, 1, 0};
  // A quarter turn each way would hide the palm; a few degrees make it look less like a diagram.
  const auto tilt = rotation({0, 0, 1}, 0.12 * random_pm1(seed, 100));
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t k = 0; k < 3; ++k) rotations[3 * r + c] += tilt[3 * r + k] * towards_camera[3 * k + c];
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

constexpr Vec3 kPalmar = {0, 0, -1};  // where the palm looks in the picture

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

/// Signed distance in metres to the hand's surface. Bones of one part meet in a plain union (their radii
/// agree at the joints); parts melt into one another, which makes the webs and the heel of the hand.
class Shape3d {
 public:
  explicit Shape3d(const HandKeypoints& k) {
    for (const std::size_t first : {5, 9, 13, 17}) {
      const double thick = first == 17 ? 0.90 : first == 9 ? 1.08 : 1.05;
      parts_.push_back(
          {{k[first], k[first + 1], 0.0098 * thick, 0.0090 * thick},
           {k[first + 1], k[first + 2], 0.0090 * thick, 0.0081 * thick},
           {k[first + 2], mix(k[first + 2], k[first + 3], 0.72), 0.0081 * thick, 0.0068 * thick}});
      parts_.push_back({{mix(k[0], k[first], 0.12), k[first], 0.0135, 0.0115}});
    }
    parts_.push_back({{k[2], k[3], 0.0118, 0.0102}, {k[3], mix(k[3], k[4], 0.74), 0.0102, 0.0078}});
    // Thenar and hypothenar, the skin between thumb and index, the pad below the fingers.
    parts_.push_back({{k[1] + kPalmar * 0.004, k[2], 0.0150, 0.0118}});
    parts_.push_back({{mix(k[0], k[17], 0.30) + kPalmar * 0.004, mix(k[0], k[17], 0.78) + kPalmar * 0.002,
                       0.0135, 0.0115}});
    parts_.push_back(
        {{k[1], mix(k[5], k[1], 0.25), 0.0120, 0.0090},
         {mix(k[1], k[2], 0.70) - kPalmar * 0.004, mix(k[5], k[0], 0.20) - kPalmar * 0.003, 0.0070, 0.0080}});
    for (const std::size_t first : {5, 9, 13}) {
      parts_.push_back(
          {{mix(k[first], k[first + 1], 0.26), mix(k[first + 4], k[first + 5], 0.26), 0.0084, 0.0080}});
    }
    const Vec3 along = (k[0] - k[9]) * 0.9;
    const Vec3 across = unit(k[5] - k[17]) * 0.0095;
    for (const double side : {-1.0, 1.0}) {
      parts_.push_back({{k[0] + across * side, k[0] + along + across * (1.2 * side), 0.0155, 0.0180}});
    }
    assert(parts_.size() <= kMaxParts);
  }
  double distance(const Vec3& p) const {
    // Exponential smooth minimum; parts further than 16 widths add less than one part in ten million.
    constexpr double kWidth = 0.0026;
    std::array<double, kMaxParts> distances;
    double nearest = 1.0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      double d = 1.0;
      for (const Bone& bone : parts_[i]) d = std::min(d, bone.distance(p));
      distances[i] = d;
      nearest = std::min(nearest, d);
    }
    double sum = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (distances[i] - nearest < 16 * kWidth) sum += std::exp((nearest - distances[i]) / kWidth);
    }
    return nearest - kWidth * std::log(sum);
  }
  /// True when a ray along z through (x, y) cannot meet the surface, which lies within ln(parts) smoothing
  /// widths of a bone.
  bool misses(double x, double y) const {
    constexpr double kMargin = 0.0085;
    const auto near = [&](const Bone& bone) {
      const Bone flat = {{bone.a[0], bone.a[1], 0}, {bone.b[0], bone.b[1], 0}, bone.radius_a, bone.radius_b};
      return flat.distance({x, y, 0}) < kMargin;
    };
    return std::ranges::none_of(parts_, [&](const auto& part) { return std::ranges::any_of(part, near); });
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
  /// 1 in the open, towards 0 in folds: how much nearer the surface is than a plane would be, on the way out.
  double openness(const Vec3& p, const Vec3& n) const {
    double closed = 0;
    for (const double out : {0.004, 0.012}) closed += 0.5 * (out - distance(p + n * out)) / out;
    return std::clamp(1 - closed, 0.0, 1.0);
  }

 private:
  static constexpr std::size_t kMaxParts = 24;
  std::vector<std::vector<Bone>> parts_;
};

/// What is painted on the skin: creases and blush, as seen from the front.
class Skin {
 public:
  explicit Skin(const HandKeypoints& k) {
    for (std::size_t first = 1; first < k.size(); first += 4) {
      const bool thumb = first == 1;
      if (!thumb) fold(mix(k[first], k[first + 1], 0.42), k[first], k[first + 1], 0.0078);
      fold(k[first + 1], k[first], k[first + 2], thumb ? 0.0085 : 0.0078);
      fold(k[first + 2], k[first + 1], k[first + 3], 0.0066);
      blush_.push_back(k[first + 3]);
    }
    const Vec3 radial = unit(k[5] - k[17]);
    const Vec3 start = mix(k[5], k[0], 0.26) + radial * 0.010;
    curve(mix(k[17], k[0], 0.14) - radial * 0.010, mix(k[13], k[0], 0.26), mix(k[5], k[9], 0.55));  // heart
    curve(start, mix(k[9], k[0], 0.30), mix(k[17], k[0], 0.46) + radial * 0.002);                   // head
    curve(start, mix(k[9], k[0], 0.42) + radial * 0.004, mix(k[0], k[1], 0.30));                    // life
    const Vec3 back = unit(k[0] - k[9]);
    for (const double at : {0.006, 0.012}) {
      curve(k[0] + back * at - radial * 0.020, k[0] + back * (at + 0.004), k[0] + back * at + radial * 0.020);
    }
    for (const Vec3& p :
         {mix(k[1], k[2], 0.3), mix(k[0], k[17], 0.5), mix(k[5], k[9], 0.4), mix(k[13], k[17], 0.5)})
      blush_.push_back(p);
  }
  /// 0 on smooth skin, 1 at the bottom of a crease.
  double crease(const Vec3& p) const {
    double deepest = 0;
    for (const Line& line : lines_) {
      const Bone flat = {{line.a[0], line.a[1], p[2]}, {line.b[0], line.b[1], p[2]}, 0, 0};
      const double d = flat.distance(p) / 0.0008;
      if (d < 4) deepest = std::max(deepest, line.depth * std::exp(-d * d));
    }
    return deepest;
  }
  /// 0 to 1: finger tips and the cushions of the palm are redder.
  double blush(const Vec3& p) const {
    double most = 0;
    for (const Vec3& spot : blush_) {
      const double d = std::hypot(p[0] - spot[0], p[1] - spot[1]) / 0.013;
      most = std::max(most, std::exp(-d * d));
    }
    return most;
  }

 private:
  struct Line {
    Vec3 a, b;
    double depth;
  };
  /// Straight across the finger that runs from `from` to `to`.
  void fold(const Vec3& at, const Vec3& from, const Vec3& to, double reach) {
    const Vec3 along = unit(to - from);
    const Vec3 across = unit({-along[1], along[0], 0});
    lines_.push_back({at - across * reach, at + across * reach, 0.8});
  }
  /// A quadratic Bezier curve from a towards b to c, fading at its ends.
  void curve(const Vec3& a, const Vec3& b, const Vec3& c) {
    constexpr int kPieces = 12;
    const auto at = [&](int i) {
      const double t = static_cast<double>(i) / kPieces;
      return mix(mix(a, b, t), mix(b, c, t), t);
    };
    for (int i = 0; i < kPieces; ++i) {
      const double t = (i + 0.5) / kPieces;
      lines_.push_back({at(i), at(i + 1), 4 * t * (1 - t)});
    }
  }

  std::vector<Line> lines_;
  std::vector<Vec3> blush_;
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

/// Smooth noise in [-1, 1], one cell a unit.
double noise(double x, double y) {
  const double fx = std::floor(x);
  const double fy = std::floor(y);
  const auto corner = [&](int dx, int dy) {
    const auto cell = static_cast<std::uint64_t>(static_cast<std::int64_t>(fx) + dx) * 0x1f123bb5 +
                      static_cast<std::uint64_t>(static_cast<std::int64_t>(fy) + dy);
    return random_pm1(7, cell);
  };
  const auto ease = [](double t) { return t * t * (3 - 2 * t); };
  const double u = ease(x - fx);
  const double v = ease(y - fy);
  return (corner(0, 0) * (1 - u) + corner(1, 0) * u) * (1 - v) +
         (corner(0, 1) * (1 - u) + corner(1, 1) * u) * v;
}

struct Scene {
  Shape3d shape;
  Skin skin;
};

Vec3 skin_colour(const Scene& scene, const Vec3& p) {
  const Vec3 n = scene.shape.normal(p);
  const double open = scene.shape.openness(p, n);
  const double key = std::max(0.0, dot(n, unit({-0.55, -0.6, -0.6})));
  const double fill = std::max(0.0, dot(n, unit({0.8, 0.2, -0.5})));
  const double rim = std::pow(1 - std::max(0.0, -n[2]), 3.0);
  const double gloss = std::pow(std::max(0.0, dot(n, unit({-0.3, -0.35, -0.9}))), 24.0);
  const double mottle = 0.6 * noise(p[0] / 0.004, p[1] / 0.004) + 0.4 * noise(p[0] / 0.0011, p[1] / 0.0011);
  const Vec3 tone =
      mix({0.90, 0.69, 0.57}, {0.90, 0.55, 0.47}, 0.55 * scene.skin.blush(p)) * (1 + 0.035 * mottle);
  const double crease = std::max(0.0, -n[2]) * scene.skin.crease(p);
  const Vec3 dark = {1 - 0.16 * crease, 1 - 0.25 * crease, 1 - 0.27 * crease};
  const double shade = 0.5 + 0.5 * open;
  // Light that comes through the skin is red: shadows are warmer than lit parts.
  const Vec3 lit = tone * ((0.28 + 0.72 * key + 0.17 * fill) * shade) + Vec3{0.09, 0.02, 0.01} * (1 - key) +
                   Vec3{0.25, 0.2, 0.2} * (0.25 * rim) + Vec3{1, 1, 1} * (0.07 * gloss);
  return {lit[0] * dark[0], lit[1] * dark[1], lit[2] * dark[2]};
}

/// The colour seen through one point of the picture: sphere tracing along +z.
Vec3 trace(const Scene& scene, const Camera& camera, double px, double py, const Vec3& behind) {
  Vec3 p = {(px - camera.x) / camera.scale, (py - camera.y) / camera.scale, -0.15};
  if (scene.shape.misses(p[0], p[1])) return behind;
  for (int step = 0; step < 64 && p[2] < 0.15; ++step) {
    const double d = scene.shape.distance(p);
    if (d < 1e-4) return skin_colour(scene, p);
    p[2] += std::max(d, 2e-4);
  }
  return behind;
}

}  // namespace

void check_picture_size(int width, int height) {
  if (width < 64 || height < 64 || width > 4096 || height > 4096) {
    throw fail(ErrorCode::kUsage, "a picture of {} x {} pixels; 64 to 4096 a side are possible", width,
               height);
  }
}

HandPicture draw_hand_picture(int width, int height, std::uint64_t seed) {
  check_picture_size(width, height);
  const auto rotations = pose(seed);
  const HandKeypoints joints = pose_skeleton(builtin_skeleton(), rotations);
  const Scene scene = {Shape3d(joints), Skin(joints)};
  // The hand is about 0.19 m long: 62 % of the shorter side.
  const double scale = 0.62 * std::min(width, height) / 0.19;
  const Vec3 middle = (joints[0] + joints[12]) * 0.5;
  const Camera camera = {scale, width / 2.0 - middle[0] * scale, height / 2.0 - middle[1] * scale};

  HandPicture picture;
  picture.image = Image(width, height);
  picture.joints_3d = joints;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const Vec3 behind = background(static_cast<double>(x) / width, static_cast<double>(y) / height);
      Vec3 colour{};
      for (const double dx : {0.25, 0.75}) {  // pixel 0 covers 0..1
        for (const double dy : {0.25, 0.75})
          colour = colour + trace(scene, camera, x + dx, y + dy, behind) * 0.25;
      }
      for (std::size_t c = 0; c < 3; ++c) {
        picture.image.pixel(x, y)[c] =
            static_cast<std::uint8_t>(std::lround(255 * std::clamp(colour[c], 0.0, 1.0)));
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

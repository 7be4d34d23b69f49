#include "hand/skin.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hand/noise.h"
#include "hand/vector3.h"

namespace sinew {
namespace {

constexpr Vec3 kBack = {0, 1, 0};  // of the flat hand; the palm looks the other way
constexpr Vec3 kThumbBack = {0, 0.75, 0.66};

/// sRGB of skin and of its blush, from light to dark.
constexpr std::array<std::array<Vec3, 2>, 5> kTones = {{{{{0.93, 0.74, 0.64}, {0.92, 0.56, 0.49}}},
                                                        {{{0.89, 0.67, 0.54}, {0.88, 0.52, 0.43}}},
                                                        {{{0.80, 0.58, 0.45}, {0.77, 0.44, 0.35}}},
                                                        {{{0.66, 0.46, 0.34}, {0.66, 0.38, 0.30}}},
                                                        {{{0.50, 0.34, 0.25}, {0.55, 0.33, 0.27}}}}};

double bell(double x) { return std::exp(-x * x); }

double distance_to_segment(const Vec3& p, const Vec3& a, const Vec3& b) {
  const Vec3 ab = b - a;
  const double t = std::clamp(dot(p - a, ab) / std::max(dot(ab, ab), 1e-12), 0.0, 1.0);
  return norm(p - (a + ab * t));
}

}  // namespace

SkinTexture::SkinTexture(const HandKeypoints& rest, std::uint64_t seed) : seed_(mix64(seed + 77)) {
  const auto pick = std::min<std::size_t>(4, static_cast<std::size_t>(2.5 * (1 + random_pm1(seed_, 0))));
  tone_ = kTones[pick][0];
  blush_tone_ = kTones[pick][1];
  for (std::size_t first = 1; first < rest.size(); first += 4) add_finger(rest, first);
  add_palm(rest);
}

void SkinTexture::add_finger(const HandKeypoints& rest, std::size_t first) {
  const bool thumb = first == 1;
  const Vec3 up = thumb ? unit(kThumbBack) : kBack;
  const auto along = [&](std::size_t i) { return unit(rest[first + i + 1] - rest[first + i]); };
  const auto back = [&](std::size_t i) { return unit(up - along(i) * dot(up, along(i))); };
  const auto fold = [&](std::size_t i, double shift, double depth, double width, bool on_palm) {
    const std::size_t bone = std::min<std::size_t>(i, 2);
    folds_.push_back({rest[first + i] + along(bone) * shift, along(bone), back(bone), depth, width, on_palm});
  };
  if (!thumb) {
    fold(0, 0.42 * norm(rest[first + 1] - rest[first]), 0.7, 0.0009, true);
    fold(1, 0.0012, 0.7, 0.0007, true);
  }
  fold(1, -0.0012, 0.7, 0.0007, true);
  fold(2, 0, 0.8, 0.0007, true);
  // Skin that is left over on the back of the knuckles.
  for (const double shift : {-0.0030, -0.0012, 0.0010, 0.0028}) fold(1, shift, 0.40, 0.0005, false);
  for (const double shift : {-0.0010, 0.0008}) fold(2, shift, 0.35, 0.0005, false);
  nails_.push_back({rest[first + 3], along(2), back(2), thumb ? 1.25 : first == 17 ? 0.8 : 1.0});
  spots_.push_back({rest[first + 3], 0.010, 0.9});
  spots_.push_back({rest[first + 1], 0.009, 0.45});
  spots_.push_back({rest[first + 2], 0.007, 0.35});
  spots_.push_back({rest[first], 0.012, 0.40});
}

void SkinTexture::add_palm(const HandKeypoints& k) {
  const Vec3 radial = unit(k[5] - k[17]);
  const Vec3 start = mix(k[5], k[0], 0.26) + radial * 0.010;
  add_curve(mix(k[17], k[0], 0.14) - radial * 0.010, mix(k[13], k[0], 0.26), mix(k[5], k[9], 0.55), 0.0009);
  add_curve(start, mix(k[9], k[0], 0.30), mix(k[17], k[0], 0.46) + radial * 0.002, 0.0009);
  add_curve(start, mix(k[9], k[0], 0.42) + radial * 0.004, mix(k[0], k[1], 0.30), 0.0010);
  const Vec3 back = unit(k[0] - k[9]);
  for (const double at : {0.004, 0.009}) {
    add_curve(k[0] + back * at - radial * 0.022, k[0] + back * (at + 0.004),
              k[0] + back * at + radial * 0.022, 0.0007);
  }
  spots_.push_back({mix(k[1], k[2], 0.4), 0.016, 0.35});
  spots_.push_back({mix(k[0], k[17], 0.5), 0.016, 0.45});
  spots_.push_back({mix(k[9], k[13], 0.5), 0.012, 0.35});
}

/// A quadratic Bezier curve from a towards b to c, fading at its ends; seen on the palm, at any height.
void SkinTexture::add_curve(const Vec3& a, const Vec3& b, const Vec3& c, double width) {
  constexpr int kPieces = 12;
  const auto at = [&](int i) {
    const double t = static_cast<double>(i) / kPieces;
    Vec3 p = mix(mix(a, b, t), mix(b, c, t), t);
    p[1] = 0;
    return p;
  };
  for (int i = 0; i < kPieces; ++i) {
    const double t = (i + 0.5) / kPieces;
    lines_.push_back({at(i), at(i + 1), 0.9 * std::sqrt(4 * t * (1 - t)), width});
  }
}

/// 0 on smooth skin, 1 at the bottom of a crease.
double SkinTexture::crease(const Vec3& position, const Vec3& normal) const {
  double deepest = 0;
  const Vec3 flat = {position[0], 0, position[2]};
  const double palm = smooth_step(0.35, 0.75, -dot(normal, kBack));
  for (const Line& line : lines_) {
    const double d = distance_to_segment(flat, line.a, line.b) / line.width;
    if (d < 3) deepest = std::max(deepest, palm * line.depth * bell(d));
  }
  // Lines of skin are never straight.
  const double bend = 0.0005 * smooth_noise(seed_ + 5, position * (1 / 0.004));
  for (const Fold& fold : folds_) {
    const Vec3 from = position - fold.at;
    const double d = (dot(from, fold.along) + bend) / fold.width;
    if (std::abs(d) > 3 || norm(from) > 0.013) continue;
    const double facing = dot(normal, fold.back) * (fold.on_palm ? -1 : 1);
    deepest = std::max(deepest, fold.depth * smooth_step(0.0, 0.6, facing) * bell(d));
  }
  return deepest;
}

/// 0 to 1: finger tips, knuckles and the cushions of the palm are redder.
double SkinTexture::blush(const Vec3& position) const {
  double most = 0;
  for (const Spot& spot : spots_)
    most = std::max(most, spot.strength * bell(norm(position - spot.at) / spot.reach));
  return most;
}

/// 1 on a nail, 0 beside it.
double SkinTexture::nail(const Vec3& position, const Vec3& normal) const {
  double most = 0;
  for (const Nail& nail : nails_) {
    const Vec3 from = position - nail.tip;
    if (norm(from) > 0.016 * nail.size) continue;
    const double length = (dot(from, nail.along) + 0.0055 * nail.size) / (0.0062 * nail.size);
    const double across = dot(from, cross(nail.along, nail.back)) / (0.0056 * nail.size);
    const double inside =
        1 - smooth_step(0.80, 1.0, std::pow(std::abs(length), 3) + std::pow(std::abs(across), 3));
    most = std::max(most, inside * smooth_step(0.1, 0.35, dot(normal, nail.back)));
  }
  return most;
}

SkinPoint SkinTexture::at(const Vec3& position, const Vec3& normal) const {
  const double large = smooth_noise(seed_ + 1, position * (1 / 0.015));
  const double middle = smooth_noise(seed_ + 2, position * (1 / 0.0045));
  const double fine = smooth_noise(seed_ + 3, position * (1 / 0.0014));
  const double palm = smooth_step(-0.5, 0.5, -dot(normal, kBack));
  const double red = std::clamp(blush(position) * (0.5 + 0.4 * palm) + 0.10 * palm + 0.10 * large, 0.0, 1.0);
  Vec3 tone = mix(tone_, blush_tone_, red);
  tone = mix(tone, tone * Vec3{1.04, 1.05, 1.06}, palm);  // palms are paler than backs
  tone = tone * (1 + 0.030 * middle + 0.030 * fine);
  const double fold = crease(position, normal);
  tone = tone * Vec3{1 - 0.26 * fold, 1 - 0.36 * fold, 1 - 0.38 * fold};
  const double nail_here = nail(position, normal);
  tone = mix(tone, mix(tone, {0.95, 0.78, 0.74}, 0.55), nail_here);
  return {tone, std::clamp(0.25 + 0.1 * fine + 0.6 * nail_here - 0.2 * fold, 0.0, 1.0)};
}

namespace {

const Vec3 kKey = unit({-0.50, -0.62, -0.62});
const Vec3 kFill = unit({0.85, 0.10, -0.55});

}  // namespace

HandLight::HandLight(const HandKeypoints& k) {
  for (std::size_t first = 5; first < k.size(); first += 4) {
    const double thick = first == 17 ? 0.88 : 1.0;
    add_bone(mix(k[0], k[first], 0.2), k[first], 0.0125, 0.0105 * thick);
    add_bone(k[first], k[first + 1], 0.0092 * thick, 0.0085 * thick);
    add_bone(k[first + 1], k[first + 2], 0.0084 * thick, 0.0074 * thick);
    add_bone(k[first + 2], k[first + 3], 0.0072 * thick, 0.0055 * thick);
  }
  add_bone(mix(k[0], k[1], 0.5), k[2], 0.0130, 0.0105);
  add_bone(k[2], k[3], 0.0102, 0.0092);
  add_bone(k[3], k[4], 0.0090, 0.0065);
}

void HandLight::add_bone(const Vec3& from, const Vec3& to, double radius_from, double radius_to) {
  constexpr double kStep = 0.005;
  const int count = std::max(1, static_cast<int>(std::ceil(norm(to - from) / kStep)));
  for (int i = 0; i < count; ++i) {
    const double t = (i + 0.5) / count;
    const double radius = radius_from + (radius_to - radius_from) * t;
    // Balls of a bone overlap: together they shall count as one.
    balls_.push_back({mix(from, to, t), radius, std::min(1.0, kStep / (1.6 * radius))});
  }
}

/// 1 in the open, towards 0 where other parts of the hand are near.
double HandLight::openness(const Vec3& position, const Vec3& normal) const {
  double closed = 0;
  for (const Ball& ball : balls_) {
    const Vec3 way = ball.centre - position;
    const double height = dot(way, normal);
    if (height <= 0) continue;
    const double distance = std::max(norm(way), ball.radius);
    closed += ball.weight * (height / distance) * (ball.radius / distance) * (ball.radius / distance);
  }
  return 1 / (1 + 1.3 * closed);
}

/// How much of the key light, a soft box, is seen.
double HandLight::key_visibility(const Vec3& position) const {
  double hidden = 0;
  for (const Ball& ball : balls_) {
    const Vec3 way = ball.centre - position;
    const double along = dot(way, kKey);
    if (along <= 0) continue;
    const double beside = norm(way - kKey * along);
    const double soft = 0.004 + 0.25 * along;
    const double here =
        (1 - smooth_step(ball.radius - soft, ball.radius + soft, beside)) *
        smooth_step(0.6 * ball.radius, 1.4 * ball.radius, along) *
        smooth_step(1.1, 1.7, norm(way) / ball.radius);  // the point's own flesh has its normal
    hidden = std::max(hidden, here);
  }
  return 1 - 0.85 * hidden;  // the box is large
}

Vec3 HandLight::shade(const Vec3& position, const Vec3& normal, const SkinPoint& skin) const {
  const Vec3 eye = unit(position * -1);
  const double open = openness(position, normal);
  // Light wraps around: skin lets some of it through.
  const double wrap = std::max(0.0, (dot(normal, kKey) + 0.18) / 1.18);
  const double key = wrap * key_visibility(position);
  const double fill = std::max(0.0, 0.5 + 0.5 * dot(normal, kFill));
  const double sky = 0.5 - 0.5 * normal[1];
  const double rim = std::pow(1 - std::max(0.0, dot(normal, eye)), 4.0);
  const double gloss = std::pow(std::max(0.0, dot(normal, unit(eye + kKey))), 30.0) * key;
  const Vec3 light = Vec3{1.0, 0.97, 0.93} * (0.66 * key) + Vec3{0.93, 0.97, 1.0} * (0.17 * fill * open) +
                     Vec3{0.95, 0.98, 1.0} * ((0.20 + 0.12 * sky) * open);
  // What comes through the skin is red: shadows are warmer than lit parts.
  const Vec3 lit = skin.albedo * light + skin.albedo * Vec3{0.10, 0.025, 0.015} * (1 - key) +
                   Vec3{0.9, 0.95, 1.0} * (0.06 * rim * open) + Vec3{1, 1, 1} * (0.22 * gloss * skin.gloss);
  return {std::clamp(lit[0], 0.0, 1.0), std::clamp(lit[1], 0.0, 1.0), std::clamp(lit[2], 0.0, 1.0)};
}

}  // namespace sinew

#include "hand/fit.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "hand/fit_kinematics.h"
#include "hand/fit_start.h"

namespace sinew {
namespace {

using Eigen::Vector3d;
constexpr int kNumbers = static_cast<int>(kFitNumbers);
constexpr int kGlobals = static_cast<int>(kFitGlobals);
constexpr int kFinger = static_cast<int>(kFitFinger);
constexpr double kPoints = kHandKeypoints;
using Hessian = Eigen::Matrix<double, kNumbers, kNumbers>;
using Numbers = Eigen::Matrix<double, kNumbers, 1>;

Eigen::Map<const Vector3d> in(const Vec3& v) { return Eigen::Map<const Vector3d>(v.data()); }

/// Prior of one angle.
struct Bell {
  double mean, sigma;
};
constexpr double kDegree = 0.017453292519943295;
constexpr double kScaleSigma = 0.15;  // of log scale: adults' hands differ by 10 %, children's by 30
constexpr double kCouplingSigma = 15 * kDegree;
constexpr double kCoupling = 2.0 / 3;  // last joint to middle joint of a finger (Lin, Wu and Huang, 2000)

/// A hand at rest bends its fingers by some 20 to 30 degrees at each joint; sideways and about its bone a
/// joint turns little.
constexpr Bell flexion_prior(std::size_t joint) {
  return joint >= 12 ? Bell{10 * kDegree, 40 * kDegree} : Bell{15 * kDegree, 60 * kDegree};
}
constexpr Bell abduction_prior(std::size_t joint) {
  return {0, (joint == 12 ? 25 : joint % 3 == 0 ? 12 : 5) * kDegree};
}
constexpr Bell twist_prior(std::size_t joint) { return {0, (joint == 12 ? 15 : 5) * kDegree}; }

/// What a pixel residual counts. Wrist and thumb base are no marks on the skin: the landmark network and each
/// skeleton have their own idea of where they are, and the fit would tilt the hand to bring them together.
/// Half weight took the root-aligned error on the synthetic picture from 18.6 to 14.9 mm.
constexpr double pixel_trust(std::size_t i) { return i < 2 ? 0.5 : 1; }

/// Sum of squares over landmarks and prior.
class Problem {
 public:
  Problem(const FitKinematics& hand, const FitTarget& target, const FitOptions& options)
      : hand_(hand),
        target_(target),
        per_pixel_(1 / (options.pixel_sigma * hand_size(target.pixels))),
        per_metre_(1 / options.metre_sigma),
        prior_(1 / options.prior_sigma) {
    for (const Vec3& p : target.metres) mean_ += in(p) / kPoints;
  }

  /// Half the sum of squares; infinite where a point is not before the camera.
  double cost(const FitState& state) const {
    const HandKeypoints points = hand_.points(state);
    Vector3d mean = Vector3d::Zero();
    for (const Vec3& p : points) mean += in(p) / kPoints;
    double sum = 0;
    for (std::size_t i = 0; i < kHandKeypoints; ++i) {
      if (!(points[i][2] > 0)) return std::numeric_limits<double>::infinity();
      sum +=
          pixel_residual(points[i], i).squaredNorm() + metre_residual(in(points[i]) - mean, i).squaredNorm();
    }
    sum += prior_sum(state);
    return std::isfinite(sum) ? sum / 2 : std::numeric_limits<double>::infinity();
  }

  /// J^T J (lower triangle) and J^T r.
  void linearise(const FitState& state, Hessian& hessian, Numbers& gradient) const;

 private:
  Eigen::Vector2d pixel_residual(const Vec3& p, std::size_t i) const {
    const Intrinsics& c = target_.camera;
    return per_pixel_ * pixel_trust(i) *
           Eigen::Vector2d(c.fx * p[0] / p[2] + c.cx - target_.pixels[i][0],
                           c.fy * p[1] / p[2] + c.cy - target_.pixels[i][1]);
  }
  Vector3d metre_residual(const Vector3d& from_mean, std::size_t i) const {
    return per_metre_ * (from_mean - (in(target_.metres[i]) - mean_));
  }
  double prior_sum(const FitState& state) const;
  void add_prior(const FitState& state, Hessian& hessian, Numbers& gradient) const;

  const FitKinematics& hand_;
  const FitTarget& target_;
  double per_pixel_, per_metre_, prior_;
  Vector3d mean_ = Vector3d::Zero();
};

double square(double x) { return x * x; }

double Problem::prior_sum(const FitState& state) const {
  const auto term = [](double angle, Bell bell) { return square((angle - bell.mean) / bell.sigma); };
  double sum = square(std::log(state.scale) / kScaleSigma);
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const JointAngles& angles = state.angles[j];
    sum += term(angles.flexion, flexion_prior(j)) + term(angles.abduction, abduction_prior(j)) +
           term(angles.twist, twist_prior(j));
    if (j < 12 && j % 3 == 2) {
      sum += square((angles.flexion - kCoupling * state.angles[j - 1].flexion) / kCouplingSigma);
    }
  }
  return square(prior_) * sum;
}

void Problem::add_prior(const FitState& state, Hessian& hessian, Numbers& gradient) const {
  const double weight = square(prior_);
  const auto add = [&](int place, double difference, double sigma) {
    hessian(place, place) += weight / square(sigma);
    gradient[place] += weight * difference / square(sigma);
  };
  add(6, std::log(state.scale), kScaleSigma);
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const int place = kGlobals + 3 * static_cast<int>(j);
    const JointAngles& angles = state.angles[j];
    const Bell flexion = flexion_prior(j);
    add(place, angles.flexion - flexion.mean, flexion.sigma);
    add(place + 1, angles.abduction, abduction_prior(j).sigma);
    add(place + 2, angles.twist, twist_prior(j).sigma);
    if (j >= 12 || j % 3 != 2) continue;
    const double difference = angles.flexion - kCoupling * state.angles[j - 1].flexion;
    add(place, difference, kCouplingSigma);
    add(place - 3, -kCoupling * difference, kCouplingSigma);
    // add() gave the joint above a whole 1/sigma^2; its share is kCoupling^2 of it.
    hessian(place - 3, place - 3) -= weight * (1 - square(kCoupling)) / square(kCouplingSigma);
    hessian(place, place - 3) -= weight * kCoupling / square(kCouplingSigma);
  }
}

/// The world landmarks count relative to their mean, so a row of theirs is J_i - mean(J) and their part of
/// J^T J is sum J_i^T J_i - n mean(J)^T mean(J): each J_i has 16 columns only.
void Problem::linearise(const FitState& state, Hessian& hessian, Numbers& gradient) const {
  std::array<PointDerivatives, kHandKeypoints> derivatives;
  const HandKeypoints points = hand_.points(state, derivatives);
  Vector3d mean = Vector3d::Zero();
  for (const Vec3& p : points) mean += in(p) / kPoints;
  hessian.setZero();
  gradient.setZero();
  Eigen::Matrix<double, 3, kNumbers> mean_rows = Eigen::Matrix<double, 3, kNumbers>::Zero();
  constexpr int kOwn = kGlobals + kFinger;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    Eigen::Matrix<double, 5, kOwn> rows;  // 3 of the world landmark, 2 of the pixels
    const Vec3& p = points[i];
    const double trust = per_pixel_ * pixel_trust(i);
    const double u = trust * target_.camera.fx / p[2], v = trust * target_.camera.fy / p[2];
    for (int k = 0; k < kOwn; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const Vec3& d = k < kGlobals ? derivatives[i].globals[at] : derivatives[i].finger[at - kFitGlobals];
      rows.col(k) << per_metre_ * d[0], per_metre_ * d[1], per_metre_ * d[2], u * (d[0] - p[0] / p[2] * d[2]),
          v * (d[1] - p[1] / p[2] * d[2]);
    }
    Eigen::Matrix<double, 5, 1> residual;
    residual << metre_residual(in(p)-mean, i), pixel_residual(p, i);
    const Eigen::Matrix<double, kOwn, kOwn> square = rows.transpose() * rows;
    const Eigen::Matrix<double, kOwn, 1> slope = rows.transpose() * residual;
    hessian.topLeftCorner<kGlobals, kGlobals>() += square.topLeftCorner<kGlobals, kGlobals>();
    gradient.head<kGlobals>() += slope.head<kGlobals>();
    mean_rows.leftCols<kGlobals>() += rows.topLeftCorner<3, kGlobals>() / kPoints;
    const int first = derivatives[i].first;
    if (first < 0) continue;
    hessian.block<kFinger, kGlobals>(first, 0) += square.bottomLeftCorner<kFinger, kGlobals>();
    hessian.block<kFinger, kFinger>(first, first) += square.bottomRightCorner<kFinger, kFinger>();
    gradient.segment<kFinger>(first) += slope.tail<kFinger>();
    mean_rows.middleCols<kFinger>(first) += rows.block<3, kFinger>(0, kGlobals) / kPoints;
  }
  hessian.noalias() -= kPoints * mean_rows.transpose() * mean_rows;  // the residuals' own mean is zero
  add_prior(state, hessian, gradient);
}

/// Bounds on each number of a step from `state`. Only scale and angles have any.
struct Box {
  Numbers low, high;
};

Box box_around(const FitState& state) {
  Box box;
  box.low.setConstant(-std::numeric_limits<double>::infinity());
  box.high.setConstant(std::numeric_limits<double>::infinity());
  box.low[6] = std::log(kMinHandScale / state.scale);
  box.high[6] = std::log(kMaxHandScale / state.scale);
  const auto& limits = joint_limits();
  for (std::size_t j = 0; j < kFingerJoints; ++j) {
    const int place = kGlobals + 3 * static_cast<int>(j);
    const JointAngles &at = state.angles[j], &low = limits[j].low, &high = limits[j].high;
    box.low.segment<3>(place) << low.flexion - at.flexion, low.abduction - at.abduction, low.twist - at.twist;
    box.high.segment<3>(place) << high.flexion - at.flexion, high.abduction - at.abduction,
        high.twist - at.twist;
  }
  return box;
}

/// The damped step within the box. A number that the step would carry out of its box is set to the bound, and
/// the others are solved for again with it there: so they make up for what it could not do. Numbers that are
/// at a bound and pulled outwards by the gradient stay.
Numbers boxed_step(const Hessian& hessian, const Numbers& gradient, double damping, const Box& box) {
  constexpr int kRounds = 3;  // what is still outside then is clamped; measured: more do not save iterations
  std::array<bool, kFitNumbers> held{};
  Numbers step = Numbers::Zero();
  for (int i = 0; i < kNumbers; ++i) {
    held[static_cast<std::size_t>(i)] =
        (box.low[i] >= 0 && gradient[i] > 0) || (box.high[i] <= 0 && gradient[i] < 0);
  }
  for (int round = 0; round < kRounds; ++round) {
    Hessian matrix = hessian;
    // Marquardt's scaling: damping relative to each number's own curvature.
    matrix.diagonal() += damping * hessian.diagonal();
    Numbers right = -gradient;
    for (int i = 0; i < kNumbers; ++i) {
      if (!held[static_cast<std::size_t>(i)]) continue;
      right.head(i) -= matrix.row(i).head(i).transpose() * step[i];
      right.tail(kNumbers - i - 1) -= matrix.col(i).tail(kNumbers - i - 1) * step[i];
    }
    for (int i = 0; i < kNumbers; ++i) {
      if (!held[static_cast<std::size_t>(i)]) continue;
      matrix.row(i).head(i).setZero();
      matrix.col(i).tail(kNumbers - i - 1).setZero();
      matrix(i, i) = 1;
      right[i] = step[i];
    }
    Eigen::LLT<Eigen::Ref<Hessian>> factor(matrix);
    step = factor.solve(right);
    bool inside = true;
    for (int i = 0; i < kNumbers; ++i) {
      if (held[static_cast<std::size_t>(i)] || (step[i] >= box.low[i] && step[i] <= box.high[i])) continue;
      step[i] = std::clamp(step[i], box.low[i], box.high[i]);
      held[static_cast<std::size_t>(i)] = true;
      inside = false;
    }
    if (inside) break;
  }
  return step;
}

/// After rounding an angle may lie an ulp outside.
FitState stepped(const FitState& state, const Numbers& step) {
  FitStep numbers;
  Eigen::Map<Numbers>(numbers.data()) = step;
  FitState result = moved(state, numbers);
  result.angles = within_limits(result.angles);
  result.scale = std::clamp(result.scale, kMinHandScale, kMaxHandScale);
  return result;
}

struct Minimum {
  FitState state;
  double cost;
  int iterations;
};

/// Levenberg-Marquardt with Nielsen's rule for the damping (by how much of the promised decrease came true):
/// near the minimum the bends of a hand leave Gauss-Newton steps too long, and a rule that only divides and
/// multiplies swings between rejected and hardly accepted ones (36 steps instead of 23 on sld_2).
Minimum minimise(const Problem& problem, const FitState& start, int max_iterations) {
  // Relative decrease of the cost that ends the fit. 300 more fits from its end moved a joint of the 12
  // pictures by 0.04 mm (median; 0.85 at worst).
  constexpr double kEnough = 1e-5;
  constexpr double kNothing = 1e-3;  // a cost of no more than rounding, where landmarks are perfect
  constexpr double kLeastDamping = 1e-6, kMostDamping = 1e10;
  Minimum at = {start, problem.cost(start), 0};
  double damping = 1e-3, growth = 2;
  Hessian hessian;
  Numbers gradient;
  for (bool fresh = true; at.iterations < max_iterations && damping < kMostDamping; ++at.iterations) {
    if (fresh) problem.linearise(at.state, hessian, gradient);
    const Numbers step = boxed_step(hessian, gradient, damping, box_around(at.state));
    const double promised =
        -step.dot(gradient) - step.dot(hessian.selfadjointView<Eigen::Lower>() * step) / 2;
    FitState next = at.state;
    double cost = std::numeric_limits<double>::infinity();
    if (step.allFinite()) {
      next = stepped(at.state, step);
      cost = problem.cost(next);
    }
    const double decrease = at.cost - cost;
    fresh = decrease > 0;
    if (!fresh) {
      damping *= growth;
      growth *= 2;
      continue;
    }
    const bool enough = decrease <= kEnough * (at.cost + kNothing);
    at.state = next;
    at.cost = cost;
    if (enough) {
      ++at.iterations;
      break;
    }
    const double surprise = 2 * decrease / promised - 1;
    damping = std::max(kLeastDamping, damping * std::max(1.0 / 3, 1 - surprise * surprise * surprise));
    growth = 2;
  }
  return at;
}

void check_number(double value, double most, std::string_view what, std::size_t i) {
  if (std::abs(value) <= most) return;  // false for NaN too
  throw fail(ErrorCode::kMismatch, "{} of landmark {} is {}, expected a number within +-{}", what, i, value,
             most);
}

template <typename Points>
bool all_equal(const Points& points) {
  return std::all_of(points.begin(), points.end(), [&](const auto& p) { return p == points[0]; });
}

void check_target(const FitTarget& target) {
  constexpr double kMostPixels = 1e6, kMostMetres = 10;  // of pictures, of hands
  const Intrinsics& c = target.camera;
  for (const double focal : {c.fx, c.fy}) {
    if (focal > 0 && focal <= 1e9) continue;
    throw fail(ErrorCode::kMismatch, "the camera's focal length is {}, expected a positive number of pixels",
               focal);
  }
  if (!(std::abs(c.cx) <= kMostPixels && std::abs(c.cy) <= kMostPixels)) {
    throw fail(ErrorCode::kMismatch, "the camera's centre is ({}, {}), expected pixels", c.cx, c.cy);
  }
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    for (const double value : target.pixels[i]) check_number(value, kMostPixels, "a pixel coordinate", i);
    for (const double value : target.metres[i]) check_number(value, kMostMetres, "a world coordinate", i);
  }
  if (all_equal(target.pixels) || all_equal(target.metres)) {
    throw fail(ErrorCode::kMismatch, "all {} landmarks lie at one place: no hand", kHandKeypoints);
  }
}

}  // namespace

double hand_size(const std::array<Vec2, kHandKeypoints>& pixels) {
  Vec2 low = pixels[0], high = pixels[0];
  for (const Vec2& p : pixels) {
    for (std::size_t k = 0; k < 2; ++k) {
      low[k] = std::min(low[k], p[k]);
      high[k] = std::max(high[k], p[k]);
    }
  }
  return std::max(high[0] - low[0], high[1] - low[1]);
}

double fit_cost(const Skeleton& skeleton, const FitTarget& target, const HandPose& pose,
                const FitOptions& options) {
  check_target(target);
  const FitKinematics hand(skeleton);
  return Problem(hand, target, options).cost(state_of(hand, pose));
}

HandFit fit_hand(const Skeleton& skeleton, const FitTarget& target, const HandPose* start,
                 const FitOptions& options) {
  check_target(target);
  const FitKinematics hand(skeleton);
  const Problem problem(hand, target, options);
  const FitState from = start == nullptr ? first_guess(hand, target) : state_of(hand, *start);
  const Minimum found = minimise(problem, from, options.max_iterations);
  HandFit fit;
  fit.pose = pose_of(hand, found.state);
  fit.angles = found.state.angles;
  fit.joints = hand.points(found.state);
  fit.cost = found.cost;
  fit.iterations = found.iterations;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Vec3& p = fit.joints[i];
    fit.projected[i] = {target.camera.fx * p[0] / p[2] + target.camera.cx,
                        target.camera.fy * p[1] / p[2] + target.camera.cy};
    fit.error_px +=
        std::hypot(fit.projected[i][0] - target.pixels[i][0], fit.projected[i][1] - target.pixels[i][1]) /
        kPoints;
  }
  return fit;
}

}  // namespace sinew

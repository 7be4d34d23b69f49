#include "hand/truth.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "io/json_text.h"
#include "io/mapped_file.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr double kMillimetres = 1000;

template <std::size_t N>
std::array<std::array<double, N>, kHandKeypoints> read_points(const Json& root, const char* field,
                                                              const std::string& name) {
  const auto at = root.find(field);
  if (at == root.end() || !at->is_array() || at->size() != kHandKeypoints) {
    throw fail(ErrorCode::kFormat, "{}: {} must be a list of {} points", name, field, kHandKeypoints);
  }
  std::array<std::array<double, N>, kHandKeypoints> points{};
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    const Json& point = (*at)[i];
    const bool shaped = point.is_array() && point.size() == N;
    for (std::size_t axis = 0; axis < N; ++axis) {
      if (!shaped || !point[axis].is_number()) {
        throw fail(ErrorCode::kFormat, "{}: {}[{}] must be {} numbers", name, field, i, N);
      }
      points[i][axis] = point[axis].get<double>();
      if (!(std::abs(points[i][axis]) < 1e6)) {
        throw fail(ErrorCode::kFormat, "{}: {}[{}] is {}, expected a number within +-1e6", name, field, i,
                   points[i][axis]);
      }
    }
  }
  return points;
}

double extent(const std::array<Vec2, kHandKeypoints>& pixels) {
  double largest = 0;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const auto [low, high] = std::ranges::minmax(pixels, {}, [&](const Vec2& p) { return p[axis]; });
    largest = std::max(largest, high[axis] - low[axis]);
  }
  return largest;
}

using Points = Eigen::Matrix<double, 3, kHandKeypoints>;

Points as_matrix(const HandKeypoints& points) { return Eigen::Map<const Points>(points.front().data()); }

}  // namespace

HandTruth parse_truth(std::string_view text, const std::string& name) {
  const Json root = parse_json_text(text, name, kMaxBytes);
  if (!root.is_object()) throw fail(ErrorCode::kFormat, "{}: expected an object", name);
  HandTruth truth;
  const auto side = root.find("is_right");
  if (side == root.end() || !(side->is_boolean() || *side == 0 || *side == 1)) {
    throw fail(ErrorCode::kFormat, "{}: is_right must be 0 or 1", name);
  }
  truth.is_right = side->is_boolean() ? side->get<bool>() : *side == 1;
  truth.pixels = read_points<2>(root, "joints_px", name);
  truth.metres = read_points<3>(root, "joints_m", name);
  if (!(extent(truth.pixels) > 0)) throw fail(ErrorCode::kFormat, "{}: joints_px are all one point", name);
  return truth;
}

HandTruth read_truth(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_truth({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

double aligned_distance(const HandKeypoints& points, const HandKeypoints& target) {
  const Points from = as_matrix(points), to = as_matrix(target);
  // Umeyama divides by the spread of the points.
  if ((from.colwise() - from.rowwise().mean()).squaredNorm() == 0) {
    return (to.colwise() - to.rowwise().mean()).colwise().norm().mean();
  }
  const Eigen::Matrix4d similarity = Eigen::umeyama(from, to, true);
  const Points moved =
      (similarity.topLeftCorner<3, 3>() * from).colwise() + similarity.topRightCorner<3, 1>();
  return (moved - to).colwise().norm().mean();
}

JointError joint_error(const HandResult& result, const HandTruth& truth) {
  JointError error;
  error.side_is_right = result.box.is_right == truth.is_right;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    error.mean_px +=
        std::hypot(result.joints_2d[i][0] - truth.pixels[i][0], result.joints_2d[i][1] - truth.pixels[i][1]) /
        kHandKeypoints;
  }
  error.percent = 100 * error.mean_px / extent(truth.pixels);
  error.aligned_mm = kMillimetres * aligned_distance(result.joints_3d, truth.metres);
  return error;
}

}  // namespace sinew

#include "hand/posed_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.h"
#include "hand/noise.h"
#include "hand/rasterise.h"
#include "hand/skin.h"
#include "hand/subdivide.h"
#include "hand/vector3.h"

namespace sinew {
namespace {

using Mat3 = std::array<double, 9>;  // row-major

Mat3 times(const Mat3& a, const Mat3& b) {
  Mat3 out{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t k = 0; k < 3; ++k) out[3 * r + c] += a[3 * r + k] * b[3 * k + c];
    }
  }
  return out;
}

Vec3 times(const Mat3& m, const Vec3& v) {
  return {dot({m[0], m[1], m[2]}, v), dot({m[3], m[4], m[5]}, v), dot({m[6], m[7], m[8]}, v)};
}

Mat3 rotation(const Vec3& axis, double angle) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  const auto [x, y, z] = axis;
  return {c + x * x * (1 - c),     x * y * (1 - c) - z * s, x * z * (1 - c) + y * s,
          y * x * (1 - c) + z * s, c + y * y * (1 - c),     y * z * (1 - c) - x * s,
          z * x * (1 - c) - y * s, z * y * (1 - c) + x * s, c + z * z * (1 - c)};
}

/// Seeded numbers that are asked for by name, so that another question does not change the answers.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(mix64(seed + 0x5eed)) {}
  /// Uniform in [low, high).
  double operator()(std::uint64_t question, double low, double high) const {
    return low + (high - low) * 0.5 * (1 + random_pm1(seed_, question));
  }

 private:
  std::uint64_t seed_;
};

enum Question : std::uint64_t {
  kStyle,
  kSide,
  kTurn,
  kTilt,
  kRoll,
  kSpread,
  kPlaceX,
  kPlaceY,
  kCloth,
  kWall
};
constexpr std::uint64_t kFingerQuestions = 100;

/// 0 straight, 1 a fist.
double curl(const Dice& dice, std::uint64_t finger) {
  const double u = dice(kFingerQuestions + finger, 0, 1);
  const double style = dice(kStyle, 0, 3);
  if (style < 1) return 0.05 + 0.17 * u;                       // open
  if (style < 2) return 0.12 + 0.22 * u;                       // relaxed
  return u < 0.62 ? 0.04 + 0.2 * u : 0.45 + 0.7 * (u - 0.62);  // some fingers bent
}

/// Flexion is a turn about +z of the flat hand, spreading one about y; angles stay within what hands do:
/// knuckles 0.06 to 0.84 rad, middle joints to 1.1, end joints to 0.6.
std::array<Mat3, kHandJoints> pose(const Dice& dice) {
  std::array<Mat3, kHandJoints> out;
  // From MANO's axes to the camera's: fingers up, palm towards the camera, so the thumb points right.
  const Mat3 towards_camera = {0, 0, 1, 1, 0, 0, 0, 1, 0};
  const bool shows_back = dice(kSide, 0, 1) > 0.6;
  const double turn = dice(kTurn, -0.6, 0.6) + (shows_back ? std::numbers::pi : 0);
  const Mat3 view = times(rotation({0, 0, 1}, dice(kRoll, -0.45, 0.45)),
                          times(rotation({1, 0, 0}, dice(kTilt, -0.35, 0.35)), rotation({0, 1, 0}, turn)));
  out[0] = times(view, towards_camera);
  const double spread = dice(kSpread, -0.02, 0.12);
  constexpr std::array<double, 4> kSpreads = {1.0, 0.1, -1.5, -0.7};  // index, middle, pinky, ring
  for (std::size_t finger = 0; finger < 4; ++finger) {
    const double c = curl(dice, finger);
    const std::size_t first = 1 + 3 * finger;
    out[first] =
        times(rotation({0, 1, 0}, spread * kSpreads[finger] * (1 - c)), rotation({0, 0, 1}, 0.02 + 1.1 * c));
    out[first + 1] = rotation({0, 0, 1}, 0.04 + 1.45 * c);
    out[first + 2] = rotation({0, 0, 1}, 0.02 + 0.80 * c);
  }
  const Vec3 axis = unit({0.3, 0.6, 0.7});
  out[13] = rotation(axis, dice(kFingerQuestions + 10, -0.10, 0.15));
  out[14] = rotation(axis, dice(kFingerQuestions + 11, 0.00, 0.30));
  out[15] = rotation(axis, dice(kFingerQuestions + 12, 0.00, 0.40));
  return out;
}

PosedHand posed_by(const HandModel& model, const std::array<Mat3, kHandJoints>& rotations) {
  std::array<double, kHandRotationNumbers> numbers;
  for (std::size_t j = 0; j < rotations.size(); ++j) {
    std::ranges::copy(rotations[j], numbers.begin() + static_cast<std::ptrdiff_t>(9 * j));
  }
  return model.pose(numbers, {});
}

Mesh mesh_from(const std::vector<Vec3>& vertices, const std::vector<Face>& faces) {
  Mesh mesh;
  for (const Vec3& v : vertices) {
    mesh.vertices.push_back({static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])});
  }
  mesh.faces = faces;
  return mesh;
}

Vec3f in_float(const Vec3& v) {
  return {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2])};
}
Vec3 in_double(const Vec3f& v) { return {v[0], v[1], v[2]}; }

struct Painted {
  Mesh mesh;  // camera's axes
  std::vector<Vec3f> colours;
};

/// The hand as it stands before the camera.
struct Scene {
  PosedHand rest, posed;  // posed: in the camera's axes and place, mirrored for a left hand
  Mat3 root;              // of the forearm, right hand
  Vec3 wrist_shift{};     // what was added to a right hand's vertices
  double side = 1;        // -1: left

  Vec3 place(const Vec3& right) const {
    const Vec3 p = right + wrist_shift;
    return {side * p[0], p[1], p[2]};
  }
};

/// Faces are four millimetres wide and have to become pixels: at 640 x 480 three steps do, which also gives
/// creases of half a millimetre.
int steps_for(int side_px) { return side_px < 160 ? 1 : side_px < 320 ? 2 : side_px < 960 ? 3 : 4; }

Painted paint_hand(const HandModel& model, const Scene& scene, std::uint64_t seed, int steps) {
  Painted out;
  out.mesh = mesh_from(scene.posed.vertices, model.faces());
  if (scene.side < 0) {
    for (Face& face : out.mesh.faces) std::swap(face[1], face[2]);
  }
  std::vector<Vec3> rest = scene.rest.vertices;
  for (int step = 0; step < steps; ++step) subdivide(out.mesh, rest);
  const std::vector<Vec3f> normals = vertex_normals(out.mesh);
  Mesh flat = mesh_from(rest, out.mesh.faces);
  if (scene.side < 0) {
    for (Face& face : flat.faces) std::swap(face[1], face[2]);
  }
  const std::vector<Vec3f> rest_normals = vertex_normals(flat);
  const SkinTexture texture(scene.rest.keypoints, seed);
  const HandLight light(scene.posed.keypoints);
  out.colours.reserve(rest.size());
  for (std::size_t v = 0; v < rest.size(); ++v) {
    const SkinPoint skin = texture.at(rest[v], in_double(rest_normals[v]));
    out.colours.push_back(
        in_float(light.shade(in_double(out.mesh.vertices[v]), in_double(normals[v]), skin)));
  }
  return out;
}

/// The mesh ends behind the wrist: a sleeve hides the cut and leads out of the picture.
Painted paint_sleeve(const Scene& scene, const Dice& dice) {
  struct Ring {
    double along, width, shade;  // metres from the cuff, factor of the wrist's section, brightness
  };
  std::vector<Ring> rings = {{0.030, 1.0, 0.15}, {0.002, 1.08, 0.25}, {0.0, 1.12, 1.0}, {0.002, 1.17, 1.0}};
  for (int i = 1; i <= 90; ++i) rings.push_back({0.004 * i, 1.17 + 0.0065 * i, 1.0});
  constexpr int kSegments = 96;
  const Vec3& wrist = scene.rest.joints[0];
  const Vec3 middle = wrist + Vec3{0.009, 0.0, -0.001};
  const Vec3 cloth = mix({0.16, 0.20, 0.30}, {0.42, 0.40, 0.38}, dice(kCloth, 0, 1));
  Painted out;
  std::vector<double> shades;
  for (const Ring& ring : rings) {
    for (int s = 0; s < kSegments; ++s) {
      const double turn = 2 * std::numbers::pi * s / kSegments;
      // Folds across the cloth.
      const Vec3 at = {ring.along, std::cos(turn), std::sin(turn)};
      const double fold =
          0.0016 * smooth_noise(11, at * Vec3{60, 1.3, 1.3}) * std::min(1.0, ring.along / 0.02);
      const Vec3 p = middle + Vec3{ring.along, (0.0195 * ring.width + fold) * at[1],
                                   (0.0272 * ring.width + fold) * at[2]};
      out.mesh.vertices.push_back(in_float(scene.place(times(scene.root, p - wrist) + wrist)));
      shades.push_back(ring.shade * (1 + 0.10 * smooth_noise(12, at * Vec3{900, 40, 40})));
    }
  }
  for (std::size_t ring = 0; ring + 1 < rings.size(); ++ring) {
    for (std::size_t s = 0; s < kSegments; ++s) {
      const auto at = [&](std::size_t r, std::size_t i) {
        return static_cast<std::uint32_t>(r * std::size_t{kSegments} + i % kSegments);
      };
      out.mesh.faces.push_back({at(ring, s), at(ring, s + 1), at(ring + 1, s)});
      out.mesh.faces.push_back({at(ring, s + 1), at(ring + 1, s + 1), at(ring + 1, s)});
    }
  }
  if (scene.side < 0) out.mesh = Mesh{out.mesh.vertices, mirrored(out.mesh).faces};
  const std::vector<Vec3f> normals = vertex_normals(out.mesh);
  for (std::size_t v = 0; v < shades.size(); ++v) {
    const Vec3 n = in_double(normals[v]);
    const double key = std::max(0.0, dot(n, unit({-0.50, -0.62, -0.62})) + 0.1);
    out.colours.push_back(in_float(cloth * (shades[v] * (0.38 + 0.65 * key))));
  }
  return out;
}

Vec3 background(const Dice& dice, double u, double v, double aspect) {
  const Vec3 wall = mix({0.50, 0.54, 0.57}, {0.62, 0.58, 0.52}, dice(kWall, 0, 1));
  const double glow = std::exp(-2.5 * ((u - 0.3) * (u - 0.3) + (v - 0.2) * (v - 0.2)));
  const Vec3 at = {u * aspect * 3, v * 3, 0.5};
  const double soft = smooth_noise(21, at) + 0.5 * smooth_noise(22, at * 2.3);
  const double grain = smooth_noise(23, at * 60) + smooth_noise(24, at * 23);
  Vec3 colour = wall * (0.62 + 0.42 * glow + 0.05 * soft + 0.006 * grain);
  // A shelf out of focus, low in the picture.
  const double shelf = smooth_step(0.80, 0.84, v + 0.015 * soft);
  return mix(colour,
             Vec3{0.36, 0.28, 0.22} * (0.7 + 0.3 * glow + 0.06 * smooth_noise(25, at * Vec3{2, 20, 1})),
             0.85 * shelf);
}

/// Sums of running windows along one axis, three times, are close to a bell.
void blur(std::vector<float>& values, int width, int height, int radius) {
  std::vector<float> line;
  const auto along = [&](std::size_t start, std::size_t step, int count) {
    line.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      line[static_cast<std::size_t>(i)] = values[start + step * static_cast<std::size_t>(i)];
    double sum = 0;
    const auto at = [&](int i) -> double {
      return line[static_cast<std::size_t>(std::clamp(i, 0, count - 1))];
    };
    for (int i = -radius; i < radius; ++i) sum += at(i);
    for (int i = 0; i < count; ++i) {
      sum += at(i + radius);
      values[start + step * static_cast<std::size_t>(i)] = static_cast<float>(sum / (2 * radius + 1));
      sum -= at(i - radius);
    }
  };
  for (int pass = 0; pass < 3; ++pass) {
    for (int y = 0; y < height; ++y)
      along(static_cast<std::size_t>(y) * static_cast<std::size_t>(width), 1, width);
    for (int x = 0; x < width; ++x)
      along(static_cast<std::size_t>(x), static_cast<std::size_t>(width), height);
  }
}

/// The wall behind, darker where the hand keeps the key light from it.
Image paint_background(const Layer& layer, const Dice& dice, double unit_px) {
  const int width = layer.width;
  const int height = layer.height;
  std::vector<float> shadow(layer.depth.size());
  const int right = static_cast<int>(0.22 * unit_px);
  const int down = static_cast<int>(0.26 * unit_px);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int from_x = std::max(x - right, 0);
      const int from_y = std::max(y - down, 0);
      shadow[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
          static_cast<float>(layer.pixel(from_x, from_y)[3]) / 255;
    }
  }
  blur(shadow, width, height, std::max(1, static_cast<int>(0.06 * unit_px)));
  Image out(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double shade =
          shadow[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
      const Vec3 colour =
          background(dice, (x + 0.5) / width, (y + 0.5) / height, static_cast<double>(width) / height) *
          (1 - 0.30 * shade);
      for (std::size_t c = 0; c < 3; ++c) {
        out.pixel(x, y)[c] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(colour[c], 0.0, 1.0)));
      }
    }
  }
  return out;
}

constexpr double kHandLength = 0.19;  // metres, wrist to the middle finger's tip

Scene stand(const HandModel& model, const Dice& dice, const Intrinsics& camera, int side_px, bool is_right) {
  Scene scene;
  scene.side = is_right ? 1 : -1;
  std::array<Mat3, kHandJoints> flat;
  flat.fill({1, 0, 0, 0, 1, 0, 0, 0, 1});
  scene.rest = posed_by(model, flat);
  const std::array<Mat3, kHandJoints> rotations = pose(dice);
  scene.root = rotations[0];
  scene.posed = posed_by(model, rotations);
  Vec3 low = scene.posed.keypoints[0];
  Vec3 high = low;
  for (const Vec3& p : scene.posed.keypoints) {
    for (std::size_t k = 0; k < 3; ++k) {
      low[k] = std::min(low[k], p[k]);
      high[k] = std::max(high[k], p[k]);
    }
  }
  // 0.60 of the picture's shorter side for an open hand.
  const double z = camera.fx * kHandLength / (0.60 * side_px);
  const Vec3 target = {dice(kPlaceX, -0.06, 0.06) * side_px / camera.fx * z,
                       dice(kPlaceY, -0.04, 0.04) * side_px / camera.fx * z, z};
  scene.wrist_shift = target - (low + high) * 0.5;
  for (Vec3& p : scene.posed.vertices) p = scene.place(p);
  for (Vec3& p : scene.posed.joints) p = scene.place(p);
  for (Vec3& p : scene.posed.keypoints) p = scene.place(p);
  return scene;
}

/// Around the hand without its forearm.
void measure_box(const Scene& scene, const Intrinsics& camera, HandPicture& picture) {
  picture.x1 = picture.y1 = 1e9;
  picture.x2 = picture.y2 = -1e9;
  const double wrist = scene.rest.joints[0][0];
  for (std::size_t v = 0; v < scene.posed.vertices.size(); ++v) {
    if (scene.rest.vertices[v][0] > wrist) continue;
    const Vec2 p = project(scene.posed.vertices[v], {}, camera);
    picture.x1 = std::min(picture.x1, p[0]);
    picture.x2 = std::max(picture.x2, p[0]);
    picture.y1 = std::min(picture.y1, p[1]);
    picture.y2 = std::max(picture.y2, p[1]);
  }
  picture.x1 = std::max(0.0, std::floor(picture.x1 - 1));
  picture.y1 = std::max(0.0, std::floor(picture.y1 - 1));
  picture.x2 = std::min<double>(picture.image.width, std::ceil(picture.x2 + 2));
  picture.y2 = std::min<double>(picture.image.height, std::ceil(picture.y2 + 2));
}

}  // namespace

HandPicture draw_posed_hand_picture(const HandModel& model, int width, int height, std::uint64_t seed,
                                    bool is_right) {
  check_picture_size(width, height);
  const Dice dice(seed);
  const int side = std::min(width, height);
  const double focal = 1.1 * std::max(width, height);
  const Intrinsics camera = {focal, focal, width / 2.0, height / 2.0};
  const Scene scene = stand(model, dice, camera, side, is_right);
  const Painted hand = paint_hand(model, scene, seed, steps_for(side));
  const Painted sleeve = paint_sleeve(scene, dice);
  MeshInstance hand_instance = {&hand.mesh};
  hand_instance.colours = &hand.colours;
  MeshInstance sleeve_instance = {&sleeve.mesh};
  sleeve_instance.colours = &sleeve.colours;
  const Layer layer =
      render({hand_instance, sleeve_instance}, centred_camera(focal, width, height), width, height);

  HandPicture picture;
  picture.image = paint_background(layer, dice, 0.60 * side);
  compose(picture.image, layer);
  picture.joints_3d = scene.posed.keypoints;
  picture.camera = camera;
  picture.is_right = is_right;
  for (std::size_t i = 0; i < kHandKeypoints; ++i) {
    picture.joints_2d[i] = project(picture.joints_3d[i], {}, camera);
  }
  measure_box(scene, camera, picture);
  return picture;
}

}  // namespace sinew

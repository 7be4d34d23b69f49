// Hands that are two dots, and networks that see them: the finder's tests know where everything must come
// out without a trained network.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "hand/camera.h"
#include "models/mediapipe/landmark.h"
#include "models/mediapipe/palm.h"
#include "tensor/image.h"

namespace sinew {

/// Any computation from "input" to the outputs.
class AnyNetwork : public Op {
 public:
  AnyNetwork(ValueId in, std::vector<ValueId> out) : in_(in), out_(std::move(out)) {}
  std::string_view name() const override { return "any"; }
  std::vector<ValueId> inputs() const override { return {in_}; }
  std::vector<ValueId> outputs() const override { return out_; }
  void check(const Program&) const override {}
  Cost cost(const Program&) const override { return {}; }

 private:
  ValueId in_;
  std::vector<ValueId> out_;
};

/// side x side x 3 floats in, outputs of the given shapes out.
class FakeNetwork : public Session {
 public:
  using Outputs = std::vector<std::vector<float>>;
  using Compute = std::function<void(std::span<const float>, Outputs&)>;

  FakeNetwork(int side, const std::vector<Shape>& outputs, Compute compute, DType dtype = DType::kF32)
      : Session(program_of(side, outputs, dtype)), compute_(std::move(compute)) {
    for (const Shape& shape : outputs) values_.emplace_back(static_cast<std::size_t>(shape.count()));
  }
  void run() noexcept override {
    const ValueId in = program().find("input");
    const Value& value = program().value(in);
    const Tensor pixels = convert({value.dtype, value.shape, memory(in)}, DType::kF32);
    for (auto& output : values_) std::fill(output.begin(), output.end(), 0.0F);
    compute_(pixels.as<float>(), values_);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const ValueId out = program().find("output" + std::to_string(i));
      const Value& to = program().value(out);
      convert_into(TensorView(DType::kF32, to.shape, values_[i].data()), to.dtype, memory(out));
    }
  }
  std::size_t weight_bytes() const override { return 0; }

 private:
  static Program program_of(int side, const std::vector<Shape>& outputs, DType dtype) {
    ProgramBuilder builder("fake");
    const ValueId in = builder.input("input", dtype, {side, side, 3});
    std::vector<ValueId> out;
    out.reserve(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      out.push_back(builder.output("output" + std::to_string(i), dtype, outputs[i]));
    builder.add(AnyNetwork(in, out));
    return builder.finish();
  }

  Compute compute_;
  Outputs values_;
};

/// A hand is a red disc at the wrist and a green one (left hands: cyan) at the middle knuckle.
struct DotHand {
  Vec2 wrist, knuckle;
  bool is_right = true;
  double radius = 6;
};

inline void paint(Image& image, const DotHand& hand) {
  const auto disc = [&](const Vec2& at, const std::array<std::uint8_t, 3>& colour) {
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        if (std::hypot(x + 0.5 - at[0], y + 0.5 - at[1]) <= hand.radius)
          std::copy(colour.begin(), colour.end(), image.pixel(x, y));
      }
    }
  };
  disc(hand.wrist, {255, 0, 0});
  disc(hand.knuckle, {0, 255, hand.is_right ? std::uint8_t{0} : std::uint8_t{255}});
}

/// A spot of a network's picture.
struct Spot {
  Vec2 at{};  // pixels of that picture
  int count = 0;
  bool blue = false;
};

/// Connected runs of red (or green) pixels, those of any blend above one half.
inline std::vector<Spot> spots(std::span<const float> rgb, int side, bool red) {
  constexpr double kNear = 12;
  std::vector<Spot> found;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const float* p = &rgb[3 * (static_cast<std::size_t>(y) * side + x)];
      if (red ? p[0] < 0.5F || p[1] > 0.25F : p[1] < 0.5F || p[0] > 0.25F) continue;
      const Vec2 at = {x + 0.5, y + 0.5};
      auto spot = std::find_if(found.begin(), found.end(), [&](const Spot& s) {
        return std::hypot(s.at[0] - at[0], s.at[1] - at[1]) < kNear;
      });
      if (spot == found.end()) spot = found.insert(found.end(), Spot{at, 0, p[2] > 0.5F});
      ++spot->count;
      for (std::size_t axis = 0; axis < 2; ++axis)
        spot->at[axis] += (at[axis] - spot->at[axis]) / spot->count;
    }
  }
  return found;
}

/// The red spots with the green one nearest to each.
inline std::vector<std::pair<Spot, Spot>> dot_hands(std::span<const float> rgb, int side) {
  std::vector<std::pair<Spot, Spot>> hands;
  const std::vector<Spot> knuckles = spots(rgb, side, false);
  for (const Spot& wrist : spots(rgb, side, true)) {
    const auto away = [&](const Spot& s) { return std::hypot(s.at[0] - wrist.at[0], s.at[1] - wrist.at[1]); };
    const auto nearest = std::min_element(knuckles.begin(), knuckles.end(),
                                          [&](const Spot& a, const Spot& b) { return away(a) < away(b); });
    if (nearest != knuckles.end()) hands.emplace_back(wrist, *nearest);
  }
  return hands;
}

/// Sees dot hands, the larger the surer: the logit is (red pixels - 6)/20.
inline void see_palms(std::span<const float> rgb, FakeNetwork::Outputs& out) {
  using namespace mediapipe;
  const auto anchors = palm_anchors();
  std::fill(out[1].begin(), out[1].end(), -100.0F);
  std::size_t anchor = 0;
  for (const auto& [wrist, knuckle] : dot_hands(rgb, kPalmSide)) {
    // Twice, 2 pixels apart: suppression must make one of them.
    for (const double apart : {0.0, 2.0}) {
      float* box = &out[0][kPalmNumbers * anchor];
      const auto offset = [&](double x, double y, float* to) {
        to[0] = static_cast<float>(x + apart - kPalmSide * anchors[anchor][0]);
        to[1] = static_cast<float>(y - kPalmSide * anchors[anchor][1]);
      };
      const double length = std::hypot(knuckle.at[0] - wrist.at[0], knuckle.at[1] - wrist.at[1]);
      offset((wrist.at[0] + knuckle.at[0]) / 2, (wrist.at[1] + knuckle.at[1]) / 2, box);
      box[2] = box[3] = static_cast<float>(length);
      for (std::size_t k = 0; k < kPalmPoints; ++k) offset(wrist.at[0], wrist.at[1], box + 4 + 2 * k);
      offset(knuckle.at[0], knuckle.at[1], box + 4 + 2 * kPalmMiddle);
      out[1][anchor] = static_cast<float>((wrist.count - 6) / 20.0 - apart / 4);
      anchor += 7;
    }
  }
}

/// The dot hand nearest to the middle of the crop: landmarks along wrist to knuckle, presence 0.97 (none: 0).
inline void see_landmarks(std::span<const float> rgb, FakeNetwork::Outputs& out) {
  using namespace mediapipe;
  const auto hands = dot_hands(rgb, kLandmarkSide);
  out[1][0] = hands.empty() ? 0.0F : 0.97F;
  if (hands.empty()) return;
  constexpr double kMiddle = kLandmarkSide / 2.0;
  const auto away = [](const std::pair<Spot, Spot>& h) {
    return std::hypot((h.first.at[0] + h.second.at[0]) / 2 - kMiddle,
                      (h.first.at[1] + h.second.at[1]) / 2 - kMiddle);
  };
  const auto& [wrist, knuckle] = *std::min_element(
      hands.begin(), hands.end(), [&](const auto& a, const auto& b) { return away(a) < away(b); });
  const Vec2 up = {knuckle.at[0] - wrist.at[0], knuckle.at[1] - wrist.at[1]};
  const double side = knuckle.blue ? -1 : 1;  // right hand, back seen: the thumb on the left
  for (std::size_t i = 0; i < kLandmarks; ++i) {
    const std::size_t number = (i + 3) / 4;
    const auto finger = static_cast<double>(number);  // 0 wrist, 1 thumb .. 5 little
    const double along = i == 0 ? 0 : 1 + 0.3 * static_cast<double>((i - 1) % 4);
    const double across = i == 0 ? 0 : side * 0.2 * (finger - 3);
    out[0][3 * i] = static_cast<float>(wrist.at[0] + along * up[0] - across * up[1]);
    out[0][3 * i + 1] = static_cast<float>(wrist.at[1] + along * up[1] + across * up[0]);
    out[0][3 * i + 2] = static_cast<float>(i);
    out[3][3 * i] = static_cast<float>(0.1 * across);
    out[3][3 * i + 1] = static_cast<float>(-0.1 * along);
  }
  out[2][0] = knuckle.blue ? 0.1F : 0.9F;
}

inline std::unique_ptr<Session> fake_palm(FakeNetwork::Compute compute = see_palms,
                                          DType dtype = DType::kF32) {
  return std::make_unique<FakeNetwork>(mediapipe::kPalmSide, std::vector<Shape>{{1, 2016, 18}, {1, 2016, 1}},
                                       std::move(compute), dtype);
}

inline std::unique_ptr<Session> fake_landmark(FakeNetwork::Compute compute = see_landmarks,
                                              DType dtype = DType::kF32) {
  return std::make_unique<FakeNetwork>(mediapipe::kLandmarkSide,
                                       std::vector<Shape>{{1, 63}, {1, 1}, {1, 1}, {1, 63}},
                                       std::move(compute), dtype);
}

}  // namespace sinew

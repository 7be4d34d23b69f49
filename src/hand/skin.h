// How skin looks: what is painted on it, and the light that falls on a posed hand.
#pragma once

#include <cstdint>
#include <vector>

#include "hand/skeleton.h"

namespace sinew {

struct SkinPoint {
  Vec3 albedo{};     // 0..1
  double gloss = 0;  // 0..1
};

/// Tone, mottling, blush, creases and nails, as a function of the place on the flat hand (MANO's axes:
/// fingers along -x, thumb towards +z, palm towards -y), so that they move with the skin when it is posed.
class SkinTexture {
 public:
  /// `rest` are the key points of the flat hand in metres, OpenPose order; `seed` picks tone and mottling.
  SkinTexture(const HandKeypoints& rest, std::uint64_t seed);
  /// `normal` of the flat hand's surface there, of length 1.
  SkinPoint at(const Vec3& position, const Vec3& normal) const;

 private:
  struct Line {
    Vec3 a, b;
    double depth, width;
  };
  struct Fold {
    Vec3 at, along, back;  // across a finger; `back` is where its nail looks
    double depth, width;
    bool on_palm;
  };
  struct Nail {
    Vec3 tip, along, back;
    double size;
  };
  struct Spot {
    Vec3 at;
    double reach, strength;
  };

  void add_finger(const HandKeypoints& rest, std::size_t first);
  void add_palm(const HandKeypoints& rest);
  void add_curve(const Vec3& a, const Vec3& b, const Vec3& c, double width);
  double crease(const Vec3& position, const Vec3& normal) const;
  double blush(const Vec3& position) const;
  double nail(const Vec3& position, const Vec3& normal) const;

  std::uint64_t seed_;
  Vec3 tone_{}, blush_tone_{};
  std::vector<Line> lines_;
  std::vector<Fold> folds_;
  std::vector<Nail> nails_;
  std::vector<Spot> spots_;
};

/// A soft key light from above left, a fill light, and what the hand takes of both from itself. Camera axes:
/// x right, y down, z away.
class HandLight {
 public:
  /// `joints` of the posed hand in metres, OpenPose order.
  explicit HandLight(const HandKeypoints& joints);
  /// The colour of a point as the camera at the origin sees it, 0..1. `normal` of length 1.
  Vec3 shade(const Vec3& position, const Vec3& normal, const SkinPoint& skin) const;

 private:
  struct Ball {
    Vec3 centre;
    double radius, weight;
  };
  void add_bone(const Vec3& from, const Vec3& to, double radius_from, double radius_to);
  double openness(const Vec3& position, const Vec3& normal) const;
  double key_visibility(const Vec3& position) const;

  std::vector<Ball> balls_;
};

}  // namespace sinew

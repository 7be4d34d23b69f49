#include "hand/subdivide.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <unordered_map>

#include "hand/vector3.h"

namespace sinew {
namespace {

// On a ball, the middle of a chord of half angle h comes to lie at cos(h) (1 + kBulge sin(h)^2) radii: one
// half makes that 1 - h^4/6 or so. (The authors' three quarters are for the inside of faces.)
constexpr double kBulge = 0.5;

Vec3 in_double(const Vec3f& v) { return {v[0], v[1], v[2]}; }

/// The middles of edges, made when first asked for; both faces of an edge get the same one.
class Middles {
 public:
  Middles(Mesh& mesh, std::vector<Vec3>& carried)
      : mesh_(mesh), carried_(carried), normals_(vertex_normals(mesh)) {}

  std::uint32_t of(std::uint32_t a, std::uint32_t b) {
    const std::uint64_t key = (std::uint64_t{std::min(a, b)} << 32) | std::max(a, b);
    const auto [found, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(mesh_.vertices.size()));
    if (is_new) add(std::min(a, b), std::max(a, b));
    return found->second;
  }

 private:
  void add(std::uint32_t a, std::uint32_t b) {
    const Vec3 middle = (in_double(mesh_.vertices[a]) + in_double(mesh_.vertices[b])) * 0.5;
    const auto on_plane = [&](std::uint32_t v) {
      const Vec3 normal = in_double(normals_[v]);
      return middle - normal * dot(middle - in_double(mesh_.vertices[v]), normal);
    };
    const Vec3 out = mix(middle, (on_plane(a) + on_plane(b)) * 0.5, kBulge);
    mesh_.vertices.push_back(
        {static_cast<float>(out[0]), static_cast<float>(out[1]), static_cast<float>(out[2])});
    carried_.push_back((carried_[a] + carried_[b]) * 0.5);
  }

  Mesh& mesh_;
  std::vector<Vec3>& carried_;
  std::vector<Vec3f> normals_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
};

}  // namespace

void subdivide(Mesh& mesh, std::vector<Vec3>& carried) {
  assert(carried.size() == mesh.vertices.size());
  const std::size_t vertices = mesh.vertices.size();
  Middles middles(mesh, carried);
  std::vector<Face> faces;
  faces.reserve(4 * mesh.faces.size());
  for (const auto& [a, b, c] : mesh.faces) {
    if (a >= vertices || b >= vertices || c >= vertices) continue;
    const std::uint32_t ab = middles.of(a, b);
    const std::uint32_t bc = middles.of(b, c);
    const std::uint32_t ca = middles.of(c, a);
    faces.insert(faces.end(), {{a, ab, ca}, {ab, b, bc}, {ca, bc, c}, {ab, bc, ca}});
  }
  mesh.faces = std::move(faces);
}

}  // namespace sinew

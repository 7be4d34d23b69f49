#include "hand/mesh_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "hand/mesh_files_check.h"
#include "io/atomic_file.h"
#include "io/bytes.h"
#include "io/npz_writer.h"

namespace sinew {

void check_mesh(const std::string& path, const Mesh& mesh) {
  for (std::size_t v = 0; v < mesh.vertices.size(); ++v) {
    if (!std::ranges::all_of(mesh.vertices[v], [](float c) { return std::isfinite(c); })) {
      throw fail(ErrorCode::kMismatch, "{}: vertex {} of the mesh is not finite", path, v);
    }
  }
  for (std::size_t f = 0; f < mesh.faces.size(); ++f) {
    for (const std::uint32_t v : mesh.faces[f]) {
      if (v >= mesh.vertices.size()) {
        throw fail(ErrorCode::kMismatch, "{}: face {} names vertex {} of {}", path, f, v,
                   mesh.vertices.size());
      }
    }
  }
}

void write_obj(const std::string& path, const Mesh& mesh, const Vec3f& colour) {
  check_mesh(path, mesh);
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  const std::string tail = fmt::format("{:.8f} {:.8f} {:.8f}\n", colour[0], colour[1], colour[2]);
  // Eight digits after the point, as the original: 10 nanometres.
  for (const Vec3f& v : mesh.vertices)
    fmt::format_to(out, "v {:.8f} {:.8f} {:.8f} {}", v[0], v[1], v[2], tail);
  for (const Face& f : mesh.faces) {
    fmt::format_to(out, "f {} {} {}\n", std::uint64_t{f[0]} + 1, std::uint64_t{f[1]} + 1,
                   std::uint64_t{f[2]} + 1);
  }
  write_file_atomically(path, std::string_view(text.data(), text.size()));
}

void write_ply(const std::string& path, const Mesh& mesh, const Vec3f& colour) {
  check_mesh(path, mesh);
  const std::vector<Vec3f> normals = vertex_normals(mesh);
  std::array<std::uint8_t, 3> rgb;
  for (std::size_t k = 0; k < 3; ++k) {
    rgb[k] = static_cast<std::uint8_t>(std::lround(std::clamp(colour[k], 0.0F, 1.0F) * 255));
  }
  std::string out = fmt::format(
      "ply\nformat binary_little_endian 1.0\ncomment sinew, metres\nelement vertex {}\n"
      "property float x\nproperty float y\nproperty float z\n"
      "property float nx\nproperty float ny\nproperty float nz\n"
      "property uchar red\nproperty uchar green\nproperty uchar blue\n"
      "element face {}\nproperty list uchar uint vertex_indices\nend_header\n",
      mesh.vertices.size(), mesh.faces.size());
  // Memory order is file order: io/bytes.h asserts little-endian machines.
  const auto put = [&](const auto& values) {
    out.append(reinterpret_cast<const char*>(values.data()), sizeof(values));
  };
  for (std::size_t v = 0; v < mesh.vertices.size(); ++v) {
    put(mesh.vertices[v]);
    put(normals[v]);
    put(rgb);
  }
  for (const Face& f : mesh.faces) {
    out += '\3';
    put(f);
  }
  write_file_atomically(path, out);
}

void write_mesh_npz(const std::string& path, const Mesh& mesh) {
  check_mesh(path, mesh);
  const std::vector<Vec3f> normals = vertex_normals(mesh);
  const auto rows = [](const auto& values) { return Shape{static_cast<std::int64_t>(values.size()), 3}; };
  NpzWriter writer(path);
  writer.add("vertices", {DType::kF32, rows(mesh.vertices), mesh.vertices.data()});
  writer.add("faces", {DType::kU32, rows(mesh.faces), mesh.faces.data()});
  writer.add("normals", {DType::kF32, rows(normals), normals.data()});
  writer.commit();
}

}  // namespace sinew

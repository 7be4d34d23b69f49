#include "hand/mesh_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "hand/mesh_test_support.h"
#include "io/npz.h"
#include "io/test_folder.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

template <typename T>
T at(const std::string& bytes, std::size_t offset) {
  T out;
  EXPECT_LE(offset + sizeof(T), bytes.size());
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

TEST(MeshFiles, ObjHasVerticesColoursAndFaces) {
  const TestFolder folder;
  const Mesh hand = capsule_hand();
  write_obj(folder.file("a.obj"), hand, {0.25F, 0.5F, 1});
  std::istringstream in(contents_of(folder.file("a.obj")));
  std::size_t vertices = 0;
  std::size_t faces = 0;
  for (std::string kind; in >> kind;) {
    if (kind == "v") {
      double x = 0, y = 0, z = 0, r = 0, g = 0, b = 0;
      in >> x >> y >> z >> r >> g >> b;
      ASSERT_LT(vertices, hand.vertices.size());
      EXPECT_NEAR(x, hand.vertices[vertices][0], 5.01e-9);
      EXPECT_NEAR(y, hand.vertices[vertices][1], 5.01e-9);
      EXPECT_NEAR(z, hand.vertices[vertices][2], 5.01e-9);
      EXPECT_EQ(r, 0.25);
      EXPECT_EQ(g, 0.5);
      EXPECT_EQ(b, 1);
      ++vertices;
    } else {
      ASSERT_EQ(kind, "f");
      Face face;
      in >> face[0] >> face[1] >> face[2];
      ASSERT_LT(faces, hand.faces.size());
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(face[i], hand.faces[faces][i] + 1);
      ++faces;
    }
  }
  EXPECT_EQ(vertices, hand.vertices.size());
  EXPECT_EQ(faces, hand.faces.size());
}

TEST(MeshFiles, PlyIsAsItsHeaderSays) {
  const TestFolder folder;
  const Mesh box = box_mesh({0, 0, 0}, {1, 2, 3});
  write_ply(folder.file("a.ply"), box, {1, 0.5F, 0});
  const std::string bytes = contents_of(folder.file("a.ply"));
  const std::string end = "end_header\n";
  std::size_t offset = bytes.find(end) + end.size();
  const std::string head = bytes.substr(0, offset);
  EXPECT_EQ(head.rfind("ply\nformat binary_little_endian 1.0\n", 0), 0U);
  EXPECT_NE(head.find("element vertex 8\n"), std::string::npos);
  EXPECT_NE(head.find("element face 12\n"), std::string::npos);
  const std::vector<Vec3f> normals = vertex_normals(box);
  for (std::size_t v = 0; v < 8; ++v, offset += 27) {
    EXPECT_EQ(at<Vec3f>(bytes, offset), box.vertices[v]);
    EXPECT_EQ(at<Vec3f>(bytes, offset + 12), normals[v]);
    EXPECT_EQ(bytes.substr(offset + 24, 3), std::string("\xff\x80\x00", 3));
  }
  for (std::size_t f = 0; f < 12; ++f, offset += 13) {
    EXPECT_EQ(bytes[offset], 3);
    EXPECT_EQ(at<Face>(bytes, offset + 1), box.faces[f]);
  }
  EXPECT_EQ(offset, bytes.size());
}

TEST(MeshFiles, NpzHoldsTheMesh) {
  const TestFolder folder;
  const Mesh hand = capsule_hand();
  write_mesh_npz(folder.file("a.npz"), hand);
  const auto npz = open_npz(folder.file("a.npz"));
  npz->verify();
  EXPECT_EQ(npz->tensors().size(), 3U);
  const auto count = static_cast<std::int64_t>(hand.vertices.size());
  EXPECT_EQ(npz->get("vertices").shape, (Shape{count, 3}));
  EXPECT_EQ(npz->get("faces").shape, (Shape{static_cast<std::int64_t>(hand.faces.size()), 3}));
  const std::vector<Vec3f> normals = vertex_normals(hand);
  for (std::size_t i = 0; i < 3 * hand.vertices.size(); ++i) {
    ASSERT_EQ(npz->get("vertices").as<float>()[i], hand.vertices[i / 3][i % 3]);
    ASSERT_EQ(npz->get("normals").as<float>()[i], normals[i / 3][i % 3]);
  }
  for (std::size_t i = 0; i < 3 * hand.faces.size(); ++i) {
    ASSERT_EQ(npz->get("faces").as<std::uint32_t>()[i], hand.faces[i / 3][i % 3]);
  }
}

/// The two chunks of a GLB, checked against the rules of its container.
struct Glb {
  Json json;
  std::string binary;

  explicit Glb(const std::string& bytes) {
    EXPECT_EQ(bytes.substr(0, 4), "glTF");
    EXPECT_EQ(at<std::uint32_t>(bytes, 4), 2U);
    EXPECT_EQ(at<std::uint32_t>(bytes, 8), bytes.size());
    const auto text = at<std::uint32_t>(bytes, 12);
    EXPECT_EQ(text % 4, 0U);
    EXPECT_EQ(bytes.substr(16, 4), "JSON");
    json = Json::parse(bytes.substr(20, text));
    const auto size = at<std::uint32_t>(bytes, 20 + text);
    EXPECT_EQ(size % 4, 0U);
    EXPECT_EQ(bytes.substr(24 + text, 4), std::string("BIN\0", 4));
    binary = bytes.substr(28 + text);
    EXPECT_EQ(binary.size(), size);
    EXPECT_EQ(json.at("asset").at("version"), "2.0");
    EXPECT_EQ(json.at("buffers").size(), 1U);
    EXPECT_EQ(json.at("buffers")[0].at("byteLength"), size);
    EXPECT_FALSE(json.at("buffers")[0].contains("uri"));
    check_accessors();
  }

  void check_accessors() const {
    std::set<std::size_t> used;
    for (const Json& accessor : json.at("accessors")) {
      const std::size_t view_number = accessor.at("bufferView");
      EXPECT_TRUE(used.insert(view_number).second);
      const Json& view = json.at("bufferViews").at(view_number);
      const std::size_t offset = view.at("byteOffset");
      EXPECT_EQ(offset % 4, 0U);
      EXPECT_LE(offset + view.at("byteLength").get<std::size_t>(), binary.size());
      EXPECT_FALSE(view.contains("byteStride"));
      const std::size_t element = components(accessor) * (accessor.at("componentType") == 5121 ? 1 : 4);
      EXPECT_EQ(element % 4, 0U) << "elements of vertex attributes are aligned";
      EXPECT_EQ(accessor.at("count").get<std::size_t>() * element, view.at("byteLength"));
      EXPECT_GE(accessor.at("count"), 1);
    }
    EXPECT_EQ(used.size(), json.at("bufferViews").size());
  }
  static std::size_t components(const Json& accessor) {
    const std::string type = accessor.at("type");
    return type == "SCALAR" ? 1 : type == "VEC3" ? 3 : type == "VEC4" ? 4 : 16;
  }
  const Json& attribute(const char* name) const {
    return json.at("accessors")
        .at(json.at("meshes")[0].at("primitives")[0].at("attributes").at(name).get<std::size_t>());
  }
  /// Element `i` of an accessor.
  template <typename T>
  T element(const Json& accessor, std::size_t i) const {
    const std::size_t offset =
        json.at("bufferViews").at(accessor.at("bufferView").get<std::size_t>()).at("byteOffset");
    return at<T>(binary, offset + i * sizeof(T));
  }
};

TEST(MeshFiles, GlbFollowsTheRules) {
  const TestFolder folder;
  const Mesh hand = capsule_hand();
  write_glb(folder.file("a.glb"), hand);
  const Glb glb(contents_of(folder.file("a.glb")));
  const Json& positions = glb.attribute("POSITION");
  EXPECT_EQ(positions.at("count"), hand.vertices.size());
  EXPECT_EQ(positions.at("componentType"), 5126);
  Vec3f low = hand.vertices[0];
  Vec3f high = low;
  for (std::size_t v = 0; v < hand.vertices.size(); ++v) {
    EXPECT_EQ(glb.element<Vec3f>(positions, v), hand.vertices[v]);
    const auto normal = glb.element<Vec3f>(glb.attribute("NORMAL"), v);
    EXPECT_NEAR(std::hypot(normal[0], normal[1], normal[2]), 1, 1e-6);
    for (std::size_t i = 0; i < 3; ++i) {
      low[i] = std::min(low[i], hand.vertices[v][i]);
      high[i] = std::max(high[i], hand.vertices[v][i]);
    }
  }
  EXPECT_EQ(positions.at("min").get<Vec3f>(), low);
  EXPECT_EQ(positions.at("max").get<Vec3f>(), high);
  const Json& primitive = glb.json.at("meshes")[0].at("primitives")[0];
  const Json& indices = glb.json.at("accessors").at(primitive.at("indices").get<std::size_t>());
  EXPECT_EQ(indices.at("count"), 3 * hand.faces.size());
  EXPECT_EQ(indices.at("componentType"), 5125);
  for (std::size_t f = 0; f < hand.faces.size(); ++f) EXPECT_EQ(glb.element<Face>(indices, f), hand.faces[f]);
  const Json& node = glb.json.at("nodes").at(0);
  EXPECT_EQ(node.at("mesh"), 0);
  EXPECT_EQ(node.at("rotation"), Json({1.0, 0.0, 0.0, 0.0})) << "y up";
  EXPECT_FALSE(glb.json.contains("skins"));
  EXPECT_FALSE(primitive.at("attributes").contains("JOINTS_0"));
}

/// Weights by distance to the joints, up to six of them.
std::vector<float> some_weights(const Mesh& mesh, std::span<const Vec3> joints) {
  std::vector<float> out;
  for (const Vec3f& v : mesh.vertices) {
    for (const Vec3& j : joints) {
      const double distance = std::hypot(v[0] - j[0], v[1] - j[1], v[2] - j[2]);
      out.push_back(static_cast<float>(std::max(0.0, 0.06 - distance)));
    }
  }
  return out;
}

using Matrix4 = std::array<double, 16>;  // column-major

Matrix4 product(const Matrix4& a, const Matrix4& b) {
  Matrix4 out{};
  for (std::size_t c = 0; c < 4; ++c) {
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t k = 0; k < 4; ++k) out[4 * c + r] += a[4 * k + r] * b[4 * c + k];
    }
  }
  return out;
}

/// A node's matrix by the formula of glTF: translation times rotation.
Matrix4 matrix_of(const Json& node) {
  const auto q = node.value("rotation", Json({0.0, 0.0, 0.0, 1.0})).get<std::array<double, 4>>();
  const auto t = node.value("translation", Json({0.0, 0.0, 0.0})).get<std::array<double, 3>>();
  EXPECT_NEAR(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-9);
  const auto [x, y, z, w] = q;
  return {1 - 2 * y * y - 2 * z * z,
          2 * x * y + 2 * z * w,
          2 * x * z - 2 * y * w,
          0,
          2 * x * y - 2 * z * w,
          1 - 2 * x * x - 2 * z * z,
          2 * y * z + 2 * x * w,
          0,
          2 * x * z + 2 * y * w,
          2 * y * z - 2 * x * w,
          1 - 2 * x * x - 2 * y * y,
          0,
          t[0],
          t[1],
          t[2],
          1};
}

/// Matrices of all nodes in the scene, parents first.
std::vector<Matrix4> world_matrices(const Json& json) {
  std::vector<Matrix4> out(json.at("nodes").size());
  std::vector<int> visits(out.size());
  const std::function<void(std::size_t, const Matrix4&)> visit = [&](std::size_t n, const Matrix4& above) {
    const Json& node = json.at("nodes").at(n);
    out[n] = product(above, matrix_of(node));
    ++visits[n];
    for (const Json& child : node.value("children", Json::array())) visit(child, out[n]);
  };
  for (const Json& n : json.at("scenes")[0].at("nodes"))
    visit(n, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  for (const int count : visits) EXPECT_EQ(count, 1) << "each node has one parent";
  return out;
}

/// Joints of the capsule hand's skeleton turned about several axes by up to pi.
std::array<double, 144> some_rotations() {
  std::array<double, 144> out{};
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const double angle = j == 0 ? 3.14159265358979 : 0.2 * static_cast<double>(j) - 1.5;
    const std::array<Vec3, 4> axes = {Vec3{1, 0, 0}, Vec3{0, 0.6, 0.8}, Vec3{0, 0, 1}, Vec3{0.48, 0.6, 0.64}};
    const auto [x, y, z] = axes[j % 4];
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    const std::array<double, 9> m = {
        c + x * x * (1 - c),     x * y * (1 - c) - z * s, x * z * (1 - c) + y * s,
        y * x * (1 - c) + z * s, c + y * y * (1 - c),     y * z * (1 - c) - x * s,
        z * x * (1 - c) - y * s, z * y * (1 - c) + x * s, c + z * z * (1 - c)};
    std::copy(m.begin(), m.end(), out.begin() + static_cast<std::ptrdiff_t>(9 * j));
  }
  return out;
}

TEST(MeshFiles, GlbSkinShowsTheMeshAsItIs) {
  const TestFolder folder;
  const Mesh hand = capsule_hand();
  const Skeleton& skeleton = builtin_skeleton();
  const std::vector<float> weights = some_weights(hand, skeleton.joints);
  const std::array<double, 144> rotations = some_rotations();
  const Skin skin = {skeleton.joints, kHandParents, rotations, weights};
  write_glb(folder.file("a.glb"), hand, {.skin = &skin});
  const Glb glb(contents_of(folder.file("a.glb")));
  const Json& joints = glb.json.at("skins")[0].at("joints");
  ASSERT_EQ(joints.size(), 16U);
  const Json& binds =
      glb.json.at("accessors").at(glb.json.at("skins")[0].at("inverseBindMatrices").get<std::size_t>());
  EXPECT_EQ(binds.at("count"), 16);
  EXPECT_EQ(binds.at("type"), "MAT4");
  const std::vector<Matrix4> world = world_matrices(glb.json);

  // Joints stand where forward kinematics puts them, y and z turned.
  const HandKeypoints expected = pose_skeleton(skeleton, rotations);
  for (std::size_t k = 0; k < kHandKeypoints; ++k) {
    const auto mano = static_cast<std::size_t>(kOpenPoseFromMano[k]);
    if (mano >= kHandJoints) continue;
    const Matrix4& m = world[joints[mano].get<std::size_t>()];
    EXPECT_NEAR(m[12], expected[k][0], 1e-9);
    EXPECT_NEAR(m[13], -expected[k][1], 1e-9);
    EXPECT_NEAR(m[14], -expected[k][2], 1e-9);
  }
  // Each joint alone leaves the vertices where they are: bind matrices undo the pose, but for y and z.
  for (std::size_t j = 0; j < kHandJoints; ++j) {
    const auto bind = glb.element<std::array<float, 16>>(binds, j);
    Matrix4 inverse;
    std::copy(bind.begin(), bind.end(), inverse.begin());
    EXPECT_EQ(bind[3], 0);
    EXPECT_EQ(bind[15], 1);
    const Matrix4 both = product(world[joints[j].get<std::size_t>()], inverse);
    const Matrix4 turn = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1};
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(both[i], turn[i], 1e-6);
  }
}

TEST(MeshFiles, GlbKeepsTheFourLargestWeights) {
  const TestFolder folder;
  Mesh mesh = box_mesh({0, 0, 0}, {1, 1, 1});
  const std::array<Vec3, 6> joints{};
  const std::array<int, 6> parents = {-1, 0, 0, 0, 0, 0};
  std::vector<float> weights(8 * 6);
  const std::array<float, 6> first = {0.1F, 0.3F, 0.05F, 0.2F, 0.15F, 0.2F};
  std::copy(first.begin(), first.end(), weights.begin());
  weights[6 + 5] = 2;  // vertex 1; the others have none
  const Skin skin = {joints, parents, {}, weights};
  write_glb(folder.file("a.glb"), mesh, {.skin = &skin});
  const Glb glb(contents_of(folder.file("a.glb")));
  const auto indices = [&](std::size_t v) {
    return glb.element<std::array<std::uint8_t, 4>>(glb.attribute("JOINTS_0"), v);
  };
  const auto kept = [&](std::size_t v) {
    return glb.element<std::array<float, 4>>(glb.attribute("WEIGHTS_0"), v);
  };
  EXPECT_EQ(indices(0), (std::array<std::uint8_t, 4>{1, 3, 5, 4}));
  EXPECT_NEAR(kept(0)[0], 0.3 / 0.85, 1e-6);
  EXPECT_NEAR(kept(0)[0] + kept(0)[1] + kept(0)[2] + kept(0)[3], 1, 1e-6);
  EXPECT_EQ(indices(1), (std::array<std::uint8_t, 4>{5, 0, 0, 0}));
  EXPECT_EQ(kept(1), (std::array<float, 4>{1, 0, 0, 0}));
  EXPECT_EQ(indices(2), (std::array<std::uint8_t, 4>{0, 0, 0, 0}));
  EXPECT_EQ(kept(2), (std::array<float, 4>{1, 0, 0, 0}));
}

std::string refusal(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.code()), error.what());
  }
  return "written";
}

TEST(MeshFiles, RefusesUnsoundMeshes) {
  const TestFolder folder;
  const std::string path = folder.file("a");
  Mesh broken = box_mesh({0, 0, 0}, {1, 1, 1});
  broken.vertices[5][1] = std::numeric_limits<float>::quiet_NaN();
  Mesh wild = box_mesh({0, 0, 0}, {1, 1, 1});
  wild.faces[3][2] = 8;
  for (const auto& write : {std::function<void(const Mesh&)>([&](const Mesh& m) { write_obj(path, m); }),
                            std::function<void(const Mesh&)>([&](const Mesh& m) { write_ply(path, m); }),
                            std::function<void(const Mesh&)>([&](const Mesh& m) { write_mesh_npz(path, m); }),
                            std::function<void(const Mesh&)>([&](const Mesh& m) { write_glb(path, m); })}) {
    EXPECT_NE(refusal([&] { write(broken); }).find("vertex 5"), std::string::npos);
    EXPECT_NE(refusal([&] { write(wild); }).find("face 3 names vertex 8 of 8"), std::string::npos);
  }
  EXPECT_EQ(refusal([&] { write_glb(path, Mesh{}); }).rfind("usage", 0), 0U);
  EXPECT_TRUE(folder.names().empty());
  write_obj(path, Mesh{});
  write_ply(path, Mesh{});
  write_mesh_npz(path, Mesh{});
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(MeshFiles, RefusesSkinsThatDoNotFit) {
  const TestFolder folder;
  const Mesh box = box_mesh({0, 0, 0}, {1, 1, 1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto outcome = [&](std::vector<Vec3> joints, std::vector<int> parents, std::vector<double> rotations,
                           std::vector<float> weights) {
    const Skin skin = {joints, parents, rotations, weights};
    return refusal([&] { write_glb(folder.file("a"), box, {.skin = &skin}); });
  };
  const std::vector<double> unit = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const std::vector<double> mirror = {-1, 0, 0, 0, 1, 0, 0, 0, 1};
  const std::vector<float> ones(8, 1.0F);
  EXPECT_EQ(outcome({Vec3{}}, {-1}, unit, ones), "written");
  const auto is_mismatch = [](const std::string& text) {
    return text.rfind(to_string(ErrorCode::kMismatch), 0) == 0;
  };
  EXPECT_TRUE(is_mismatch(outcome({}, {}, {}, {})));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}}, {0}, unit, ones)));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}, Vec3{}}, {-1, 1}, {}, std::vector<float>(16, 0.5F))));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}}, {-1}, mirror, ones)));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}}, {-1}, {nan, 0, 0, 0, 1, 0, 0, 0, 1}, ones)));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{0, nan, 0}}, {-1}, unit, ones)));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}}, {-1}, {1, 0}, ones)));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}}, {-1}, unit, std::vector<float>(7, 1.0F))));
  EXPECT_TRUE(is_mismatch(outcome({Vec3{}}, {-1}, unit, std::vector<float>(8, -1.0F))));
  EXPECT_TRUE(
      is_mismatch(outcome(std::vector<Vec3>(256), std::vector<int>(256), {}, std::vector<float>(2048))));
}

}  // namespace
}  // namespace sinew

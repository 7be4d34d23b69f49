#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "hand/mesh_files.h"
#include "hand/mesh_files_check.h"
#include "hand/mesh_skin.h"
#include "hand/skeleton.h"
#include "io/atomic_file.h"
#include "io/bytes.h"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

// glTF 2.0, "Accessors" and "Buffer views".
constexpr int kByte = 5121;
constexpr int kWord = 5125;
constexpr int kFloat = 5126;
constexpr int kVertexTarget = 34962;
constexpr int kIndexTarget = 34963;
constexpr int kNoTarget = 0;

constexpr std::array<const char*, kHandJoints> kJointNames = {
    "wrist",  "index1", "index2", "index3", "middle1", "middle2", "middle3", "pinky1",
    "pinky2", "pinky3", "ring1",  "ring2",  "ring3",   "thumb1",  "thumb2",  "thumb3"};

/// sRGB to linear light, which glTF's colours are in.
double linear(float c) {
  const double v = std::clamp(c, 0.0F, 1.0F);
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

class GlbDocument {
 public:
  GlbDocument() {
    json_["asset"] = {{"version", "2.0"}, {"generator", "sinew"}};
    json_["scene"] = 0;
    for (const char* list : {"scenes", "nodes", "meshes", "materials"}) json_[list] = Json::array();
    for (const char* list : {"accessors", "bufferViews"}) json_[list] = Json::array();
  }
  Json& operator[](const char* key) { return json_[key]; }

  /// One tightly packed view and accessor over fixed-size arrays; returns the accessor's number.
  template <typename Element>
  int add(const std::vector<Element>& values, int component, const char* type, int target) {
    const std::size_t bytes = values.size() * sizeof(Element);
    Json view = {{"buffer", 0}, {"byteOffset", binary_.size()}, {"byteLength", bytes}};
    if (target != kNoTarget) view["target"] = target;
    json_["bufferViews"].push_back(view);
    binary_.append(reinterpret_cast<const char*>(values.data()), bytes);
    binary_.resize((binary_.size() + 3) / 4 * 4);
    const std::size_t count = component == kWord ? 3 * values.size() : values.size();
    json_["accessors"].push_back({{"bufferView", json_["bufferViews"].size() - 1},
                                  {"componentType", component},
                                  {"count", count},
                                  {"type", type}});
    return static_cast<int>(json_["accessors"].size() - 1);
  }
  int add_node(const Json& node) {
    json_["nodes"].push_back(node);
    return static_cast<int>(json_["nodes"].size() - 1);
  }

  std::string bytes() {
    json_["buffers"] = {{{"byteLength", binary_.size()}}};
    std::string text = json_.dump();
    text.resize((text.size() + 3) / 4 * 4, ' ');
    std::string out;
    const auto word = [&](std::size_t value) {
      const auto narrow = static_cast<std::uint32_t>(value);
      out.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
    };
    out += "glTF";
    word(2);
    word(12 + 8 + text.size() + 8 + binary_.size());
    word(text.size());
    out += "JSON" + text;
    word(binary_.size());
    return out + std::string("BIN\0", 4) + binary_;
  }

 private:
  Json json_;
  std::string binary_;
};

/// Extremes of the positions, which glTF demands.
void add_bounds(Json& accessor, const std::vector<Vec3f>& vertices) {
  Vec3f low = vertices.front();
  Vec3f high = low;
  for (const Vec3f& v : vertices) {
    for (std::size_t i = 0; i < 3; ++i) {
      low[i] = std::min(low[i], v[i]);
      high[i] = std::max(high[i], v[i]);
    }
  }
  accessor["min"] = low;
  accessor["max"] = high;
}

void add_mesh(GlbDocument& glb, const Mesh& mesh, const Vec3f& colour, const GltfSkin* skin) {
  Json attributes;
  attributes["POSITION"] = glb.add(mesh.vertices, kFloat, "VEC3", kVertexTarget);
  add_bounds(glb["accessors"].back(), mesh.vertices);
  attributes["NORMAL"] = glb.add(vertex_normals(mesh), kFloat, "VEC3", kVertexTarget);
  if (skin != nullptr) {
    attributes["JOINTS_0"] = glb.add(skin->indices, kByte, "VEC4", kVertexTarget);
    attributes["WEIGHTS_0"] = glb.add(skin->weights, kFloat, "VEC4", kVertexTarget);
  }
  const int indices = glb.add(mesh.faces, kWord, "SCALAR", kIndexTarget);
  const Json primitive = {{"attributes", attributes}, {"indices", indices}, {"material", 0}};
  glb["meshes"].push_back({{"name", "hand"}, {"primitives", Json::array({primitive})}});
  const Json base = {linear(colour[0]), linear(colour[1]), linear(colour[2]), 1.0};
  glb["materials"].push_back(
      {{"name", "skin"},
       {"doubleSided", true},  // an open wrist shows its inside
       {"pbrMetallicRoughness",
        {{"baseColorFactor", base}, {"metallicFactor", 0.0}, {"roughnessFactor", 0.8}}}});
}

/// The joints below the node `root`, which must be the one before them.
void add_skeleton(GlbDocument& glb, const GltfSkin& skin, int root) {
  const int first = root + 1;
  const bool is_hand = skin.joints.size() == kHandJoints;
  Json numbers = Json::array();
  std::vector<std::array<float, 16>> inverse_binds;
  for (std::size_t j = 0; j < skin.joints.size(); ++j) {
    const GltfJoint& joint = skin.joints[j];
    const int number = glb.add_node({{"name", is_hand ? kJointNames[j] : fmt::format("joint{}", j)},
                                     {"translation", joint.translation},
                                     {"rotation", joint.rotation}});
    const int parent = joint.parent < 0 ? root : first + joint.parent;
    glb["nodes"][static_cast<std::size_t>(parent)]["children"].push_back(number);
    numbers.push_back(number);
    inverse_binds.push_back(joint.inverse_bind);
  }
  const int accessor = glb.add(inverse_binds, kFloat, "MAT4", kNoTarget);
  glb["skins"].push_back({{"inverseBindMatrices", accessor}, {"skeleton", root}, {"joints", numbers}});
}

}  // namespace

void write_glb(const std::string& path, const Mesh& mesh, const GlbOptions& options) {
  check_mesh(path, mesh);
  if (mesh.vertices.empty() || mesh.faces.empty()) {
    throw fail(ErrorCode::kUsage, "{}: a glTF mesh needs vertices and faces", path);
  }
  GltfSkin skin;
  if (options.skin != nullptr) skin = to_gltf(path, *options.skin, mesh.vertices.size());
  GlbDocument glb;
  add_mesh(glb, mesh, options.colour, options.skin != nullptr ? &skin : nullptr);
  Json root = {{"name", "hand"}};
  if (options.from_camera_axes) root["rotation"] = {1.0, 0.0, 0.0, 0.0};
  Json scene = Json::array({0});
  if (options.skin == nullptr) {
    root["mesh"] = 0;
    glb.add_node(root);
  } else {
    add_skeleton(glb, skin, glb.add_node(root));
    // Apart from the skeleton: the place of a skinned mesh's node is ignored, so it is not hidden among
    // joints.
    scene.push_back(glb.add_node({{"name", "mesh"}, {"mesh", 0}, {"skin", 0}}));
  }
  glb["scenes"].push_back({{"nodes", scene}});
  write_file_atomically(path, glb.bytes());
}

}  // namespace sinew

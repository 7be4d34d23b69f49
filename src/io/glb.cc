#include "io/glb.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "io/bytes.h"
#include "io/mapped_file.h"
#include "io/printable.h"

namespace sinew {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMagic = 0x46546c67;  // "glTF"
constexpr std::uint32_t kJsonChunk = 0x4e4f534a;
constexpr std::uint32_t kBinChunk = 0x004e4942;
constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxJsonBytes = std::size_t{16} << 20;
constexpr int kMaxJsonDepth = 32;
constexpr std::size_t kMaxNodes = 65536;
constexpr std::size_t kMaxJoints = 1024;
constexpr std::size_t kMaxVertices = 1'000'000;
constexpr std::size_t kMaxTriangles = 2'000'000;
constexpr std::size_t kTriangles = 4;  // primitive.mode

enum ComponentType : std::uint16_t { kU8 = 5121, kU16 = 5123, kU32 = 5125, kF32 = 5126 };

std::size_t size_of(std::size_t component_type) {
  switch (component_type) {
    case kU8:
      return 1;
    case kU16:
      return 2;
    case kU32:
    case kF32:
      return 4;
    default:
      return 0;
  }
}

struct Accessor {
  std::string where;
  std::size_t component_type = 0;
  std::size_t components = 0;
  std::size_t count = 0;
  std::size_t stride = 0;
  std::span<const std::byte> bytes;  // from its first element to the end of its view

  template <typename T>
  T at(std::size_t element, std::size_t component) const {
    return load<T>(bytes, element * stride + component * sizeof(T));
  }
  std::uint32_t whole(std::size_t element, std::size_t component) const {
    if (component_type == kU8) return at<std::uint8_t>(element, component);
    if (component_type == kU16) return at<std::uint16_t>(element, component);
    return at<std::uint32_t>(element, component);
  }
  float real(std::size_t element, std::size_t component) const {
    if (component_type == kF32) return at<float>(element, component);
    return static_cast<float>(whole(element, component)) / (component_type == kU8 ? 255.0F : 65535.0F);
  }
};

/// JSON and binary chunk of a container.
struct Chunks {
  std::string_view json;
  std::span<const std::byte> bin;
};

Chunks split(std::span<const std::byte> bytes) {
  if (!is_glb(bytes)) throw fail(ErrorCode::kFormat, "no GLB: does not begin with glTF");
  if (bytes.size() > kMaxBytes)
    throw fail(ErrorCode::kLimit, "{} bytes, at most {}", bytes.size(), kMaxBytes);
  const auto version = load<std::uint32_t>(bytes, 4);
  if (version != 2) throw fail(ErrorCode::kUnsupported, "GLB version {}, expected 2", version);
  const auto length = load<std::uint32_t>(bytes, 8);
  if (length != bytes.size()) {
    throw fail(ErrorCode::kFormat, "header declares {} bytes, the file has {}", length, bytes.size());
  }
  Chunks out;
  for (std::size_t at = kHeaderBytes; at < bytes.size();) {
    if (bytes.size() - at < 8) throw fail(ErrorCode::kFormat, "byte {}: a chunk without its header", at);
    const auto size = load<std::uint32_t>(bytes, at);
    const auto type = load<std::uint32_t>(bytes, at + 4);
    if (size > bytes.size() - at - 8) {
      throw fail(ErrorCode::kFormat, "byte {}: a chunk of {} bytes, {} are left", at, size,
                 bytes.size() - at - 8);
    }
    const auto chunk = bytes.subspan(at + 8, size);
    if (at == kHeaderBytes && type != kJsonChunk)
      throw fail(ErrorCode::kFormat, "the first chunk is not JSON");
    if (at == kHeaderBytes) out.json = as_text(chunk);
    if (type == kBinChunk && out.bin.empty()) out.bin = chunk;  // chunks of other types are to be ignored
    at += 8 + size;
  }
  if (out.json.empty()) throw fail(ErrorCode::kFormat, "no JSON chunk");
  return out;
}

Json parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    throw fail(ErrorCode::kLimit, "JSON of {} bytes, at most {}", text.size(), kMaxJsonBytes);
  }
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxJsonDepth) throw fail(ErrorCode::kLimit, "JSON nested more than {} deep", kMaxJsonDepth);
    return true;
  };
  try {
    Json root = Json::parse(text, check_depth);
    if (!root.is_object()) throw fail(ErrorCode::kFormat, "the JSON chunk is not an object");
    return root;
  } catch (const Json::exception& error) {
    throw fail(ErrorCode::kFormat, "the JSON chunk is not JSON: {}", printable(error.what()));
  }
}

class Reader {
 public:
  explicit Reader(const Chunks& chunks) : root_(parse_json(chunks.json)), bin_(chunks.bin) {}

  GlbSkinnedMesh read() {
    if (const auto required = root_.find("extensionsRequired");
        required != root_.end() && !required->empty()) {
      const Json& first = required->is_array() ? required->front() : *required;
      throw fail(ErrorCode::kUnsupported, "needs the extension {}",
                 printable(first.is_string() ? first.get_ref<const std::string&>() : "?"));
    }
    const Json& nodes = list(root_, "nodes", "the file");
    if (nodes.size() > kMaxNodes)
      throw fail(ErrorCode::kLimit, "{} nodes, at most {}", nodes.size(), kMaxNodes);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Json& node = item("nodes", i);
      if (!node.contains("mesh") || !node.contains("skin")) continue;
      const std::string where = fmt::format("nodes[{}]", i);
      read_skin(whole(node, "skin", where));
      read_mesh(whole(node, "mesh", where));
      return std::move(mesh_);
    }
    throw fail(ErrorCode::kMismatch, "no node with a mesh and a skin");
  }

 private:
  static const Json& list(const Json& object, const char* key, const std::string& where) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array()) {
      throw fail(ErrorCode::kFormat, "{}: {} must be a list", where, key);
    }
    return *found;
  }

  static std::size_t whole(const Json& value, const std::string& where) {
    if (!value.is_number_unsigned()) throw fail(ErrorCode::kFormat, "{} must be a whole number", where);
    return value.get<std::size_t>();
  }

  static std::size_t whole(const Json& object, const char* key, const std::string& where,
                           std::optional<std::size_t> otherwise = {}) {
    const auto found = object.find(key);
    if (found == object.end() && otherwise) return *otherwise;
    if (found == object.end()) throw fail(ErrorCode::kFormat, "{}: no {}", where, key);
    return whole(*found, fmt::format("{}: {}", where, key));
  }

  /// root[key][index], an object.
  const Json& item(const char* key, std::size_t index) const {
    const Json& all = list(root_, key, "the file");
    if (index >= all.size()) {
      throw fail(ErrorCode::kFormat, "{}[{}] is named, there are {}", key, index, all.size());
    }
    if (!all[index].is_object()) throw fail(ErrorCode::kFormat, "{}[{}] is not an object", key, index);
    return all[index];
  }

  Accessor accessor(std::size_t index, std::string_view type,
                    std::span<const std::size_t> component_types) const {
    const Json& json = item("accessors", index);
    Accessor out;
    out.where = fmt::format("accessors[{}]", index);
    if (json.contains("sparse")) throw fail(ErrorCode::kUnsupported, "{} is sparse", out.where);
    const auto found = json.find("type");
    if (found == json.end() || !found->is_string() || found->get_ref<const std::string&>() != type) {
      throw fail(ErrorCode::kFormat, "{}: expected type {}", out.where, type);
    }
    out.components = type == "MAT4" ? 16 : type == "VEC4" ? 4 : type == "VEC3" ? 3 : 1;
    out.component_type = whole(json, "componentType", out.where);
    if (std::find(component_types.begin(), component_types.end(), out.component_type) ==
        component_types.end()) {
      throw fail(ErrorCode::kFormat, "{}: componentType {} cannot be used here", out.where,
                 out.component_type);
    }
    out.count = whole(json, "count", out.where);
    place(json, out);
    return out;
  }

  /// Finds the accessor's bytes and checks that its last element lies within its view.
  void place(const Json& json, Accessor& out) const {
    const std::size_t view_index = whole(json, "bufferView", out.where);
    const Json& view = item("bufferViews", view_index);
    const std::string where = fmt::format("bufferViews[{}]", view_index);
    const std::size_t buffer = whole(view, "buffer", where);
    if (buffer != 0 || item("buffers", 0).contains("uri")) {
      throw fail(ErrorCode::kUnsupported, "{}: only the buffer within the file is read", where);
    }
    const std::size_t start = whole(view, "byteOffset", where, 0);
    const std::size_t length = whole(view, "byteLength", where);
    if (start > bin_.size() || length > bin_.size() - start) {
      throw fail(ErrorCode::kFormat, "{}: bytes {}+{} of a chunk of {}", where, start, length, bin_.size());
    }
    const std::size_t element = out.components * size_of(out.component_type);
    out.stride = whole(view, "byteStride", where, element);
    const std::size_t offset = whole(json, "byteOffset", out.where, 0);
    const auto before_last = checked_mul(out.count - 1, out.stride);
    const bool fits = out.count >= 1 && out.stride >= element && offset <= length && before_last &&
                      *before_last <= length - offset && element <= length - offset - *before_last;
    if (!fits) {
      throw fail(ErrorCode::kFormat, "{}: {} elements of {} bytes every {} from {} do not fit a view of {}",
                 out.where, out.count, element, out.stride, offset, length);
    }
    out.bytes = bin_.subspan(start + offset, length - offset);
  }

  void read_skin(std::size_t index) {
    const Json& skin = item("skins", index);
    const std::string where = fmt::format("skins[{}]", index);
    const Json& joints = list(skin, "joints", where);
    if (joints.empty() || joints.size() > kMaxJoints) {
      throw fail(ErrorCode::kLimit, "{}: {} joints, expected 1 to {}", where, joints.size(), kMaxJoints);
    }
    const std::size_t nodes = list(root_, "nodes", "the file").size();
    std::vector<int> joint_of(nodes, -1);
    std::vector<std::size_t> node_of;
    for (std::size_t j = 0; j < joints.size(); ++j) {
      const std::size_t node = whole(joints[j], where + ": joints");
      const auto name = item("nodes", node).find("name");
      GlbJoint joint;
      if (name != item("nodes", node).end() && name->is_string()) joint.name = name->get<std::string>();
      if (joint_of[node] >= 0) throw fail(ErrorCode::kFormat, "{}: node {} twice", where, node);
      joint_of[node] = static_cast<int>(j);
      node_of.push_back(node);
      mesh_.skeleton.push_back(std::move(joint));
    }
    read_inverse_binds(whole(skin, "inverseBindMatrices", where));
    const std::vector<std::size_t> parents = node_parents(nodes);
    for (std::size_t j = 0; j < node_of.size(); ++j) {
      std::size_t up = parents[node_of[j]];
      for (std::size_t steps = 0; up != nodes && joint_of[up] < 0; ++steps) {
        if (steps == nodes) throw fail(ErrorCode::kFormat, "nodes[{}] lies above itself", up);
        up = parents[up];
      }
      mesh_.skeleton[j].parent = up == nodes ? -1 : joint_of[up];
    }
  }

  void read_inverse_binds(std::size_t index) {
    static constexpr std::array<std::size_t, 1> kTypes = {kF32};
    const Accessor matrices = accessor(index, "MAT4", kTypes);
    if (matrices.count < mesh_.skeleton.size()) {
      throw fail(ErrorCode::kFormat, "{}: {} matrices for {} joints", matrices.where, matrices.count,
                 mesh_.skeleton.size());
    }
    for (std::size_t j = 0; j < mesh_.skeleton.size(); ++j) {
      for (std::size_t i = 0; i < 16; ++i) {  // the file's are column-major
        mesh_.skeleton[j].inverse_bind[i] = matrices.real(j, 4 * (i % 4) + i / 4);
      }
    }
  }

  /// Parent of each node, or the number of nodes for a root.
  std::vector<std::size_t> node_parents(std::size_t nodes) const {
    std::vector<std::size_t> out(nodes, nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      if (!item("nodes", i).contains("children")) continue;
      const std::string where = fmt::format("nodes[{}]", i);
      for (const Json& entry : list(item("nodes", i), "children", where)) {
        const std::size_t child = whole(entry, where + ": children");
        if (child >= nodes || out[child] != nodes || child == i) {
          throw fail(ErrorCode::kFormat, "{}: child {} does not exist or has another parent", where, child);
        }
        out[child] = i;
      }
    }
    return out;
  }

  void read_mesh(std::size_t index) {
    const std::string where = fmt::format("meshes[{}]", index);
    const Json& primitives = list(item("meshes", index), "primitives", where);
    if (primitives.empty()) throw fail(ErrorCode::kFormat, "{} has no primitives", where);
    for (std::size_t i = 0; i < primitives.size(); ++i) {
      const std::string part = fmt::format("{}: primitives[{}]", where, i);
      if (!primitives[i].is_object()) throw fail(ErrorCode::kFormat, "{} is not an object", part);
      const std::size_t mode = whole(primitives[i], "mode", part, kTriangles);
      if (mode != kTriangles)
        throw fail(ErrorCode::kUnsupported, "{}: mode {}, expected triangles", part, mode);
      const std::size_t first = mesh_.positions.size();
      read_vertices(primitives[i], part);
      read_triangles(primitives[i], part, first);
    }
  }

  void read_vertices(const Json& primitive, const std::string& where) {
    static constexpr std::array<std::size_t, 1> kPosition = {kF32};
    static constexpr std::array<std::size_t, 2> kJoints = {kU8, kU16};
    static constexpr std::array<std::size_t, 3> kWeights = {kF32, kU8, kU16};
    const auto attributes = primitive.find("attributes");
    if (attributes == primitive.end() || !attributes->is_object()) {
      throw fail(ErrorCode::kFormat, "{} has no attributes", where);
    }
    if (attributes->contains("JOINTS_1")) {
      throw fail(ErrorCode::kUnsupported, "{}: more than four joints a vertex", where);
    }
    const Accessor positions = accessor(whole(*attributes, "POSITION", where), "VEC3", kPosition);
    const Accessor joints = accessor(whole(*attributes, "JOINTS_0", where), "VEC4", kJoints);
    const Accessor weights = accessor(whole(*attributes, "WEIGHTS_0", where), "VEC4", kWeights);
    if (joints.count != positions.count || weights.count != positions.count) {
      throw fail(ErrorCode::kFormat, "{}: {} positions, {} joints, {} weights", where, positions.count,
                 joints.count, weights.count);
    }
    if (positions.count > kMaxVertices - mesh_.positions.size()) {
      throw fail(ErrorCode::kLimit, "{}: more than {} vertices", where, kMaxVertices);
    }
    for (std::size_t v = 0; v < positions.count; ++v) {
      mesh_.positions.push_back({positions.real(v, 0), positions.real(v, 1), positions.real(v, 2)});
      auto& four = mesh_.joints.emplace_back();
      auto& shares = mesh_.weights.emplace_back();
      for (std::size_t i = 0; i < 4; ++i) {
        const std::uint32_t joint = joints.whole(v, i);
        if (joint >= mesh_.skeleton.size()) {
          throw fail(ErrorCode::kFormat, "{}: vertex {} hangs on joint {}, there are {}", where, v, joint,
                     mesh_.skeleton.size());
        }
        four[i] = static_cast<std::uint16_t>(joint);
        shares[i] = weights.real(v, i);
      }
    }
  }

  void read_triangles(const Json& primitive, const std::string& where, std::size_t first) {
    static constexpr std::array<std::size_t, 3> kIndices = {kU8, kU16, kU32};
    const std::size_t vertices = mesh_.positions.size() - first;
    std::optional<Accessor> indices;
    if (primitive.contains("indices"))
      indices = accessor(whole(primitive, "indices", where), "SCALAR", kIndices);
    const std::size_t corners = indices ? indices->count : vertices;
    if (corners % 3 != 0)
      throw fail(ErrorCode::kFormat, "{}: {} corners, expected triangles", where, corners);
    if (corners / 3 > kMaxTriangles - mesh_.triangles.size()) {
      throw fail(ErrorCode::kLimit, "{}: more than {} triangles", where, kMaxTriangles);
    }
    for (std::size_t i = 0; i < corners; ++i) {
      const std::size_t vertex = indices ? indices->whole(i, 0) : i;
      if (vertex >= vertices) {
        throw fail(ErrorCode::kFormat, "{}: index {} is {}, there are {} vertices", where, i, vertex,
                   vertices);
      }
      if (i % 3 == 0) mesh_.triangles.emplace_back();
      mesh_.triangles.back()[i % 3] = static_cast<std::uint32_t>(first + vertex);
    }
  }

  Json root_;
  std::span<const std::byte> bin_;
  GlbSkinnedMesh mesh_;
};

}  // namespace

bool is_glb(std::span<const std::byte> bytes) {
  return bytes.size() >= kHeaderBytes && load<std::uint32_t>(bytes, 0) == kMagic;
}

GlbSkinnedMesh parse_glb(std::span<const std::byte> bytes, const std::string& name) {
  try {
    return Reader(split(bytes)).read();
  } catch (const Error& error) {
    throw error.prefixed(name + ": ");
  }
}

GlbSkinnedMesh read_glb(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_glb(file.bytes(), path);
}

}  // namespace sinew

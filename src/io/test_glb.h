// Builds skinned GLB files for tests, with the JSON open to lies.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sinew {

struct TestGlbJoint {
  std::string name;
  std::array<float, 3> at{};  // bound here, without rotation
};

struct TestGlbVertex {
  std::array<float, 3> at{};
  std::array<std::uint8_t, 4> joints{};
  std::array<float, 4> weights{};
};

class TestGlb {
 public:
  TestGlb(const std::vector<TestGlbJoint>& joints, const std::vector<TestGlbVertex>& vertices,
          const std::vector<std::uint16_t>& indices) {
    std::vector<std::array<float, 3>> positions;
    std::vector<std::array<std::uint8_t, 4>> owners;
    std::vector<std::array<float, 4>> weights;
    for (const TestGlbVertex& vertex : vertices) {
      positions.push_back(vertex.at);
      owners.push_back(vertex.joints);
      weights.push_back(vertex.weights);
    }
    std::vector<std::array<float, 16>> binds;
    nlohmann::json numbers = nlohmann::json::array();
    json["nodes"] = {{{"mesh", 0}, {"skin", 0}}};
    for (const TestGlbJoint& joint : joints) {
      binds.push_back({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, -joint.at[0], -joint.at[1], -joint.at[2], 1});
      numbers.push_back(json["nodes"].size());
      json["nodes"].push_back({{"name", joint.name}});
    }
    json["meshes"] = {{{"primitives",
                        {{{"attributes",
                           {{"POSITION", add("VEC3", 5126, positions)},
                            {"JOINTS_0", add("VEC4", 5121, owners)},
                            {"WEIGHTS_0", add("VEC4", 5126, weights)}}},
                          {"indices", add("SCALAR", 5123, indices)}}}}}};
    json["skins"] = {{{"joints", numbers}, {"inverseBindMatrices", add("MAT4", 5126, binds)}}};
    json["buffers"] = {{{"byteLength", bin.size()}}};
  }

  /// The container; lengths are those of its parts.
  std::string build() const {
    std::string text = json.dump();
    text.resize((text.size() + 3) / 4 * 4, ' ');
    std::string out = "glTF" + number(2) + number(12 + 8 + text.size() + 8 + bin.size());
    return out + number(text.size()) + "JSON" + text + number(bin.size()) + std::string("BIN\0", 4) + bin;
  }

  nlohmann::json json;
  std::string bin;

 private:
  template <typename T>
  std::size_t add(const char* type, int component_type, const std::vector<T>& values) {
    json["bufferViews"].push_back(
        {{"buffer", 0}, {"byteOffset", bin.size()}, {"byteLength", values.size() * sizeof(T)}});
    json["accessors"].push_back({{"bufferView", json["bufferViews"].size() - 1},
                                 {"componentType", component_type},
                                 {"type", type},
                                 {"count", values.size()}});
    bin.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    bin.resize((bin.size() + 3) / 4 * 4, '\0');
    return json["accessors"].size() - 1;
  }
  static std::string number(std::size_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    std::string out(sizeof(word), '\0');
    std::memcpy(out.data(), &word, sizeof(word));
    return out;
  }
};

}  // namespace sinew
